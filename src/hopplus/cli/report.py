"""`hopplus report`: one page that shows it."""

import json
import shlex
import sys
import webbrowser
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import tyro

from hopplus.config import ConfigError, TrainConfig
from hopplus.diagnosis.measures import finite
from hopplus.report.page import Section, write_page
from hopplus.report.runs import report_path, runs_page
from hopplus.report.summary import Summary, summarise
from hopplus.report.words import Language
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
        runs = summarise([open_run(path) for path in self.run_folders])
        models: list[Section] = []
        replays: list[tuple[str, dict[str, Any]]] = []
        played = [] if self.quick else runs
        with Progress("playing", 2 * len(played), "parts") as progress:
            for run in played:
                models += _models(run, len(runs) > 1)
                progress.advance(1, run.name)
                replays += _replays(run)
                progress.advance(1, run.name)
        command = shlex.join(["hopplus", *sys.argv[1:]])
        page = runs_page(runs, command, self.language, models, replays)
        path = self.out or report_path(runs)
        write_page(path, page)
        if self.json:
            figures = {"page": str(path), "runs": [run.as_json() for run in runs]}
            print(json.dumps(finite(figures), indent=2))
        else:
            print(page.answer)
            for line in page.lines:
                print(line)
            print(f"The page is {path}")
        if self.open and not webbrowser.open(path.resolve().as_uri()):
            say(f"no browser was found: open {path} yourself")
        return 0


def _models(run: Summary, several: bool) -> list[Section]:
    """How good the run's models are."""
    found: list[Section] = _given("hopplus.report.models", "model_sections", run) or []
    named = [replace(one, title=f"{run.name}: {one.title}") for one in found]
    return named if several else found


def _replays(run: Summary) -> list[tuple[str, dict[str, Any]]]:
    """Episodes that the run's players play, recorded."""
    if run.run.kind != TrainConfig.kind:
        return []
    found = _given("hopplus.evaluation.replays", "replays_of", run)
    return [(run.name, found)] if found else []


def _given(module: str, name: str, run: Summary) -> Any:
    """What a part of the package says of a run; nothing where it is not there, or cannot."""
    try:
        return getattr(import_module(module), name)(run.run)
    except ModuleNotFoundError:
        return None
    except (ConfigError, RunError) as error:  # nothing was saved yet
        say(f"a part of the page is left out: {error}")
        return None
