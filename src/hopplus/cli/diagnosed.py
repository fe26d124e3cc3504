"""What the diagnoses have in common on the command line: their subject, and how they end."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from hopplus.cli.options import check_positive, check_seed
from hopplus.cli.paged import this_command, written
from hopplus.config import ConfigError, GameConfig, TrainConfig, default_game
from hopplus.diagnosis.faults import Fault, find_fault
from hopplus.diagnosis.finding import Check, Verdict
from hopplus.diagnosis.measures import finite
from hopplus.learning.names import is_guest
from hopplus.learning.restore import seat_names
from hopplus.presets import PRESETS
from hopplus.report.page import Page, Section
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import RunFolder, clear_errors, open_run

SIGNS = {"fine": "✓", "fault": "✗", "unknown": "?"}
MARKS = {"fine": "good", "fault": "bad", "unknown": "unknown"}  # as pages name them


@dataclass(frozen=True)
class Diagnosing:
    """Options of every diagnosis that trains."""

    subject: Annotated[str, tyro.conf.Positional]
    """A run's folder, or a preset, which is trained for a while."""
    game: GameConfig = field(default_factory=default_game)
    steps: int | None = None
    """Environment steps that a preset is trained for, of each seed; fewer with --quick."""
    seed: int = 0
    """Seed of everything random."""
    quick: bool = False
    """A rough answer in under two minutes."""
    fault: str | None = None
    """Build a fault into the preset, to see it found: strength, first-seat, half-updates,
    step-size, logged-elsewhere, gone-kept, loud-world, zero-goals."""
    out: Path | None = None
    """Folder for the page and the JSON file; when not given, `diagnosis` in the run, or here."""
    json: bool = False
    """Print JSON instead of words."""

    def _check(self) -> None:
        check_seed(self.seed)
        if self.steps is not None:
            check_positive(steps=self.steps)

    def _preset(self, steps: int) -> tuple[TrainConfig, Fault]:
        """The preset's configuration with the game and the steps, and the fault to build in."""
        config = PRESETS[self.subject]
        config = replace(config, game=self.game, steps=self.steps or steps, seed=self.seed)
        return config, find_fault(self.fault, config)

    def _run(self) -> RunFolder:
        """The run that is named; its own game and steps are what counts."""
        if not Path(self.subject).exists() and not is_guest(self.subject):
            near = get_close_matches(self.subject, PRESETS, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ConfigError(
                f"{self.subject!r} is neither a run's folder nor a preset{hint}; presets are"
                f" {', '.join(PRESETS)}"
            )
        given = {
            "--game": self.game != default_game(),
            "--steps": self.steps,
            "--fault": self.fault,
        }
        if wrong := [name for name, held in given.items() if held]:
            raise ConfigError(f"{wrong[0]} is given, but a run has its own: it is for presets")
        run = open_run(Path(self.subject))
        seat_names(run.config())  # a run of training, not of one model
        return run

    def _folder(self) -> Path:
        if self.out:
            return self.out
        return Path(self.subject) / "diagnosis" if self._is_run else Path("diagnosis")

    @property
    def _is_run(self) -> bool:
        return self.subject not in PRESETS and Path(self.subject).exists()


def finish(
    name: str,
    page: Path,
    verdict: Verdict,
    checks: Sequence[Check],
    figures: dict[str, Any],
    draw: Callable[[], Sequence[Section]],
    as_json: bool,
) -> None:
    """Save the figures as JSON beside the page, then draw the page, and say the verdict.

    In this order, because pictures can fail: whatever happens to them, what was found is kept.
    """
    answer = "Healthy" if verdict.healthy else f"{verdict.name}: {verdict.headline}"
    lines = [verdict.headline] if verdict.healthy else [verdict.evidence, verdict.advice]
    if verdict.also:
        lines.append(f"Also found, perhaps because of it: {', '.join(verdict.also)}.")
    saved, refused = page.with_suffix(".json"), None
    try:
        _save(saved, figures)
    except ConfigError as error:  # the disk refuses: say what was found all the same
        refused = error

    def made() -> Page:
        return Page(
            f"hopplus diagnose {name}: {figures['subject']}",
            answer,
            MARKS[verdict.state],
            lines,
            this_command(),
            [*draw(), *map(_section, checks)],
        )

    drawn = None if refused else written(page, made)
    if as_json:
        print(json.dumps({"page": drawn, **finite(figures)}, indent=2))
    else:
        _print(verdict, checks, answer, lines)
        if not refused:
            print(f"Pictures and everything else: {drawn}" if drawn else f"All figures: {saved}")
    if refused:
        raise refused


def _save(path: Path, figures: dict[str, Any]) -> None:
    text = json.dumps(finite(figures), indent=2, allow_nan=False)
    with clear_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text.encode())


def _print(verdict: Verdict, checks: Sequence[Check], answer: str, lines: Sequence[str]) -> None:
    console = Console(highlight=False, soft_wrap=False)
    for check in checks:
        console.print(f"{SIGNS[check.state]} {check.title}", style="bold", markup=False)
        console.print(f"  {said(check)}", markup=False)
    console.print()
    console.print(f"Verdict: {answer} ({verdict.area}).", style="bold", markup=False)
    for line in lines:
        console.print(line, markup=False)


def _section(check: Check) -> Section:
    return Section(check.title, said(check), MARKS[check.state])


def said(check: Check) -> str:
    """What a check says and, where it could not tell, what to do to find out."""
    return f"{check.says} {check.unknown}" if check.state == "unknown" else check.says
