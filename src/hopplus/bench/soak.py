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

from hopplus.config import TrainConfig
from hopplus.learning.learner import Learning
from hopplus.learning.restore import make_learner
from hopplus.models.part import Metrics
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
    seconds: float | None  # of the finished runs, on average


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
    mean = sum(spent) / len(spent) if spent else None
    return Soak(finished, hung, runs - finished - hung, mean)


def program(updates: int) -> tuple[Learning, Metrics]:
    """PPO self-play, a whole run in one compiled loop: the kind of program that used to hang."""
    learner = make_learner(TrainConfig(), {})

    def update(now: Learning, _: None) -> tuple[Learning, Metrics]:
        return learner.update(now)

    run = jax.jit(lambda key: jax.lax.scan(update, learner.init(key), None, length=updates))
    end: tuple[Learning, Metrics] = run(jax.random.key(0))
    return end


if __name__ == "__main__":

    def give_up(message: str) -> None:
        print(message, file=sys.stderr, flush=True)
        os._exit(HUNG)

    with Watchdog(STALL, give_up):
        jax.block_until_ready(program(int(sys.argv[1])))
