"""One page about runs: what `hopplus report` writes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopplus.api.found import Found
from hopplus.api.training import quietly
from hopplus.config import ConfigError, TrainConfig
from hopplus.evaluation.replay.replays import run_lineup, telling_replays, watch_first
from hopplus.games.game import has_board
from hopplus.report.page import Section
from hopplus.report.pages.models import model_sections
from hopplus.report.pages.runs import runs_page
from hopplus.report.pages.summary import Summary, summarise
from hopplus.report.translations import Language
from hopplus.runs.folder import RunError, open_run
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say


def make_report(
    folders: Sequence[Path],
    *,
    language: Language = "en",
    read_only: bool = False,
    command: str = "",
    quiet: bool = False,
) -> Found[list[Summary]]:
    """A page about a run, or about several side by side. Where it is `read_only`, nothing is
    played: it has no models and no replay then."""
    if not folders:
        raise ConfigError("which runs? Give at least one run's folder")
    if len({path.resolve() for path in folders}) < len(folders):
        raise ConfigError("a run is named twice: name each of them once")
    runs = summarise([open_run(path) for path in folders])
    models: list[Section] = []
    replays: list[tuple[str, dict[str, Any]]] = []
    played = [] if read_only else runs
    first = "busy with the first"
    with Progress("playing", len(played), "runs", quietly(quiet), first=first) as progress:
        for run in played:
            sections, episodes = _shown(run)
            whose = f"{run.name}: " if len(runs) > 1 else ""
            models += [replace(one, title=f"{whose}{one.title}") for one in sections]
            replays += episodes
            progress.advance(1, run.name)
    page = runs_page(runs, command, language, models, replays)
    folder = runs[0].run.pages if len(runs) == 1 else Path()
    return Found(runs, page, folder / "report.html")


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
