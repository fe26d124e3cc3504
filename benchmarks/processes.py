"""What do processes of one run lose by waiting for each other? Beside them, in turns, as many runs
apart with a seed each; all on this machine."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.folder import RunError, open_run
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line

WARM = 8192  # steps of runs that only compile, so that none compiles while others are timed


@dataclass(frozen=True)
class Round:
    """Steps per second of all seeds, after the first update."""

    together: float
    apart: float

    @property
    def lost(self) -> float:
        """What processes of one run lose against runs apart, as a share."""
        return 1 - self.together / self.apart


@dataclass(frozen=True)
class ProcessesBench:
    """Train a seed in each of several processes of one run, and as many runs apart, in turns."""

    count: int = 4
    """Processes, and runs."""
    steps: int = 150_000
    """Environment steps of each seed."""
    rounds: int = 3
    """How often both are trained."""
    runs: Path = Path("runs/processes")
    """Where the runs are; what is there is deleted."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(count=self.count, steps=self.steps, rounds=self.rounds)
        shutil.rmtree(self.runs, ignore_errors=True)
        found = []
        with Progress("measuring", 1 + self.rounds, "rounds", even=False) as progress:
            self._measure("warm", WARM)
            progress.advance(1)
            for number in range(self.rounds):
                found.append(self._measure(str(number), self.steps))
                progress.advance(1, f"{found[-1].lost:.0%} lost")
        lost = float(np.median([one.lost for one in found]))
        payload = {
            "machine": device_line(),
            "rounds": [asdict(one) | {"lost": one.lost} for one in found],
            "lost": lost,
        }
        columns: dict[str | Column, Callable[[Round], float]] = {
            Column("together, steps/s", ",.0f"): lambda one: one.together,
            Column("apart, steps/s", ",.0f"): lambda one: one.apart,
            Column("lost", ".1%"): lambda one: one.lost,
        }
        title = f"{self.count} processes with a seed each; {payload['machine']}"
        answer = f"{lost:.1%} lost (median)"
        sections = [make_table(title, columns, found)]
        return show(
            Page("processes", answer, sections=sections, payload=payload), as_json=self.json
        )

    def _measure(self, name: str, steps: int) -> Round:
        common = ["train", "ppo", "--steps", str(steps), "--runs", str(self.runs)]
        with socket.socket() as free:
            free.bind(("localhost", 0))
            address = f"localhost:{free.getsockname()[1]}"
        one = [*common, "--name", f"{name}-together", "--seeds", str(self.count)]
        one += ["--devices", "all", "--coordinator", address, "--processes", str(self.count)]
        numbers = range(self.count)
        _side_by_side([[*one, "--process", str(number)] for number in numbers])
        each = [f"{name}-{number}" for number in numbers]
        _side_by_side([[*common, "--name", own, "--seed", str(n)] for n, own in enumerate(each)])
        return Round(self._rate(f"{name}-together"), sum(self._rate(own) for own in each))

    def _rate(self, name: str) -> float:
        return float((open_run(self.runs / name).result() or {})["steps_per_second"])


def _side_by_side(commands: Sequence[Sequence[str]]) -> None:
    """Run all of them at the same time, each with one device, to their end."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "hopplus", *words],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in commands
    ]
    said = [process.communicate()[1] for process in started]
    for process, text in zip(started, said, strict=True):
        if process.returncode:
            raise RunError(f"a process ended with {process.returncode}: {text.strip()[-300:]}")


if __name__ == "__main__":
    sys.exit(main(ProcessesBench))
