"""How fast is the coin game beside JaxMARL's? Both in turns, in one process, on one machine."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import main
from hopplus.cli.bench.game import play_on, start_games
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, make_config
from hopplus.games import make_game
from hopplus.play.seating import seat_players
from hopplus.report.page import Page, Section
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line

STEPS = 64  # of a program
PEER = "JaxMARL coin game, 3x3"
SIZES = (3, 5)  # of our boards: the peer's, and the one of the rules

Program = Callable[[], Any]  # plays on by STEPS steps


@dataclass(frozen=True)
class Peers:
    """Environment steps per second of the coin game and of JaxMARL's, with random players, all
    views and new episodes."""

    games: int = 1024
    """Games side by side."""
    rounds: int = 20
    """How often each plays, in turns."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(games=self.games, rounds=self.rounds, seed=self.seed)
        peer = jaxmarl_program(self.games, self.seed)
        with Watchdog():
            own = {
                f"coin-v1, {size}x{size}": own_program(size, self.games, self.seed)
                for size in SIZES
            }
            rates = measure_rates({PEER: peer, **own}, self.games * STEPS, self.rounds)
        middle = {name: float(np.median(found)) for name, found in rates.items()}
        ratios = {name: float(np.median(rates[name] / rates[PEER])) for name in rates}
        rows = [[name, f"{middle[name]:,.0f}", f"{ratios[name]:.2f}"] for name in rates]
        machine = device_line()
        table = Section(
            f"{self.games:,} games, {machine}", header=["game", "steps/s", "ratio"], rows=rows
        )
        payload = {"machine": machine, "games": self.games, "rates": middle, "ratios": ratios}
        return show(Page("peers", "", sections=[table], payload=payload), as_json=self.json)


def measure_rates(
    programs: Mapping[str, Program], steps: int, rounds: int
) -> dict[str, np.ndarray]:
    """[rounds] steps per second of each, one after the other in every round, so that whatever else
    the machine does slows all of them alike."""
    for play in programs.values():
        jax.block_until_ready(play())  # compiled
    rates: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, play in programs.items():
            began = time.perf_counter()
            jax.block_until_ready(play())
            rates[name].append(steps / (time.perf_counter() - began))
    return {name: np.array(found) for name, found in rates.items()}


def own_program(size: int, games: int, seed: int) -> Program:
    """Our game, as `hopplus bench game` plays it."""
    game = make_game(make_config("coin-v1", size=size))
    seating = seat_players(",".join(["random"] * game.seats), game)
    now = [start_games(game, seating, jax.random.key(seed), games)]

    def play() -> Any:
        now[0], total = play_on((game, seating), now[0], STEPS)
        return total

    return play


def jaxmarl_program(games: int, seed: int) -> Program:
    """JaxMARL's, as its own guide steps games: a key for each, and new episodes in its `step`."""
    try:
        with redirect_stdout(sys.stderr):  # what it says while it is imported is no figure
            env = import_module("jaxmarl.environments.coin_game.coin_game").CoinGame()
    except ImportError as error:
        raise ConfigError(f"jaxmarl is not installed (pip install jaxmarl): {error}") from error

    def advance(carry: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        key_act, key_step = jax.random.split(key)
        drawn = jax.random.randint(key_act, (len(env.agents), games), 0, 5)
        actions = dict(zip(env.agents, drawn, strict=True))
        keys = jax.random.split(key_step, games)
        obs, state, reward, _, _ = jax.vmap(env.step)(keys, carry[1], actions)
        return (obs, state), sum(one.sum() for one in jax.tree.leaves(reward))

    @jax.jit
    def play_steps(carry: Any, key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        key, key_steps = jax.random.split(key)
        carry, rewards = jax.lax.scan(advance, carry, jax.random.split(key_steps, STEPS))
        return carry, key, jnp.sum(rewards)

    key_start, key = jax.random.split(jax.random.key(seed))
    now = [(jax.jit(jax.vmap(env.reset))(jax.random.split(key_start, games)), key)]

    def play() -> Any:
        carry, key, total = play_steps(*now[0])
        now[0] = (carry, key)
        return carry, total

    return play


if __name__ == "__main__":
    sys.exit(main(Peers))
