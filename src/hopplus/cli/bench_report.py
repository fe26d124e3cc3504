"""`hopplus bench report`: how long does a page take, and how large is it?"""

import json
from dataclasses import dataclass

from hopplus.bench.report import measure_report
from hopplus.cli.options import check_positive
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line


@dataclass(frozen=True)
class BenchReport:
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
        check_positive(runs=self.runs, seeds=self.seeds, points=self.points)
        with Watchdog():
            speed = measure_report(self.runs, self.seeds, self.points)
        if self.json:
            print(json.dumps({"machine": device_line(), **speed._asdict()}, indent=2))
            return 0
        print(
            f"{self.runs} runs, {self.seeds} seeds, {self.points:,} points: {speed.seconds:.1f} s"
            f" for a page of {speed.page_bytes / 1e6:.2f} MB, from {speed.read_bytes / 1e6:.0f} MB"
            f" of metrics; {device_line()}"
        )
        return 0
