"""`hopplus bench`: how fast is it on this machine?

What only developers run is in `benchmarks/` of the repository.
"""

from dataclasses import dataclass
from typing import Any

from hopplus.cli.bench.game import BenchGame
from hopplus.cli.bench.search import BenchSearch
from hopplus.cli.bench.train import BenchTrain, BenchUpdate
from hopplus.cli.reading.options import one_of

BENCHES = {"game": BenchGame, "train": BenchTrain, "update": BenchUpdate, "search": BenchSearch}
Chosen: Any = one_of(BENCHES)


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine."""

    what: Chosen

    def run(self) -> int:
        return int(self.what.run())
