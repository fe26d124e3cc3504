"""`hopplus train` and `hopplus resume`: runs."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from hopplus.cli.pretrain import carry_on_pretrain
from hopplus.config import TrainConfig
from hopplus.evaluation.statistics import seat_order_test
from hopplus.learning.restore import learns_everywhere, new_run
from hopplus.learning.train import Moment, train
from hopplus.presets import ABOUT, PRESETS
from hopplus.runs.folder import RunFolder, open_run
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say

Preset = tyro.extras.subcommand_type_from_defaults(dict(PRESETS), dict(ABOUT))


@dataclass(frozen=True)
class Train:
    """Train players and keep everything about it in a run folder."""

    config: Annotated[Preset, tyro.conf.arg(name="", help="What to train.")]  # type: ignore[valid-type]
    name: str | None = None
    """Name of the run; run and the time when not given."""
    runs: Path = Path("runs")
    """The folder that holds the runs."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        config: TrainConfig = self.config
        config.search.check_asked()
        stamp = time.strftime("%Y%m%d-%H%M%S")
        run = new_run(self.runs / (self.name or f"run-{stamp}"), config)
        return carry_on(run, self.json)


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was stopped, as if it had not been."""

    run_folder: Annotated[Path, tyro.conf.Positional]
    """The run's folder."""
    data: Path | None = None
    """Where the recorded play of a run of `hopplus pretrain` is now, if it was moved."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        run = open_run(self.run_folder)
        if run.kind == TrainConfig.kind:
            return carry_on(run, self.json)
        return carry_on_pretrain(run, self.json, self.data)


def carry_on(run: RunFolder, as_json: bool) -> int:
    """Train to the end, with progress; Ctrl-C leaves a run that can be resumed."""
    config = run.config()
    with Progress("training", config.updates * config.ppo.steps, "steps") as progress:

        def show(moment: Moment) -> None:
            note = ""
            if moment.returns is not None:
                seats = " ".join(f"{value:.2f}" for value in moment.returns)
                note = f"return {moment.returns.mean():.2f} (seats {seats})"
            progress.advance(moment.steps - progress.done, note)

        try:
            result = train(run, show)
        except KeyboardInterrupt:
            say(f"stopped; go on with: hopplus resume {run.path}")
            return 130
    returns = np.array(result["returns"])
    chance = seat_order_test(returns) if len(returns) > 1 and learns_everywhere(config) else None
    result = {**result, "seat_order_p": chance}
    if as_json:
        print(json.dumps({"run": str(run.path), **result}, indent=2))
        return 0
    table = Table(title=f"{run.path}, {result['steps']:,} steps", title_justify="left")
    table.add_column("seed", justify="right")
    for seat in range(config.game.seats):
        table.add_column(f"seat {seat}", justify="right")
    table.add_column("mean", justify="right")
    for seed, seats in zip(result["seeds"], result["returns"], strict=True):
        mean = sum(seats) / len(seats)
        table.add_row(str(seed), *(f"{value:.3f}" for value in seats), f"{mean:.3f}")
    Console().print(table)
    if chance is not None:
        print(f"seats differ as much as they do with chance {chance:.3f} if they are all alike")
    print(
        f"returns over the last tenth; mean {result['mean_return']:.3f}, value loss"
        f" {result['value_loss']:.3f}; {result['seconds']:.0f} s, of which"
        f" {result['first_update_seconds']:.0f} s until the first update (compilation)"
        + (f", then {rate:,.0f} steps/s" if (rate := result["steps_per_second"]) else "")
    )
    return 0
