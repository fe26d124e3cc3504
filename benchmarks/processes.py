"""What do processes of one run lose by waiting for each other? Beside them, in turns, as many runs
apart with a seed each; all on this machine."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.folder import RunError, RunFolder, open_run
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line

LOOK = 0.2  # seconds between looks at how far runs are
WARM = 8192  # steps of runs that only compile, so that none compiles while others are timed


@dataclass(frozen=True)
class Round:
    """Steps per second of all seeds, after the first update; of runs apart while all of them are at
    work. Those that begin later or end sooner leave the processor to the others, whose own rates
    then say too much."""

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
        rounds = 1 + self.rounds
        # It is others who compute: that this process does not is no sign of anything.
        with Progress("measuring", rounds, "rounds", even=False, watched=False) as progress:
            self._together("warm", WARM)
            self._apart("warm", WARM)
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
        together, (apart, done) = self._together(name, steps), self._apart(name, steps)
        result, config = together.result() or {}, apart.config()
        rate = rate_of_all(done, config.updates) * config.ppo.steps
        return Round(float(result["steps_per_second"]), rate)

    def _together(self, name: str, steps: int) -> RunFolder:
        """One run of several processes, trained."""
        with socket.socket() as free:
            free.bind(("localhost", 0))
            address = f"localhost:{free.getsockname()[1]}"
        own = f"{name}-together"
        words = [*self._words(own, steps), "--seeds", str(self.count), "--devices", "all"]
        words += ["--coordinator", address, "--processes", str(self.count), "--process"]
        _run_all([[*words, str(number)] for number in range(self.count)])
        return open_run(self.runs / own)

    def _apart(self, name: str, steps: int) -> tuple[RunFolder, list[tuple[float, list[int]]]]:
        """Runs of one process each, trained: the first of them, and how many updates each had done
        at several times."""
        names = [f"{name}-{number}" for number in range(self.count)]
        alone = ["--devices", "1", "--seed"]
        words = [[*self._words(own, steps), *alone, str(n)] for n, own in enumerate(names)]
        each = [RunFolder(self.runs / own) for own in names]
        return each[0], _run_all(words, lambda: [_updates(run) for run in each])

    def _words(self, name: str, steps: int) -> list[str]:
        return ["train", "ppo", "--steps", str(steps), "--runs", str(self.runs), "--name", name]


def _updates(run: RunFolder) -> int:
    """How many the run has written down."""
    path = run.metrics_file
    return path.read_bytes().count(b"\n") if path.exists() else 0


def rate_of_all(done: Sequence[tuple[float, Sequence[int]]], last: int) -> float:
    """Updates per second of all runs while each has done one and none the last, from what each had
    done at several times."""
    working = [(now, sum(own)) for now, own in done if min(own) > 0 and max(own) < last]
    if len(working) < 2 or working[-1][0] == working[0][0]:
        raise RunError("the runs were not at work at the same time: take more --steps")
    (began, first), (ended, second) = working[0], working[-1]
    return (second - first) / (ended - began)


def _run_all(
    commands: Sequence[Sequence[str]], look: Callable[[], list[int]] = list
) -> list[tuple[float, list[int]]]:
    """Run all of them at the same time, each with one device, to their end; what was seen of them
    meanwhile, and when."""
    with ExitStack() as files:
        said = [files.enter_context(TemporaryFile("w+")) for _ in commands]
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "hopplus", *words],
                env={**os.environ, "JAX_PLATFORMS": "cpu"},
                stdout=subprocess.DEVNULL,
                stderr=file,
            )
            for words, file in zip(commands, said, strict=True)
        ]
        seen = []
        while any(process.poll() is None for process in started):
            time.sleep(LOOK)
            seen.append((time.monotonic(), look()))
        for process, file in zip(started, said, strict=True):
            if process.returncode:
                file.seek(0)
                text = file.read().strip()[-300:]
                raise RunError(f"a process ended with {process.returncode}: {text}")
    return seen


if __name__ == "__main__":
    sys.exit(main(ProcessesBench))
