"""What a study found, as Python has it."""

import io
import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from hopplus.report.html import write_page
from hopplus.report.json import page_json
from hopplus.report.page import Page
from hopplus.report.terminal import print_page

Record = TypeVar("Record")


@dataclass(frozen=True, repr=False)
class Found(Generic[Record]):
    """The record itself, with its arrays; `figures` are what `--json` prints, `print` shows the
    tables of the command line, and `write` makes a page of it."""

    record: Record
    page: Page
    place: Path = Path("page.html")  # where the command line writes the page

    @property
    def figures(self) -> dict[str, Any]:
        """All figures as plain data, by name; None for what is no number."""
        found: dict[str, Any] = json.loads(page_json(self.page))
        return found

    def write(self, path: str | Path | None = None) -> Path:
        """Write the page, one HTML file; where it is."""
        written = self.place if path is None else Path(path)
        write_page(written, self.page)
        return written

    def __repr__(self) -> str:
        shown = io.StringIO()
        with redirect_stdout(shown):
            print_page(self.page)
        return shown.getvalue().rstrip()
