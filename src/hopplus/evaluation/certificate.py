"""Does it matter whom one plays with? Players who are shown, and players who are not.

Everyone learns by plain PPO, without memory, for as many steps. `oracle` is shown who the others
are and, where they remember the trial, what they are after; `blind` is not. Both learn as others do
in trials, among mixtures of some kinds of players that are drawn for each, the game's scripted ones
unless others are named. Among co-players of anyone else, another `oracle` has learned among all
such co-players that is asked for. `random` is a policy before its first update. And `best`, where
it is asked for, are best responses: as many players as there are lineups, each of whom has learned
among one of them alone.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.config import ConfigError
from hopplus.evaluation.kept import keep, kept_at
from hopplus.evaluation.reference_players import OnUpdate, ReferencePlayers
from hopplus.evaluation.references import References, read_references
from hopplus.evaluation.trials import beyond
from hopplus.learning.learner import Learner


@dataclass(frozen=True)
class Certificate(ReferencePlayers):
    """What is to be measured; `kinds` are drawn while oracle and blind learn."""

    best: bool = False  # also learn a best response to each lineup

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.others.sum() > self.config.ppo.games:
            raise ConfigError(
                f"--against names {self.others.sum()} lineups to learn among, but --ppo.games"
                f" are {self.config.ppo.games}: give more games or fewer lineups"
            )

    @property
    def about(self) -> dict[str, Any]:
        return {**super().about, **({"best": True} if self.best else {})}

    @cached_property
    def others(self) -> np.ndarray:
        """[K] bool, lineups with anyone who is not in the mixtures."""
        return beyond(self.lineups, self._kinds)

    @property
    def total_steps(self) -> int:
        """Environment steps of everyone who learns: oracle, blind, oracle among others, and best
        responses."""
        players = (3 if self.others.any() else 2) + self.best * len(self.lineups)
        return players * self.steps_of_each

    def kept_at(self, folder: Path) -> Path:
        """The file that keeps what is measured with these settings."""
        return kept_at(folder, self.about)

    def measure(self, folder: Path, on_update: OnUpdate) -> References:
        """Train and measure everyone, or read what an earlier call with these settings has kept."""
        path = self.kept_at(folder)
        if path.exists():
            on_update(self.total_steps, "read from an earlier call")
            return read_references(path)
        found = self._measured(on_update)
        keep(folder, self.about, found.as_json())
        return found

    def _measured(self, on_update: OnUpdate) -> References:
        table, _ = self.table, self._chosen  # raise if they must, before anyone learns
        # Each seed has a replica that is an oracle and one that is not, which begin alike.
        flags = [True, False]
        fresh, both = self._learned(self.drawing, None, flags, "oracle and blind", on_update)
        of_seeds = np.arange(self.config.seeds)[:, None]
        on_update(0, "measuring")
        returns = {
            "oracle": self._returns(both, 2 * of_seeds, oracle=True),
            "blind": self._returns(both, 2 * of_seeds + 1, oracle=False),
            "random": self._returns(fresh, 2 * of_seeds + 1, oracle=False),
        }
        if self.others.any():
            apart = self._facing(self._chosen[self.others])[None]
            _, among = self._learned(table, apart, [True], "oracle among others", on_update)
            on_update(0, "measuring")
            of_others = self._returns(among, of_seeds, oracle=True)
            returns["oracle"] = np.where(self.others[:, None], of_others, returns["oracle"])
        if self.best:
            returns["best"] = self.best_responses(on_update)
        lineups = [tuple(one) for one in self.lineups]
        background = self.about["background"]
        return References(
            self.config.game,
            lineups,
            **{name: found.mean(axis=-1) for name, found in returns.items()},
            background=background,
            by_episode=returns if self.conditional else {},
            kinds=self.kinds,
        )

    @cached_property
    def drawing(self) -> Learner:
        """Learns in the first seat; who sits in the others is drawn for each trial, of the game's
        scripted players."""
        return self._learner(self._kinds, self.config.trial)
