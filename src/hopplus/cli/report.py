"""`hopplus report`: one page that shows it."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.api.report import make_report
from hopplus.cli.paged import show, this_command
from hopplus.report.translations import Language
from hopplus.runs.watchdog import say


@dataclass(frozen=True)
class Report:
    """Write one page about a run, or about several side by side: summary, curves, models, replay.

    It is one file that needs no network.
    """

    run_folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """The folders of the runs."""
    out: Path | None = None
    """The file; when not given, report.html in the run, or here if there are several."""
    open: bool = False
    """Show it in the browser."""
    language: Language = "en"
    """Of the labels: en or zh."""
    quick: bool = False
    """Summary and curves alone, which are read and not played: no models, no replay."""
    json: bool = False
    """Print JSON instead of words."""

    def run(self) -> int:
        found = make_report(
            self.run_folders, language=self.language, read_only=self.quick, command=this_command()
        )
        # The page itself was asked for, so that one that cannot be written is an error.
        path = found.write(self.out)
        show(found.page, as_json=self.json, hints=[f"The page is {path}"], page=str(path))
        if self.open and not webbrowser.open(path.resolve().as_uri()):
            say(f"no browser was found: open {path} yourself")
        return 0
