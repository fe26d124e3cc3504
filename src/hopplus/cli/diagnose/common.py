"""What diagnoses have in common on the command line: whom those are about that train, and how all
end, with figures saved, a page written, and the verdict said."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hopplus.api.learned import neither
from hopplus.cli.paged import draw_page, this_command
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, GameConfig, TrainConfig, default_game
from hopplus.config.check import option
from hopplus.diagnosis.faults import FAULTS, Fault, find_fault
from hopplus.diagnosis.finding import Diagnosis
from hopplus.diagnosis.subject import (
    OnLesson,
    OnStep,
    Subject,
    make_laboratory,
    restore_subject,
    train_subject,
)
from hopplus.learning.from_run import seat_names
from hopplus.play.names import is_background
from hopplus.presets import PRESETS
from hopplus.report.page import Page, Section
from hopplus.report.terminal import print_sections
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import RunFolder, clear_errors, open_run

FAULT_HELP = f"Build a fault into the preset, to see it found: {', '.join(FAULTS)}."
MARKS = {"fine": "good", "fault": "bad", "unknown": "unknown"}  # as pages name them


@dataclass(frozen=True)
class Opened:
    """A run, or a preset that is to be trained first."""

    config: TrainConfig
    fault: Fault  # built in
    run: RunFolder | None = None

    def __post_init__(self) -> None:
        averse = [name for name in self.config.ppo.social if name != "ppo.prosociality"]
        if averse:
            raise ConfigError(
                "a diagnosis computes anew what seats are rewarded with, but not what"
                f" {option(averse[0])} adds"
            )
        if self.config.ppo.lola.step:
            raise ConfigError(
                "a diagnosis holds what a seat learns against its own play, but with"
                " --ppo.lola.step it learns from the other's, too"
            )

    @property
    def updates(self) -> int:
        """That are trained first."""
        return 0 if self.run else self.config.updates


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
    fault: Annotated[str | None, tyro.conf.arg(help=FAULT_HELP)] = None
    out: Path | None = None
    """Folder for the page and the JSON file; when not given, `diagnosis` in the run, or here."""
    json: bool = False
    """Print JSON instead of words."""

    @property
    def _is_preset(self) -> bool:
        return self.subject in PRESETS

    def _open(self, steps: int) -> Opened:
        """Whom it is about, after everything that was given is checked; a preset is to be trained
        for so many steps, unless others are given."""
        check_options(seed=self.seed, steps=self.steps)
        if self._is_preset:
            config = PRESETS[self.subject]
            config = replace(config, game=self.game, steps=self.steps or steps, seed=self.seed)
            return Opened(config, find_fault(self.fault, config))
        if not Path(self.subject).exists() and not is_background(self.subject):
            raise ConfigError(f"{neither(self.subject)}; presets are {', '.join(PRESETS)}")
        self._refuse_training("a run has its own: it is for presets")
        run = open_run(Path(self.subject))
        run.check_own()  # a diagnosis goes on training
        seat_names(run.config())  # a run of training, not of one model
        return Opened(run.config(), find_fault(None, run.config()), run)

    def _refuse_training(self, why: str) -> None:
        """Raise `ConfigError` for options of presets alone."""
        given = {
            "--game": self.game != default_game(),
            "--steps": self.steps,
            "--fault": self.fault,
        }
        if wrong := [name for name, held in given.items() if held]:
            raise ConfigError(f"{wrong[0]} is given, but {why}")

    def _make_subject(
        self,
        opened: Opened,
        replicas: int,
        on_step: OnStep,
        steady: bool = False,
        on_lesson: OnLesson = lambda update, lesson: None,
    ) -> Subject:
        """The run as it was left, or the preset, trained now."""
        if opened.run:
            return restore_subject(opened.run, replicas, steady)
        laboratory = make_laboratory(opened.config, opened.fault, replicas)
        return train_subject(self.subject, laboratory, self.seed, on_step, on_lesson=on_lesson)

    def _page(self, name: str) -> Path:
        """Where the page goes: into the run, unless a folder is given."""
        run = Path(self.subject) if not self._is_preset and Path(self.subject).exists() else Path()
        return (self.out or run / "diagnosis") / name


def make_page(name: str, found: Diagnosis, sections: Sequence[Section]) -> Page:
    """The verdict, `sections` with tables and pictures, and all checks."""
    verdict = found.verdict
    answer = "Healthy" if verdict.healthy else f"{verdict.name}: {verdict.headline}"
    lines = [verdict.headline] if verdict.healthy else [verdict.evidence, verdict.advice]
    if verdict.also:
        lines.append(f"Also found, perhaps because of it: {', '.join(verdict.also)}.")
    checks = [Section(check.title, check.text, MARKS[check.state]) for check in found.checks]
    title, mark = f"hopplus diagnose {name}: {found.subject}", MARKS[verdict.state]
    return Page(title, answer, mark, lines, this_command(), [*sections, *checks])


def finish(
    name: str,
    path: Path,
    found: Diagnosis,
    draw: Callable[[], Sequence[Section]],
    as_json: bool,
    tables: Sequence[Section] = (),
) -> int:
    """Save the figures as JSON next to the page, then draw the page, and say the verdict; `tables`
    are said before it. The exit status is that of a diagnosis that was made, whatever it says.

    In this order, because pictures can fail: whatever happens to them, what was found is kept.
    """
    figures = found.as_json()
    saved, refused = path.with_suffix(".json"), None
    try:
        with clear_errors(f"write {saved}"):
            saved.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(figures, indent=2, allow_nan=False)
            write_durably(saved, text.encode())
    except ConfigError as error:  # the disk refuses: say what was found all the same
        refused = error
    drawn = None if refused else draw_page(path, lambda: make_page(name, found, draw()))
    if as_json:
        print(json.dumps({"page": drawn, **figures}, indent=2))
    else:
        page = make_page(name, found, tables)
        print_sections(page.sections)
        console = Console(highlight=False)
        console.print()
        verdict = f"Verdict: {page.answer} ({found.verdict.area})."
        console.print(verdict, style="bold", markup=False)
        for line in page.lines:
            console.print(line, markup=False)
        if not refused:
            print(f"Pictures and everything else: {drawn}" if drawn else f"All figures: {saved}")
    if refused:
        raise refused
    return 0
