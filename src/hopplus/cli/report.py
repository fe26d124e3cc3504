"""`hopplus report`: one page that shows it."""

import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from hopplus.cli.paged import show, this_command
from hopplus.config import ConfigError, TrainConfig
from hopplus.evaluation.replay.replays import run_lineup, telling_replays, watch_first
from hopplus.games.game import has_board
from hopplus.report.html import write_page
from hopplus.report.page import Section
from hopplus.report.pages.models import model_sections
from hopplus.report.pages.runs import runs_page
from hopplus.report.pages.summary import Summary, summarise
from hopplus.report.translations import Language
from hopplus.runs.folder import RunError, open_run
from hopplus.runs.progress import Progress
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
        if not self.run_folders:
            raise ConfigError("which runs? Give at least one run's folder")
        if len({path.resolve() for path in self.run_folders}) < len(self.run_folders):
            raise ConfigError("a run is named twice: name each of them once")
        runs = summarise([open_run(path) for path in self.run_folders])
        models: list[Section] = []
        replays: list[tuple[str, dict[str, Any]]] = []
        played = [] if self.quick else runs
        with Progress("playing", len(played), "runs", first="busy with the first") as progress:
            for run in played:
                sections, episodes = _shown(run)
                whose = f"{run.name}: " if len(runs) > 1 else ""
                models += [replace(one, title=f"{whose}{one.title}") for one in sections]
                replays += episodes
                progress.advance(1, run.name)
        page = runs_page(runs, this_command(), self.language, models, replays)
        folder = runs[0].run.path if len(runs) == 1 else Path()
        path = self.out or folder / "report.html"
        write_page(path, page)
        # The page itself was asked for, so that one that cannot be written is an error.
        show(page, as_json=self.json, hints=[f"The page is {path}"], page=str(path))
        if self.open and not webbrowser.open(path.resolve().as_uri()):
            say(f"no browser was found: open {path} yourself")
        return 0


def _shown(run: Summary) -> tuple[list[Section], list[tuple[str, dict[str, Any]]]]:
    """How good a run's models are, and a few of its episodes: both from the same play."""
    try:
        if run.run.kind != TrainConfig.kind:
            return model_sections(run.run), []
        table = run_lineup(run.run)
        seen = watch_first(*table)
        sections = model_sections(run.run, table, seen)
        shown = has_board(table[0])
        return sections, [(run.name, telling_replays(*table, seen))] if shown else []
    except (ConfigError, RunError) as error:  # nothing was saved yet
        say(f"models and replay of {run.name} are left out: {error}")
        return [], []
