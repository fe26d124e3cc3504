"""Trained players in a plain PettingZoo loop, outside the training code.

    python examples/trained_players.py runs/NAME [episodes]

Plays the run's own game with its learned players and prints each seed's mean return per seat.
"""

import sys
from pathlib import Path

import numpy as np

import hopplus
from hopplus.games.pettingzoo import parallel_env
from hopplus.runs.folder import open_run

run = Path(sys.argv[1])
episodes = int(sys.argv[2]) if len(sys.argv) > 2 else 100
config = open_run(run).config()

means = []
for number, seed in enumerate(config.seed_numbers):
    players = hopplus.load_players(run, seed=seed, dice=1000 * number)
    if len(players) < config.game.seats:
        sys.exit(f"{run} has learned players in the seats {list(players)} only")
    env = parallel_env(config.game)
    total = np.zeros(config.game.seats)
    for episode in range(episodes):
        observations, _ = env.reset(seed=episode)
        for player in players.values():
            player.reset()
        while env.agents:
            actions = {name: players[int(name[-1])].act(observations[name]) for name in env.agents}
            observations, rewards, *_ = env.step(actions)
            for name, reward in rewards.items():
                total[int(name[-1])] += reward
    means.append(total / episodes)
    print(f"seed {seed}: {np.round(means[-1], 3)}, mean {means[-1].mean():.3f}")
print(f"mean over {config.seeds} seeds and {episodes} episodes each: {np.mean(means):.3f}")
