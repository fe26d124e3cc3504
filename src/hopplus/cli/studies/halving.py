"""Runs of many settings, all to the end, or by successive halving (Jamieson and Talwalkar, 2016):
all for a few steps, the better half of them for twice as many, and so on."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hopplus.api.training import extend, train_to_end
from hopplus.config import ConfigError, TrainConfig
from hopplus.evaluation.ablation import read_trace
from hopplus.learning.from_run import find_run, new_run
from hopplus.runs.executor import Executor, Task
from hopplus.runs.folder import RunFolder, open_run


@dataclass(frozen=True)
class Halving:
    """Settings by the names of their runs, and what each of them plays: halves are of those who
    play the same. With one rung, all are trained to the end.

    Who goes on is decided by what the logs say of a rung, so that whoever is stopped decides alike
    when it goes on.
    """

    folder: Path
    configs: Mapping[str, TrainConfig]
    tables: Mapping[str, str]
    rungs: int = 1

    def at(self, name: str, rung: int) -> TrainConfig:
        """Its settings for a rung, which are those for the last but for their steps."""
        config = self.configs[name]
        return replace(config, steps=config.steps // 2 ** (self.rungs - 1 - rung))

    def find(self) -> None:
        """Raise `ConfigError` if a run is there of other settings, or rungs do not differ."""
        for name, config in self.configs.items():
            if self.rungs > 1 and config.steps < config.ppo.steps * 2 ** (self.rungs - 1):
                raise ConfigError(
                    f"--halving is {self.rungs}, so the first rung of {name} has"
                    f" {self.at(name, 0).steps:,} steps, less than an update's {config.ppo.steps:,}"
                )
            self._find(name)

    def _find(self, name: str) -> RunFolder | None:
        """A run that is there may have come to any rung."""
        path, wanted = self.folder / name, [self.at(name, rung) for rung in range(self.rungs)]
        had = open_run(path).config().steps if path.exists() else None
        known = next((config for config in wanted if config.steps == had), wanted[0])
        return find_run(path, known, "another --name")

    def train(self, executor: Executor) -> dict[str, str]:
        """All rungs; why runs have failed, by name."""
        runs = {name: self._find(name) for name in self.configs}
        made = {name: run or self._make(name) for name, run in runs.items()}
        failed: dict[str, str] = {}
        left = list(made)
        for rung in range(self.rungs):
            for name in left:
                if made[name].config().steps < (wanted := self.at(name, rung).steps):
                    extend(made[name], wanted)
            tasks = [Task(name, (made[name],), train_to_end) for name in left]
            failed |= {task.what: why for task, why in executor.execute(tasks)}
            left = [name for name in left if name not in failed]
            if rung < self.rungs - 1:
                left = self._better_half(left, made, rung)
        return failed

    def _make(self, name: str) -> RunFolder:
        return new_run(self.folder / name, self.at(name, 0))

    def _better_half(self, left: list[str], made: Mapping[str, RunFolder], rung: int) -> list[str]:
        """Of every table, rounded up, in the order that they had."""
        scores = {}
        for name in left:
            updates = self.at(name, rung).updates
            scores[name] = read_trace(name, name, made[name], updates).late(updates).mean()
        kept: set[str] = set()
        for table in dict.fromkeys(self.tables[name] for name in left):
            own = [name for name in left if self.tables[name] == table]
            ranked = sorted(own, key=lambda name: -np.nan_to_num(scores[name], nan=-np.inf))
            kept |= set(ranked[: -(-len(own) // 2)])
        return [name for name in left if name in kept]
