"""The browser that pages are tested in, where there is one."""

import os
import shutil
from typing import NoReturn

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
SETTING = "HOPPLUS_BROWSER"  # `required` where pages must be tested, as in CI


def find_chromium() -> str:
    """Its path; the test is skipped without one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        do_without("no chromium here to open pages in: install it (Debian: apt install chromium)")
    return found


def do_without(reason: str) -> NoReturn:
    """Skips the test, or fails it where a browser is required."""
    if os.environ.get(SETTING) == "required":
        pytest.fail(f"{SETTING}=required, but {reason}", pytrace=False)
    pytest.skip(reason)
