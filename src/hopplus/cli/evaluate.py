"""`hopplus evaluate`: how well do these players do together?"""

from dataclasses import dataclass

from hopplus.api.studies import evaluate
from hopplus.cli.paged import asked, show
from hopplus.cli.reading.players import Playing


@dataclass(frozen=True)
class Evaluate(Playing):
    """Play episodes and print the return of every seat; for a run, with each of its seeds."""

    episodes: int = 10_000
    """Episodes to play, with each seed."""
    games: int = 1024
    """Games side by side; changes the speed, never the result."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        found = evaluate(self.run_name, **asked(self, "run_name"))
        return show(found.page, as_json=self.json)
