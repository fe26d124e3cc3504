"""A page for programs: its figures as JSON."""

import json

from hopplus.diagnosis.finding import to_json
from hopplus.report.page import Page


def page_json(page: Page) -> str:
    """All figures of a page; null for what is no number."""
    return json.dumps(to_json(page.payload), indent=2, allow_nan=False)
