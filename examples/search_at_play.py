"""Does a search help players that learned without one, among co-players they never met?

    python examples/search_at_play.py runs/first [EPISODES] [SIMULATIONS]

One seat is taken by the run's player, the others by scripted ones; each of the run's seeds plays
all mixtures twice, without and with a search.
"""

import itertools
import sys
from pathlib import Path

import jax
import numpy as np

from hopplus.config import SearchConfig
from hopplus.evaluation.evaluate import evaluate
from hopplus.evaluation.statistics import estimate
from hopplus.games import make_game
from hopplus.learning.from_run import run_players
from hopplus.play.lineup import make_lineup
from hopplus.play.trained import named
from hopplus.runs.folder import open_run

GAMES = 128  # side by side


def main(path: str, episodes: int = 500, simulations: int = 50) -> None:
    run = open_run(Path(path))
    config = run.config()
    game = make_game(config.game)
    searches = {
        "alone": SearchConfig(simulations=0),
        "searching": SearchConfig(simulations=simulations),
    }
    print(f"{path}: seat 0's returns, {config.seeds} seeds, {episodes} episodes each")
    for others in itertools.combinations_with_replacement(["stag", "hare", "random"], 3):
        means = {}
        for name, search in searches.items():
            found = []
            for seed in config.seed_numbers:
                player = named(run_players(run, seed)[0], "player")
                lineup = make_lineup(["player", *others], game, {"player": player}, search=search)
                key_params, key_play = jax.random.split(jax.random.key(seed))
                params = lineup.init(key_params)
                played = evaluate(game, lineup.seating, params, key_play, episodes, GAMES)
                found.append(played.returns[:, 0].mean())
            means[name] = np.array(found)
        gain = estimate(means["searching"] - means["alone"])
        figures = "  ".join(f"{name} {mean.mean():.3f}" for name, mean in means.items())
        print(f"{', '.join(others):<22} {figures}  gain {gain}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
