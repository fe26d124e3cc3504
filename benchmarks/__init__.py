"""Benchmarks that only developers run: `python -m benchmarks.NAME --help`, from the repository."""

import sys
from collections.abc import Sequence
from typing import Protocol

import tyro

from hopplus.cli.reading.options import game_named, options_of
from hopplus.config import ConfigError
from hopplus.runs.folder import RunError
from hopplus.runs.watchdog import say


class Benchmark(Protocol):
    """A dataclass whose fields are the options."""

    def run(self) -> int: ...


def main(kind: type[Benchmark], arguments: Sequence[str] | None = None) -> int:
    """Run one with the options of the command line; the exit status, 2 for a wrong option."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        with options_of(game_named(given)):
            return tyro.cli(kind, args=given).run()
    except (ConfigError, RunError) as error:
        say(str(error))
        return 2
