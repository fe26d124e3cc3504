"""`hopplus adapt`: how fast does a player understand new company?"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_positive, check_seat, check_seed
from hopplus.config import ConfigError, SearchConfig
from hopplus.evaluation.adaptation import Adaptation, adapt, companies
from hopplus.evaluation.references import read_references
from hopplus.games import make_game
from hopplus.learning.restore import find_guests, run_players
from hopplus.runs.folder import open_run
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Adapt:
    """Seat one player of a run among others who stay the same, and watch its returns by the number
    of the episode. It learns nothing on the way: it has its memory, its belief, its inference."""

    run_folder: Annotated[Path, tyro.conf.Positional]
    """The run whose player is tried, in each of its seeds."""
    against: tuple[str, ...] = ("all",)
    """The others, from the next seat on, one name per seat: stag,stag,hare noisy-hare:0.2,stag,hare
    ...; all for every mixture of the game's scripted players."""
    episodes: int = 5
    """Episodes of a trial."""
    trials: int = 1024
    """Trials against each company, for each seat and seed."""
    seat: int | None = None
    """Where it sits; each seat in turn when not given."""
    search: SearchConfig = field(default_factory=SearchConfig)
    references: Path | None = None
    """A file that `hopplus certify` has kept, to tell the share of the gap that is closed."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(episodes=self.episodes, trials=self.trials)
        check_seed(self.seed)
        run = open_run(self.run_folder)
        config = run.config()
        game = make_game(config.game)
        if self.seat is not None:
            check_seat(self.seat, game.seats)
        seats = range(game.seats) if self.seat is None else [self.seat]
        wanted = companies(self.against, game)
        guests = find_guests([name for company in wanted for name in company])
        known = read_references(self.references) if self.references else None
        if known and known.game != config.game:
            raise ConfigError(f"{self.references} is of another game than {self.run_folder}")
        players = [run_players(run, seed) for seed in range(config.seeds)]
        total = len(wanted) * len(seats) * self.trials * config.seeds
        with Progress("playing", total, "trials") as progress:
            found = adapt(
                game,
                players,
                wanted,
                guests,
                list(seats),
                self.episodes,
                self.trials,
                self.search,
                jax.random.key(self.seed),
                progress.advance,
            )
        closed = found.closed(known) if known else None
        if self.json:
            shares = {"closed": closed}
            print(json.dumps({"learning": "none", **found.as_json(), **shares}, indent=2))
            return 0
        print_adaptation(found, str(self.run_folder), closed)
        return 0


def print_adaptation(found: Adaptation, name: str, closed: list[float] | None) -> None:
    """The returns by episode for people, on stdout."""
    seeds = found.returns.shape[0]
    table = Table(
        title=f"{name}, learning: none, {seeds} seed{'s' * (seeds > 1)}", title_justify="left"
    )
    table.add_column("others")
    for number in range(found.returns.shape[2]):
        table.add_column(f"episode {number + 1}", justify="right")
    for place, company in enumerate(found.companies):
        table.add_row(", ".join(company), *map(str, found.estimates(place)))
    table.add_section()
    table.add_row("mean", *map(str, found.means()))
    if closed:
        table.add_row("gap closed", *(f"{share:.0%}" for share in closed))
    Console().print(table)
    print("mean returns ± 95% over seeds" if seeds > 1 else "one seed: no interval can be told")
