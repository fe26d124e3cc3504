"""What does an update of HOP+ cost, beside one of PPO on as much play? And how does it grow?"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import numpy as np

from hopplus.config import TrainConfig
from hopplus.learning.programs import first_and_next
from hopplus.learning.restore import make_learner


@dataclass(frozen=True)
class UpdateCost:
    """Mean seconds of an update, both measured in turn."""

    what: str  # what is varied
    size: int
    ppo: float
    other: float

    @property
    def ratio(self) -> float:
        return self.other / self.ppo

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}


class Updating:
    """A learner that goes on, update by update, once nothing is too early any more."""

    def __init__(self, config: TrainConfig) -> None:
        config = replace(config, imagine=replace(config.imagine, warm_up=0))
        learner = make_learner(config, {})
        self._learning, self._update = first_and_next(learner, config)
        self.advance(2)

    def advance(self, updates: int) -> float:
        """Seconds of so many updates."""
        began = time.perf_counter()
        for _ in range(updates):
            self._learning, metrics = self._update(self._learning)
        jax.block_until_ready((self._learning, metrics))
        return time.perf_counter() - began


def measure_update(
    what: str, size: int, ppo: TrainConfig, other: TrainConfig, rounds: int, updates: int = 4
) -> UpdateCost:
    """Rounds of a few updates of one and then the other, so that a machine's moods hit both alike;
    the medians over rounds."""
    runs = [Updating(ppo), Updating(other)]
    spent = np.array([[run.advance(updates) for run in runs] for _ in range(rounds)])
    mean = np.median(spent, axis=0) / updates
    return UpdateCost(what, size, float(mean[0]), float(mean[1]))


def cost_curve(
    ppo: TrainConfig,
    other: TrainConfig,
    rounds: int,
    on_cost: Callable[[UpdateCost], None] = lambda cost: None,
) -> list[UpdateCost]:
    """As configured, then with more games, more seats, and more imagined steps."""
    costs = []

    def add(what: str, size: int, one: TrainConfig, two: TrainConfig) -> None:
        costs.append(measure_update(what, size, one, two, rounds))
        on_cost(costs[-1])

    for games in (64, 128, 256, 512):
        pair = [replace(c, ppo=replace(c.ppo, games=games)) for c in (ppo, other)]
        add("games", games, *pair)
    for seats in (2, 4, 6, 8):
        game: Any = replace(ppo.game, seats=seats)
        pair = [replace(c, game=replace(game, size=5)) for c in (ppo, other)]
        add("seats", seats, *pair)
    for steps in (1, 2, 4):  # imagined ones for each real one
        imagine = replace(other.imagine, real_ratio=1 / (1 + steps))
        add("imagined", steps, ppo, replace(other, imagine=imagine))
    return costs
