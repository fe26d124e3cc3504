"""A page for programs: its figures as JSON."""

import json

from hopplus.report.numbers import plain
from hopplus.report.page import Page


def page_json(page: Page) -> str:
    """All figures of a page; null for what is no number."""
    return json.dumps(plain(page.payload), indent=2, allow_nan=False)
