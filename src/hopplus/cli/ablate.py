"""`hopplus ablate`: what does each part bring?"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from hopplus.cli.paged import this_command, written
from hopplus.config import GameConfig, NetConfig, TrainConfig, check, default_game, differing
from hopplus.evaluation.ablation import (
    LADDER,
    Row,
    Rung,
    choose,
    ladder_json,
    measure,
    read_trace,
    rung_run,
    write_ladder,
)
from hopplus.evaluation.ladder_picture import draw_ladder
from hopplus.evaluation.statistics import ENOUGH, Estimate
from hopplus.learning.train import Moment, train
from hopplus.report.ladder import ladder_page
from hopplus.report.summary import summarise
from hopplus.runs.folder import RunFolder, check_name
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line


@dataclass(frozen=True)
class Ablate:
    """Train the ladder from PPO to HOP+, a part more on every rung, and compare the rungs.

    The same command goes on where it was stopped, and trains nothing that is finished.
    """

    what: Annotated[Literal["ladder"], tyro.conf.Positional]
    """What to take apart: ladder."""
    game: GameConfig = field(default_factory=default_game)
    net: NetConfig = field(default_factory=NetConfig)
    games: Annotated[int, tyro.conf.arg(name="ppo.games")] = 256
    """Games side by side."""
    unroll: Annotated[int, tyro.conf.arg(name="ppo.unroll")] = 16
    """Steps of each game between updates."""
    steps: int = 500_000
    """Environment steps of each seed of each rung."""
    seeds: int = 5
    """Independent runs of each rung, side by side in one program."""
    seed: int = 0
    """The first seed; the others follow it."""
    rungs: tuple[str, ...] = tuple(LADDER)
    """Which rungs; differences are to the first of them in the ladder's order."""
    level: float = 2.8
    """The mean return that rungs race to."""
    name: str | None = None
    """Name of the ladder's folder; ladder and the time when not given."""
    runs: Path = Path("runs")
    """The folder that holds the ladder's own, which holds a run for each rung."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check(math.isfinite(self.level), "--level", self.level, "a number")
        rungs = choose(self.rungs)
        stamped = f"ladder-{time.strftime('%Y%m%d-%H%M%S')}"
        name = check_name(stamped if self.name is None else self.name)
        folder = self.runs / name
        settled = {short: self._settled(rung) for short, rung in rungs.items()}
        made = {short: rung_run(folder / short, config) for short, config in settled.items()}
        try:
            for short, run in made.items():
                climb(rungs[short].title, run)
        except KeyboardInterrupt:
            say(f"stopped; go on with the same command{'' if self.name else f' and --name {name}'}")
            return 130
        traces = [read_trace(short, run) for short, run in made.items()]
        rows = measure(traces, self.level)
        seeds = list(range(self.seed, self.seed + self.seeds))
        about = {"machine": device_line(), "steps": self.steps, "seeds": seeds}
        figures = ladder_json(rows, self.level, about)
        write_ladder(folder, figures)
        draw_ladder(folder / "ladder.png", traces, self.level)
        page = self._show(folder, rows, list(made.values()))
        if self.json:
            print(json.dumps({"folder": str(folder), "page": page, **figures}, indent=2))
            return 0
        print_rows(rows, f"{folder}, {self.seeds} seed{'s' * (self.seeds > 1)}", self.level)
        print_differences({rungs[short].title: config for short, config in settled.items()})
        if self.seeds == 1:
            print("one seed: no interval can be told")
        elif self.seeds < ENOUGH:
            print(f"with {self.seeds} of {ENOUGH} seeds the intervals are wide: too few to tell")
        print(f"all figures, the curves and the runs are in {folder}")
        if page:
            print(f"the page is {page}")
        return 0

    def _show(self, folder: Path, rows: Sequence[Row], runs: Sequence[RunFolder]) -> str | None:
        """Write the page; where it is, unless what it takes is not installed."""
        title = f"hopplus ablate: {folder}"
        return written(
            folder / "ladder.html",
            lambda: ladder_page(title, rows, summarise(runs), self.level, this_command()),
        )

    def _settled(self, rung: Rung) -> TrainConfig:
        """A rung's configuration with what all rungs have in common."""
        return replace(
            rung.config,
            game=self.game,
            net=self.net,
            ppo=replace(rung.config.ppo, games=self.games, unroll=self.unroll),
            steps=self.steps,
            seeds=self.seeds,
            seed=self.seed,
        )


def climb(title: str, run: RunFolder) -> None:
    """Train a rung to its end, with progress, unless it is there already."""
    if run.result():
        return
    config = run.config()
    total = config.updates * config.ppo.steps
    with Progress(f"training {title}", total, "steps", where=run.path) as progress:

        def show(moment: Moment) -> None:
            note = "" if moment.mean_return is None else f"return {moment.mean_return:.2f}"
            progress.advance(moment.steps - progress.done, note)

        train(run, show)


def print_rows(rows: Sequence[Row], title: str, level: float) -> None:
    """One table at equal steps, one at equal wall time."""
    first = rows[0].title
    steps = _table(
        f"{title}: at equal steps",
        ("return ± 95%", f"- {first}", f"steps\nto {level:g}", "ratio", "value\nloss"),
    )
    times = _table(
        f"{title}: at equal wall time, that of {first} without compilation",
        ("s/update", "ratio", "updates", "return ± 95%", f"- {first}"),
    )
    for row in rows:
        other = row is not rows[0]
        steps.add_row(
            row.title,
            _said(row.mean_return),
            _said(row.difference) if other else "",
            f"{row.steps_to_level:,}" if row.steps_to_level else "never",
            f"{row.steps_ratio:.2f}" if row.steps_ratio else "",
            f"{row.value_loss:.3f}",
        )
        times.add_row(
            row.title,
            f"{row.seconds_per_update:.3g}",
            f"{row.seconds_ratio:.2f}",
            f"{row.timed_updates:,}/{row.updates:,}",
            _said(row.timed_return),
            _said(row.timed_difference) if other else "",
        )
    console = Console()
    console.print(steps)
    console.print(times)
    print("returns over the last tenth; differences are of the same seeds; intervals of 95%")


def print_differences(configs: Mapping[str, TrainConfig]) -> None:
    """The settings in which each rung differs from the first, whose values stand in brackets."""
    first, *others = configs
    for title in others:
        found = differing([configs[first], configs[title]])
        pairs = [f"{name} {_setting(b)} ({_setting(a)})" for name, (a, b) in found.items()]
        print(f"{title} differs from {first} in {', '.join(pairs) or 'nothing'}")


def _setting(value: object) -> str:
    return ("+".join(value) or "none") if isinstance(value, tuple) else str(value)


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("rung", min_width=12)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _said(value: Estimate | None) -> str:
    return "?" if value is None else str(value)
