"""`hopplus bench update`: what an update of HOP+ costs beside one of PPO on as much play."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import GameConfig, TrainConfig, default_game
from hopplus.learning.compilation import first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.presets import PRESETS
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line

Pair = tuple[TrainConfig, TrainConfig]


@dataclass(frozen=True)
class BenchUpdate:
    """What an update of HOP+ costs beside one of PPO on as much play, and how both grow."""

    game: GameConfig = field(default_factory=default_game)
    rounds: int = 7
    """Rounds of four updates each; the median counts."""
    curve: bool = False
    """Also vary the games, the seats and the imagined steps."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(rounds=self.rounds)
        ppo, hop_plus = (replace(PRESETS[name], game=self.game) for name in ("ppo", "hop-plus"))
        wanted = [("defaults", ppo.ppo.steps, (ppo, hop_plus))]
        wanted += variations(ppo, hop_plus) if self.curve else ()
        costs = []
        with Progress("measuring", len(wanted), "pairs", first="busy with the first") as progress:
            for what, size, pair in wanted:
                costs.append(measure_update(what, size, *pair, self.rounds))
                progress.advance(1, f"{what} {size:,}: ratio {costs[-1].ratio:.2f}")
        return show(_page(costs), as_json=self.json)


@dataclass(frozen=True)
class UpdateCost:
    """Mean seconds of an update, both measured in turn."""

    what: str  # what is varied
    size: int
    ppo: float
    other: float
    ratio: float  # of the two


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
    one, two = (float(mean) for mean in np.median(spent, axis=0) / updates)
    return UpdateCost(what, size, one, two, two / one)


def variations(ppo: TrainConfig, other: TrainConfig) -> Iterator[tuple[str, int, Pair]]:
    """What is varied, how much of it there is, and both: more games, seats, imagined steps."""
    for games in (64, 128, 256, 512):
        one, two = (replace(c, ppo=replace(c.ppo, games=games)) for c in (ppo, other))
        yield "games", games, (one, two)
    for seats in (2, 4, 6, 8):
        game: Any = ppo.game
        one, two = (replace(c, game=replace(game, seats=seats, size=5)) for c in (ppo, other))
        yield "seats", seats, (one, two)
    for steps in (1, 2, 4):  # imagined ones for each real one
        imagine = replace(other.imagine, real_ratio=1 / (1 + steps))
        yield "imagined", steps, (ppo, replace(other, imagine=imagine))


def _page(costs: list[UpdateCost]) -> Page:
    machine = device_line()
    title = f"an update, without compilation; {machine}"
    columns: dict[str | Column, Callable[[UpdateCost], Any]] = {
        "": lambda cost: cost.what,
        "size": lambda cost: cost.size,
        Column("ppo, ms", ",.1f"): lambda cost: 1000 * cost.ppo,
        Column("hop-plus, ms", ",.1f"): lambda cost: 1000 * cost.other,
        Column("ratio", ".2f"): lambda cost: cost.ratio,
    }
    payload = {"machine": machine, "costs": costs}
    return Page(title, "", sections=[make_table(title, columns, costs)], payload=payload)
