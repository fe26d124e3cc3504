"""How long does a report take to build, and how large is it? Of runs that nobody trained."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import TrainConfig
from hopplus.presets import PRESETS
from hopplus.report.html import page_text
from hopplus.report.page import Page
from hopplus.report.pages.curves import list_charts
from hopplus.report.pages.runs import runs_page
from hopplus.report.pages.summary import summarise
from hopplus.runs.folder import RunFolder
from hopplus.runs.making import make_run
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line

DIFFERENT = 25  # records; the others repeat them
UNUSED = 16  # metrics that are read and not shown, about as many as HOP+ has


@dataclass(frozen=True)
class ReportBench:
    """Seconds to build a page of summary and curves about runs nobody trained, and its size."""

    runs: int = 5
    """Runs side by side."""
    seeds: int = 10
    """Seeds of each."""
    points: int = 2000
    """Logged points of each."""
    json: bool = False
    """Print JSON instead of a line."""

    def run(self) -> int:
        check_options(runs=self.runs, seeds=self.seeds, points=self.points)
        with Watchdog():
            speed = measure_report(self.runs, self.seeds, self.points)
        machine = device_line()
        answer = (
            f"{self.runs} runs, {self.seeds} seeds, {self.points:,} points: {speed.seconds:.1f} s"
            f" for a page of {speed.page_bytes / 1e6:.2f} MB, from {speed.read_bytes / 1e6:.0f} MB"
            f" of metrics; {machine}"
        )
        payload = {"machine": machine, **speed._asdict()}
        return show(Page("report", answer, payload=payload), as_json=self.json)


class ReportSpeed(NamedTuple):
    """Of one page about all runs."""

    seconds: float
    page_bytes: int
    read_bytes: int  # of metrics


def measure_report(runs: int, seeds: int, points: int) -> ReportSpeed:
    """A page about so many runs, each with so many seeds and logged points of all that HOP+ logs;
    without models and replays."""
    with tempfile.TemporaryDirectory() as folder:
        made = [_write_run(Path(folder) / f"run-{number}", seeds, points) for number in range(runs)]
        began = time.perf_counter()
        text = page_text(runs_page(summarise(made), ""))
        seconds = time.perf_counter() - began
        read = sum(run.metrics_file.stat().st_size for run in made)
    return ReportSpeed(seconds, len(text.encode()), read)


def _write_run(path: Path, seeds: int, points: int) -> RunFolder:
    config = PRESETS["hop-plus"]
    config = replace(config, steps=points * config.ppo.steps, seeds=seeds)
    with make_run(path, config) as folder, (folder / "metrics.jsonl").open("w") as file:
        records = list(_records(config))
        for number in range(1, points + 1):
            when = f'{{"update": {number}, "steps": {number * config.ppo.steps}, '
            file.write(when + records[number % DIFFERENT] + "\n")
    return RunFolder(path)


def _records(config: TrainConfig) -> Iterator[str]:
    """Records without their beginning."""
    rng = np.random.default_rng(0)
    names = [
        f"{name}{part}"
        for chart in list_charts()
        for name in chart.names
        for part in ((0, 1, 2) if name.endswith("/") else ("",))
    ]
    for _ in range(DIFFERENT):
        shape = (config.seeds, config.game.seats)
        record: dict[str, Any] = {
            name: rng.normal(size=shape).astype(np.float32).tolist()
            for name in [*names, *(f"unused/{number}" for number in range(UNUSED))]
        }
        record |= {"episodes": [10] * config.seeds, "return_sum": (10 * rng.random(shape)).tolist()}
        yield json.dumps(record)[1:]


if __name__ == "__main__":
    sys.exit(main(ReportBench))
