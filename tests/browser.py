"""The browser that pages are tested in, where there is one."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Locator
    from playwright.sync_api import Page as Tab

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


def launched() -> Iterator["Browser"]:
    """A browser, closed in the end."""
    chromium = find_chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        do_without("playwright, which drives the browser, is missing: pip install playwright")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium)
        yield browser
        browser.close()


def expect(locator: "Locator") -> Any:
    """Of what is on the page, soon."""
    from playwright.sync_api import expect as expect_soon

    return expect_soon(locator)


class Opened:
    """A page in a tab, without network if it is a file, and everything that went wrong there."""

    def __init__(self, browser: "Browser", page: Path | str, **options: Any) -> None:
        served = isinstance(page, str)
        self.context = browser.new_context(offline=not served, **options)
        self.tab: Tab = self.context.new_page()
        self.tab.set_default_timeout(5000)
        self.wrong: list[str] = []
        self.tab.on("console", lambda message: self.wrong.append(message.text))
        self.tab.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.tab.on("dialog", self._dismiss)
        self.asked: list[str] = []
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(page if isinstance(page, str) else page.as_uri())

    def piece(self, seat: int, board: "Locator | None" = None) -> tuple[int, int] | None:
        """The row and the column that a seat's piece stands in, if it is on the board."""
        piece = (board or self.tab).locator(f".piece[data-seat='{seat}']")
        if not piece.is_visible():
            return None
        x, y = self.tab.evaluate(
            "piece => piece.style.transform.match(/-?[0-9.]+px/g).map(parseFloat)",
            piece.element_handle(),
        )
        return int(y), int(x)

    def _dismiss(self, dialog: "Dialog") -> None:
        self.wrong.append("dialog")
        dialog.dismiss()

    def close(self) -> None:
        self.context.close()
