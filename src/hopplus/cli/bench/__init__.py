"""`hopplus bench`: how fast is it on this machine?

What only developers run is in `benchmarks/` of the repository.
"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopplus.cli.bench.game import BenchGame
from hopplus.cli.bench.search import BenchSearch
from hopplus.cli.bench.train import BenchTrain
from hopplus.cli.bench.update import BenchUpdate


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine."""

    what: (
        Annotated[BenchGame, tyro.conf.subcommand("game")]
        | Annotated[BenchTrain, tyro.conf.subcommand("train")]
        | Annotated[BenchUpdate, tyro.conf.subcommand("update")]
        | Annotated[BenchSearch, tyro.conf.subcommand("search")]
    )

    def run(self) -> int:
        return self.what.run()
