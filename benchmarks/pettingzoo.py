"""How many steps a second does a PettingZoo environment make, one game after the other, with random
players? (`hopplus bench game` has those of many games at once, and of the plain-Python rules.)"""

import sys
import time
from dataclasses import dataclass, field

import numpy as np

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import GameConfig, default_game
from hopplus.games.game import board_size
from hopplus.games.pettingzoo import HopplusEnv, parallel_env
from hopplus.report.page import Page, Section
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line


@dataclass(frozen=True)
class PettingZooBench:
    """Step an environment with drawn actions, new episodes and every player's observation
    included."""

    game: GameConfig = field(default_factory=default_game)
    steps: int = 4000
    """Steps of a round."""
    rounds: int = 7
    """Rounds; the median and the best are told, as others may use the machine."""
    seed: int = 0
    """Seed of boards and actions."""
    json: bool = False
    """Print JSON instead of lines."""

    def run(self) -> int:
        check_options(steps=self.steps, rounds=self.rounds, seed=self.seed)
        env = parallel_env(self.game)
        rates = []
        with Progress("measuring", 1 + self.rounds, "rounds", even=False) as progress:
            play(env, 2 * env.game.horizon, self.seed)  # compiles
            progress.advance(1)
            for number in range(self.rounds):
                rates.append(play(env, self.steps, self.seed + number))
                progress.advance(1, f"{rates[-1]:,.0f} steps/s")
        machine, median = device_line(), float(np.median(rates))
        title = f"{env.game.name}, {board_size(env.game)}, {env.game.seats} seats, {machine}"
        answer = f"{median:,.0f} steps/s (best {max(rates):,.0f})"
        rows = [["steps/s", f"{median:,.0f}"], ["best", f"{max(rates):,.0f}"]]
        payload = {"machine": machine, "rate": median, "best_rate": max(rates), "rates": rates}
        page = Page(title, answer, sections=[Section(title, rows=rows)], payload=payload)
        return show(page, as_json=self.json)


def play(env: HopplusEnv, steps: int, seed: int) -> float:
    """Steps per second."""
    actions = len(env.game.action_names)
    drawn = np.random.default_rng(seed).integers(actions, size=(steps, env.game.seats)).tolist()
    env.reset(seed=seed)
    began = time.perf_counter()
    for joint in drawn:
        if not env.agents:
            env.reset()
        env.step(dict(zip(env.agents, joint, strict=False)))
    return steps / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main(PettingZooBench))
