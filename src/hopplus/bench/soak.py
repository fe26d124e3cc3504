"""Does a long compiled loop always come to its end on this machine?

On CPUs with few cores XLA's runtime could wait for ever inside a program like this one. The soak
runs it many times, each in a process of its own, and counts. `python -m hopplus.bench.soak` is one
such run.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.config import StagHuntConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.rollout import rollout, start
from hopplus.players.seating import seat_players
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import SCHEDULER_FLAG

HUNG = 75  # exit status of a run that its watchdog ended
STALL = 20.0  # seconds without any processor time that count as hung


@dataclass(frozen=True)
class Soak:
    """How the runs ended."""

    finished: int
    hung: int
    failed: int
    seconds: float  # of the finished runs, on average


def soak(runs: int, updates: int, unsafe: bool, on_run: Callable[[str], None]) -> Soak:
    """Run the program `runs` times; `unsafe` gives it XLA's own defaults instead of ours."""
    environment = dict(os.environ)
    if unsafe:
        environment["XLA_FLAGS"] = f"{SCHEDULER_FLAG}=true"
        environment["JAX_CPU_ENABLE_ASYNC_DISPATCH"] = "true"
    ends: list[int] = []
    spent: list[float] = []
    for _ in range(runs):
        began = time.monotonic()
        run = subprocess.run(
            [sys.executable, "-m", "hopplus.bench.soak", str(updates)],
            env=environment,
            capture_output=True,
            text=True,
        )
        ends.append(run.returncode)
        seconds = time.monotonic() - began
        if run.returncode == 0:
            spent.append(seconds)
        word = {0: f"finished in {seconds:.0f} s", HUNG: "hung"}.get(run.returncode, run.stderr)
        on_run(word)
    finished, hung = ends.count(0), ends.count(HUNG)
    mean = sum(spent) / len(spent) if spent else float("nan")
    return Soak(finished, hung, runs - finished - hung, mean)


def program(updates: int) -> jax.Array:
    """Policy gradients for four seats in one compiled loop; returns the mean reward of each update.

    Rollouts by scripted players, then gradient steps over shuffled minibatches, all inside nested
    scans: the kind of program that used to hang.
    """
    game = StagHunt(StagHuntConfig())
    seating = seat_players("stag,hare,random,random", game)
    params = seating.init(jax.random.key(0))
    sizes = (112, 128, 128, 7)
    weights = [
        jax.random.normal(key, (game.seats, size_in, size_out)) / size_in**0.5
        for key, size_in, size_out in zip(
            jax.random.split(jax.random.key(1), 3), sizes[:-1], sizes[1:], strict=True
        )
    ]
    plays = jax.vmap(lambda key: start(game, seating, key))(
        jax.random.split(jax.random.key(2), 128)
    )

    def loss(weights: list[jax.Array], planes: jax.Array, actions: jax.Array) -> jax.Array:
        hidden = planes
        for layer in weights[:-1]:
            hidden = jax.nn.relu(jnp.einsum("bni,nio->bno", hidden, layer))
        logits = jax.nn.log_softmax(jnp.einsum("bni,nio->bno", hidden, weights[-1]))
        return -jnp.take_along_axis(logits, actions[..., None], axis=-1).mean()

    def update(carry: tuple, key: jax.Array) -> tuple:  # type: ignore[type-arg]
        weights, plays = carry
        plays, trajectory = rollout(game, seating, params, plays, 16)
        planes = jax.vmap(jax.vmap(lambda state: views(game, state).planes))(trajectory.state)
        planes = planes.reshape(16 * 128, game.seats, -1)
        actions = trajectory.act.action.reshape(16 * 128, game.seats)

        def minibatch(
            weights: list[jax.Array], rows: jax.Array
        ) -> tuple[list[jax.Array], jax.Array]:
            value, slope = jax.value_and_grad(loss)(weights, planes[rows], actions[rows])
            return jax.tree.map(lambda w, d: w - 0.1 * d, weights, slope), value

        def epoch(weights: list[jax.Array], key: jax.Array) -> tuple[list[jax.Array], jax.Array]:
            order = jax.random.permutation(key, 16 * 128).reshape(8, -1)
            return jax.lax.scan(minibatch, weights, order)

        weights, _ = jax.lax.scan(epoch, weights, jax.random.split(key, 4))
        return (weights, plays), trajectory.outcome.reward.mean()

    run = jax.jit(lambda carry, keys: jax.lax.scan(update, carry, keys)[1])
    rewards: jax.Array = run((weights, plays), jax.random.split(jax.random.key(3), updates))
    return rewards


if __name__ == "__main__":

    def give_up(message: str) -> None:
        print(message, file=sys.stderr, flush=True)
        os._exit(HUNG)

    with Watchdog(STALL, give_up):
        program(int(sys.argv[1])).block_until_ready()
