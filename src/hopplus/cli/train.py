"""`hopplus train` and `hopplus resume`: runs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from hopplus.api.training import begin, extend, finish
from hopplus.cli.paged import show
from hopplus.cli.pretrain import carry_on_pretrain
from hopplus.cli.reading.devices import Processes
from hopplus.config import ConfigError, TrainConfig, to_toml
from hopplus.learning.from_run import names_met
from hopplus.learning.train import summary
from hopplus.play.seating import options
from hopplus.presets import ABOUT, PRESETS, about_preset
from hopplus.report.page import Page, Section
from hopplus.report.pages.summary import order_p_value
from hopplus.runs.folder import RunFolder, open_run
from hopplus.runs.processes import first_only
from hopplus.runs.watchdog import say

Preset = tyro.extras.subcommand_type_from_defaults(dict(PRESETS), dict(ABOUT))
OWN = "own"  # what a preset from outside is called among the others
MOST_NAMED = 6  # of a seat's possible players above a column: the report names them all


def own_preset(name: str, config: TrainConfig) -> Any:
    """The type of the choice there is where a preset from outside is named, or one that a file
    changes."""
    return tyro.extras.subcommand_type_from_defaults(
        {OWN: config, **PRESETS}, {OWN: about_preset(name), **ABOUT}
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
    config_file: Annotated[Path | None, tyro.conf.arg(name="config")] = None
    """Settings in TOML, as --print-config writes them; options go on top."""
    print_config: Literal["changed", "all"] | None = None
    """Print settings that differ from the defaults as TOML, or all, and end."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        if self.print_config:
            print(to_toml(self.config, everything=self.print_config == "all"), end="")
            return 0
        with self.on.used(self.config):
            return carry_on(begin(self.config, self.name, self.runs), self.json)


@dataclass(frozen=True)
class Resume:
    """Resume a stopped run, bit for bit; or make a finished one longer."""

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
        run.check_own()
        if run.kind != TrainConfig.kind:
            if self.steps is not None:
                raise ConfigError(f"--steps is given, but {run.path} is fitted by epochs")
            if self.on not in (Processes(), Processes(devices=1)):
                raise ConfigError(f"--devices is for runs of training, which {run.path} is not")
            return carry_on_pretrain(run, self.json, self.data)
        if self.data is not None:
            raise ConfigError(f"--data is given, but {run.path} plays for itself: leave it out")
        with self.on.used(run.config(), before=run.trained_on()):
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


def carry_on(run: RunFolder, as_json: bool) -> int:
    """Train to the end, with progress; Ctrl-C leaves a run that can be resumed."""
    try:
        result = finish(run)
    except KeyboardInterrupt:
        return 130
    show_result(run, result, as_json)
    return 0


def show_result(run: RunFolder, result: dict[str, Any], as_json: bool) -> None:
    """What came of the run, on stdout."""
    config = run.config()
    result = {**result, "seat_order_p": order_p_value(config, np.array(result["returns"]))}
    show(result_page(run, config, result), as_json=as_json, run=str(run.path))


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
