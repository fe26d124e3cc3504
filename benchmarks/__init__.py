"""Benchmarks that only developers run: `python -m benchmarks.NAME --help`, from the repository."""

from collections.abc import Sequence
from typing import Protocol

import tyro

from hopplus.cli.options import registry
from hopplus.config import ConfigError
from hopplus.runs.watchdog import say


class Benchmark(Protocol):
    """A dataclass whose fields are the options."""

    def run(self) -> int: ...


def main(kind: type[Benchmark], arguments: Sequence[str] | None = None) -> int:
    """Run one with the options of the command line; the exit status, 2 for a wrong option."""
    try:
        with registry:
            return tyro.cli(kind, args=arguments).run()
    except ConfigError as error:
        say(str(error))
        return 2
