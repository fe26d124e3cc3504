"""`hopplus bench faults`: does each diagnosis name what is wrong?"""

import json
from dataclasses import dataclass, field
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from hopplus.bench.faults import NONE, FaultBench
from hopplus.cli.options import check_positive
from hopplus.config import MANY, ConfigError, GameConfig, check_range, default_game
from hopplus.diagnosis.faults import FAULTS
from hopplus.presets import PRESETS
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line


@dataclass(frozen=True)
class BenchFaults:
    """Build every fault in, over many seeds, and count how often each diagnosis names it."""

    seeds: int = 20
    """Diagnoses of each fault, no two with a seed in common."""
    faults: tuple[str, ...] = ()
    """Which faults; none is the run without any. All when not given."""
    runs: int = 5
    """Runs side by side in a diagnosis of seats."""
    steps: int = 40_000
    """Environment steps of each run."""
    episodes: int = 10_000
    """Episodes for each kind of player that the game is tried with."""
    updates: int = 6
    """Updates of each experiment in a diagnosis of the value loss."""
    games: Annotated[int, tyro.conf.arg(name="ppo.games")] = 128
    """Games side by side in a diagnosis of the value loss."""
    game: GameConfig = field(default_factory=default_game)
    seats_preset: str = "ppo"
    """What the diagnosis of seats is tried on."""
    value_preset: str = "hop-plus"
    """What the diagnosis of the value loss is tried on."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(seeds=self.seeds, runs=self.runs, steps=self.steps, episodes=self.episodes)
        check_positive(updates=self.updates)
        check_range("ppo.games", self.games, 1, MANY)
        for name in (self.seats_preset, self.value_preset):
            if name not in PRESETS:
                raise ConfigError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
        for name in self.faults:
            if name not in FAULTS and name != NONE:
                raise ConfigError(f"no fault {name!r}; there are {NONE}, {', '.join(FAULTS)}")
        bench = FaultBench(
            self.seeds,
            self.runs,
            self.steps,
            self.episodes,
            self.updates,
            self.games,
            self.game,
            self.seats_preset,
            self.value_preset,
        )
        wanted = self.faults or (NONE, *FAULTS)
        kinds = sum(
            2 if name == NONE else bool(FAULTS[name].seats) + bool(FAULTS[name].value_loss)
            for name in wanted
        )
        with Progress(
            "diagnosing", kinds * self.seeds, "diagnoses", first="busy with the first"
        ) as progress:
            found = list(bench.trials(self.faults, lambda note: progress.advance(1, note)))
        if self.json:
            rows = [trials.as_json() for trials in found]
            print(json.dumps({"machine": device_line(), "trials": rows}, indent=2))
            return 0
        table = Table(title=f"{self.seeds} seeds; {device_line()}", title_justify="left")
        for name in ("diagnose", "fault", "should say", "said so", "also said", "seconds each"):
            table.add_column(name, justify="left" if name in ("diagnose", "fault") else "right")
        for trials in found:
            others = {name: count for name, count in trials.said.items() if name != trials.expected}
            said = ", ".join(f"{name} {count}" for name, count in others.items())
            table.add_row(
                trials.command,
                trials.fault,
                trials.expected,
                f"{trials.right}/{trials.count}",
                said,
                f"{trials.seconds:.1f}",
            )
        Console().print(table)
        return 0
