"""`hopplus crossplay`: how do players of different runs get on with each other?"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_positive, check_seed
from hopplus.config import ConfigError, GameConfig, SearchConfig
from hopplus.evaluation.crossplay import Crossplay, Member, crossplay, make_member
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.restore import run_seats
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import RunFolder, clear_errors, open_run
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class CrossPlay:
    """Put one player of each run among those of each other, in every seat in turn."""

    members: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Runs, or scripted players (stag, hare, random), two or more; a run's seed behind an @, as in
    runs/a@2, the first without."""
    episodes: int = 1000
    """Episodes for each seat of each pair."""
    search: SearchConfig = field(default_factory=SearchConfig)
    seed: int = 0
    """Seed of everything random."""
    out: Path = Path("crossplay")
    """Folder for the picture and the JSON file."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(episodes=self.episodes)
        check_seed(self.seed)
        if len(self.members) < 2:
            raise ConfigError("crossplay needs two or more: runs, or scripted players")
        runs = {name: _open(name) for name in self.members}
        games = {name: run.config().game for name, (run, _) in _known(runs).items()}
        if len(set(games.values())) > 1:
            raise ConfigError("the runs are of different games, which have no players in common")
        game = make_game(next(iter(games.values()), GameConfig()))
        members = [self._member(name, runs[name], game) for name in self.members]
        total = len(members) ** 2 * game.seats * self.episodes
        with Progress("playing everyone among everyone", total, "episodes") as progress:
            key = jax.random.key(self.seed)
            found = crossplay(game, members, key, self.episodes, progress.advance)
        self._write(found)
        if self.json:
            print(json.dumps({"game": game.name, **found.as_json()}, indent=2))
            return 0
        print_crossplay(found, self.episodes)
        print(f"the picture and all figures are in {self.out}")
        return 0

    def _member(self, name: str, found: tuple[RunFolder, int] | None, game: Game) -> Member:
        if found is None:
            return make_member(name, [name] * game.seats, {}, game, self.search)
        called, known = run_seats(*found)
        return make_member(name, called, known, game, self.search)

    def _write(self, found: Crossplay) -> None:
        from hopplus.evaluation.crossplay_picture import draw_crossplay

        draw_crossplay(self.out / "crossplay.png", found)
        text = json.dumps(found.as_json(), indent=2, allow_nan=False)
        with clear_errors(f"write in {self.out}"):
            write_durably(self.out / "crossplay.json", text.encode())


def _open(name: str) -> tuple[RunFolder, int] | None:
    """The run and which of its seeds; None for a scripted player."""
    path, _, number = name.rpartition("@")
    if path and number.isdigit():
        return open_run(Path(path)), int(number)
    return (open_run(Path(name)), 0) if Path(name).exists() else None


def _known(
    runs: dict[str, tuple[RunFolder, int] | None],
) -> dict[str, tuple[RunFolder, int]]:
    return {name: run for name, run in runs.items() if run}


def print_crossplay(found: Crossplay, episodes: int) -> None:
    """The matrix for people, on stdout."""
    table = Table(
        title=f"return of the row in one seat among the column; {episodes:,} episodes a seat",
        title_justify="left",
    )
    table.add_column("")
    for name in found.names:
        table.add_column(name, justify="right")
    for name, row in zip(found.names, found.focal, strict=True):
        table.add_row(name, *map(str, row))
    Console().print(table)
    print("each cell over all seats in turn; intervals of 95% over episodes, not over runs")
