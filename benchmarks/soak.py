"""Does a long compiled loop always come to its end on this machine?

On CPUs with few cores XLA's runtime could wait for ever inside a program like this one. The soak
runs it many times, each in a process of its own, and counts. `python -m benchmarks.soak once` is
one such run.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import jax

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import TrainConfig
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learning
from hopplus.models.part import Metrics
from hopplus.report.page import Page
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import SCHEDULER_FLAG, device_line

HUNG = 75  # exit status of a run that its watchdog ended
ONCE = "once"  # asks for one run of the program
ROOT = Path(__file__).resolve().parents[1]
STALL = 20.0  # seconds without any processor time that count as hung


@dataclass(frozen=True)
class SoakBench:
    """Run a long compiled learning loop many times and count how often it came to its end."""

    runs: int = 20
    """How many times."""
    updates: int = 100
    """Length of the loop."""
    unsafe: bool = False
    """Use XLA's own settings instead of those of hopplus, to see whether this machine hangs."""
    json: bool = False
    """Print JSON instead of a line."""

    def run(self) -> int:
        check_options(runs=self.runs, updates=self.updates)
        with Progress(
            "soaking", self.runs, "runs", watched=False, first="busy with the first"
        ) as progress:
            result = soak(
                self.runs, self.updates, self.unsafe, lambda note: progress.advance(1, note)
            )
        machine = device_line()
        answer = (
            f"{self.runs} runs: {result.finished} finished ({result.seconds or 0:.0f} s each),"
            f" {result.hung} hung, {result.failed} failed; {machine}"
        )
        show(
            Page("soak", answer, payload={"machine": machine, **asdict(result)}), as_json=self.json
        )
        return 0 if result.finished == self.runs else 1


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
            [sys.executable, "-m", "benchmarks.soak", ONCE, str(updates)],
            cwd=ROOT,
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


def run_once(updates: int) -> None:
    """The program in this process, which ends with `HUNG` if it stands still."""

    def give_up(message: str) -> None:
        print(message, file=sys.stderr, flush=True)
        os._exit(HUNG)

    with Watchdog(STALL, give_up):
        jax.block_until_ready(program(updates))


if __name__ == "__main__":
    if sys.argv[1:2] == [ONCE]:
        run_once(int(sys.argv[2]))
    else:
        sys.exit(main(SoakBench))
