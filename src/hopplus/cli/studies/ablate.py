"""`hopplus ablate`: what does each part bring?"""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hopplus.api.training import train_to_end
from hopplus.cli.paged import show
from hopplus.cli.reading.devices import Devices, TrainedOn
from hopplus.cli.studies.engine import Engine, TrainedBy
from hopplus.config import GameConfig, NetConfig, TrainConfig, check, default_game
from hopplus.evaluation.ablation import LADDER, Rung, choose, measure, read_trace
from hopplus.learning.from_run import find_run, new_run
from hopplus.report.figures.evaluation import draw_ladder
from hopplus.report.figures.palette import try_figure
from hopplus.report.pages.ladder import ladder_page, write_ladder
from hopplus.report.pages.summary import summarise
from hopplus.runs.executor import Task
from hopplus.runs.folder import RunError, check_name
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line


@dataclass(frozen=True)
class Ablate:
    """Train the ladder from PPO to HOP+, adding one part on every rung, and compare the rungs.

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
    trained_by: TrainedBy = field(default_factory=Engine)
    on: Annotated[TrainedOn, tyro.conf.arg(name="")] = field(default_factory=TrainedOn)
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check(math.isfinite(self.level), "--level", self.level, "a number")
        rungs = choose(self.rungs)
        stamped = f"ladder-{time.strftime('%Y%m%d-%H%M%S')}"
        name = check_name(stamped if self.name is None else self.name)
        folder = self.runs / name
        here = self.trained_by.engine == "here"
        held = here or self.on.devices in (1, "auto")
        allowed = "auto or 1 with --engine ray, which has --gpus-per-run"
        check(held, "--devices", self.on.devices, allowed)
        executor = self.trained_by.make()
        settled = {short: self._settled(rung) for short, rung in rungs.items()}
        try:
            with self.on.used(*settled.values()) if here else Devices().used(*settled.values()):
                made = {
                    short: find_run(folder / short, config, "another --name")
                    or new_run(folder / short, config)
                    for short, config in settled.items()
                }
                tasks = [
                    Task(rungs[short].title, (run,), train_to_end) for short, run in made.items()
                ]
                failed = executor.execute(tasks)
        except KeyboardInterrupt:
            say(f"stopped; go on with the same command{'' if self.name else f' and --name {name}'}")
            return 130
        if failed:
            raise RunError(failed[0].why)
        traces = [read_trace(short, rungs[short].title, run) for short, run in made.items()]
        rows = measure(traces, self.level)
        figures = {
            "level": self.level,
            "differences_to": rows[0].name,
            "machine": device_line(),
            "steps": self.steps,
            "seeds": list(range(self.seed, self.seed + self.seeds)),
            "rungs": rows,
        }
        write_ladder(folder, figures)
        try_figure(folder / "ladder.png", lambda: draw_ladder(traces, self.level))
        title, summaries = f"hopplus ablate: {folder}", summarise(list(made.values()))
        return show(
            ladder_page(title, rows, summaries, self.level, figures),
            as_json=self.json,
            html=folder / "ladder.html",
            hints=[f"all figures, the curves and the runs are in {folder}"],
            folder=str(folder),
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
