"""`hopplus train` and `hopplus resume`: runs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from hopplus.cli.paged import show
from hopplus.cli.pretrain import carry_on_pretrain
from hopplus.cli.reading.devices import Processes
from hopplus.config import ConfigError, TrainConfig
from hopplus.learning.from_run import names_met, new_run
from hopplus.learning.left_out import LeftOut
from hopplus.learning.train import Moment, summary, train_side_by_side
from hopplus.play.seating import options
from hopplus.presets import ABOUT, PRESETS, about_preset
from hopplus.report.page import Page, Section
from hopplus.report.pages.summary import order_p_value
from hopplus.runs.checkpoint import steps_of
from hopplus.runs.executor import Tell, telling
from hopplus.runs.folder import RunFolder, check_name, open_run
from hopplus.runs.processes import first_only, said_by_first
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say

Preset = tyro.extras.subcommand_type_from_defaults(dict(PRESETS), dict(ABOUT))
OWN = "own"  # what a preset from outside is called among the others
MOST_NAMED = 6  # of a seat's possible players above a column: the report names them all


def own_preset(name: str) -> Any:
    """The type of the choice there is where a preset from outside is named."""
    return tyro.extras.subcommand_type_from_defaults(
        {OWN: PRESETS[name], **PRESETS}, {OWN: about_preset(name), **ABOUT}
    )


@dataclass(frozen=True)
class Train:
    """Train players and keep everything about it in a run folder."""

    config: Annotated[Preset, tyro.conf.arg(name="", help="What to train.")]  # type: ignore[valid-type]
    name: str | None = None
    """Name of the run; run and the time when not given."""
    runs: Path = Path("runs")
    """The folder that holds the runs."""
    on: Annotated[Processes, tyro.conf.arg(name="")] = field(default_factory=Processes)
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        config: TrainConfig = self.config
        config.search.check_asked()
        name = f"run-{time.strftime('%Y%m%d-%H%M%S')}" if self.name is None else self.name
        with self.on.used(config):
            path = self.runs / check_name(said_by_first(name))
            with first_only() as first:
                run = new_run(path, config) if first else RunFolder(path)
            return carry_on(run, self.json)


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped, as if it had not been; or make a finished one longer."""

    run_folder: Annotated[Path, tyro.conf.Positional]
    """The run's folder."""
    steps: int | None = None
    """Environment steps of each seed that the run is to have in the end, if more than before. The
    learning rate and the entropy bonus then fall over the new length, so they rise again here."""
    data: Path | None = None
    """Where the recorded play of a run of `hopplus pretrain` is now, if it was moved."""
    on: Annotated[Processes, tyro.conf.arg(name="")] = field(default_factory=Processes)
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        run = open_run(self.run_folder)
        if run.kind != TrainConfig.kind:
            if self.steps is not None:
                raise ConfigError(f"--steps is given, but {run.path} is fitted by epochs")
            if self.on != Processes():
                raise ConfigError(f"--devices is for runs of training, which {run.path} is not")
            return carry_on_pretrain(run, self.json, self.data)
        if self.data is not None:
            raise ConfigError(f"--data is given, but {run.path} plays for itself: leave it out")
        with self.on.used(run.config()):
            return self._go_on(run)

    def _go_on(self, run: RunFolder) -> int:
        if self.steps is not None:
            with first_only() as first:
                if first:
                    extend(run, self.steps)
        elif found := run.result():
            config = run.config()
            done = config.updates * config.ppo.steps
            more = f"hopplus resume {run.path} --steps {2 * done:.0e}"
            say(f"{run.path} is finished, after {done:,} steps; to go on: {more}")
            # Figures from the log, as a result of an older version may lack some.
            show_result(run, found | summary(run, config), self.json)
            return 0
        return carry_on(run, self.json)


def extend(run: RunFolder, steps: int) -> None:
    """Let a run have so many steps in the end."""
    config = run.config()
    longer = replace(config, steps=steps)
    done = steps_of(run.checkpoints)
    has = ""
    if longer.updates <= config.updates and run.result():
        has = f"has {config.updates * config.ppo.steps:,}"
    elif done and longer.updates < done[-1]:
        has = f"has come to {done[-1] * config.ppo.steps:,}"
    if has:
        raise ConfigError(f"--steps is {steps:,}, and {run.path} {has} already: give more to go on")
    with run.locked():
        run.extend(longer)


def carry_on(run: RunFolder, as_json: bool) -> int:
    """Train to the end, with progress; Ctrl-C leaves a run that can be resumed."""
    run.log_until(max(steps_of(run.checkpoints), default=0))  # raises before work is announced
    config = run.config()
    total = config.updates * config.ppo.steps
    try:
        with Progress("training", total, "steps", where=run.path) as progress:
            (result,) = train_to_end([run], telling(progress))
    except KeyboardInterrupt:  # out here, where the bar is gone
        say(f"stopped; go on with: hopplus resume {run.path}")
        return 130
    show_result(run, result, as_json)
    return 0


def train_to_end(
    runs: Sequence[RunFolder], tell: Tell, everyone: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Train a run, or several that each leave one of everyone out; their results. It can be sent to
    another process, as the work of an executor."""
    left_out = LeftOut.of(runs, everyone) if len(runs) > 1 else None
    return train_side_by_side(runs, left_out, lambda moment: tell(moment.steps, note_on(moment)))


def show_result(run: RunFolder, result: dict[str, Any], as_json: bool) -> None:
    """What came of the run, on stdout."""
    config = run.config()
    result = {**result, "seat_order_p": order_p_value(config, np.array(result["returns"]))}
    show(result_page(run, config, result), as_json=as_json, run=str(run.path))


def note_on(moment: Moment) -> str:
    """The learners' mean return, and that of every seat, learners marked if not all are."""
    if moment.returns is None:
        return ""
    partly = len(moment.learning) < len(moment.returns)
    seats = " ".join(
        f"{value:.2f}{'*' if partly and seat in moment.learning else ''}"
        for seat, value in enumerate(moment.returns)
    )
    return f"return {moment.mean_return:.2f} (seats {seats})"


def result_page(run: RunFolder, config: TrainConfig, result: dict[str, Any]) -> Page:
    """What came of the run: of every seat, and the mean of the learners."""
    learning = result["learning_seats"]
    names = [
        name if (count := len(options(name))) <= MOST_NAMED else f"one of {count}"
        for name in names_met(config, run.facts())
    ]
    partly = len(learning) < len(names)
    seats = [
        f"seat {seat}" + (f"\n{'* ' * (seat in learning)}{name}" if partly else "")
        for seat, name in enumerate(names)
    ]
    rows = zip(result["seeds"], result["returns"], result["mean_return_by_seed"], strict=True)
    table = Section(
        f"{run.path}, {result['steps']:,} steps",
        header=["seed", *seats, "mean\nof *" if partly else "mean"],
        rows=[[str(seed), *returns, mean] for seed, returns, mean in rows],
    )
    lines = []
    if (p_value := result["seat_order_p"]) is not None:
        lines.append(f"do seats differ? p = {p_value:.3f} if all are alike (permutation test)")
    whose = "of the learning seats (*) " if partly else ""
    lines.append(
        f"returns over the last tenth; mean {whose}{result['mean_return']:.3f}, value loss"
        f" {result['value_loss']:.3f}; {result['seconds']:.0f} s, of which"
        f" {result['first_update_seconds']:.0f} s until the first update (compilation)"
        + (f", then {rate:,.0f} steps/s" if (rate := result["steps_per_second"]) else "")
    )
    return Page(str(run.path), "", lines=lines, sections=[table], payload=result)
