"""`hopplus crossplay`: how do players of different runs get on with each other?"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import jax
import tyro

from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, GameConfig, SearchConfig, default_game
from hopplus.evaluation.crossplay import Member, crossplay, make_member
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.from_run import find_trained, run_players
from hopplus.play.names import Kind, RunName, is_background, kind_of, read_run_name
from hopplus.report.figures.evaluation import draw_crossplay
from hopplus.report.figures.palette import try_figure
from hopplus.report.json import page_json
from hopplus.report.pages.evaluation import crossplay_page
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import check_free, clear_errors
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class CrossPlay:
    """Put one player of each run among those of each other, in every seat in turn."""

    members: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Two or more: runs (runs/a#1 for the players of seed 1, of the first without; runs/a#1@2 for
    the one of seat 2 in every seat), exported players, or scripted ones (stag, hare, random)."""
    episodes: int = 1000
    """Episodes for each seat of each pair."""
    game: GameConfig = field(default_factory=default_game)
    search: SearchConfig = field(default_factory=SearchConfig)
    seed: int = 0
    """Seed of everything random."""
    out: Path | None = None
    """Folder for the page, the picture and the figures; crossplay/ and the time when not given."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(episodes=self.episodes, seed=self.seed)
        if len(self.members) < 2:
            raise ConfigError("crossplay needs two or more: runs, or scripted players")
        out = self.out or Path("crossplay") / time.strftime("%Y%m%d-%H%M%S")
        check_free(out)
        who = [(name, _who(name)) for name in self.members]
        if len({run or name for name, run in who}) < len(who):
            raise ConfigError("somebody is named twice: name each of them once")
        games = {run.open().config().game for _, run in who if run}
        if len(games) > 1:
            raise ConfigError("the runs are of different games, which have no players in common")
        if games and self.game != default_game():
            raise ConfigError("the runs have a game of their own: leave --game options out")
        game = make_game(next(iter(games), self.game))
        members = [self._member(name, run, game) for name, run in who]
        total = len(members) ** 2 * game.seats * self.episodes
        with Progress("playing everyone among everyone", total, "episodes") as progress:
            key = jax.random.key(self.seed)
            found = crossplay(game, members, key, self.episodes, progress.advance)
        # Seeds of one run are samples of one thing, so that a run is what they say together.
        runs = [name if run is None else str(replace(run, seed=None)) for name, run in who]
        page = crossplay_page(found, runs, self.episodes)
        with clear_errors(f"write in {out}"):
            out.mkdir(parents=True, exist_ok=True)
            write_durably(out / "crossplay.json", page_json(page).encode())
        try_figure(out / "crossplay.png", lambda: draw_crossplay(found))
        return show(
            page,
            as_json=self.json,
            html=out / "crossplay.html",
            hints=[f"the picture and all figures are in {out}"],
            game=game.name,
            out=str(out),
        )

    def _member(self, name: str, run: RunName | None, game: Game) -> Member:
        if run is not None and run.seat is None:
            # The run's learners alone: where nobody has learned, the first who has sits down.
            known = {
                str(seat): one for seat, one in run_players(run.open(), run.seed, run.stage).items()
            }
            first = next(iter(known))
            names = [str(seat) if str(seat) in known else first for seat in range(game.seats)]
            return make_member(str(run), names, known, game, self.search)
        called = name if run is None else str(run)
        known = {called: find_trained(called)} if is_background(called) else {}
        return make_member(called, [called] * game.seats, known, game, self.search)


def _who(name: str) -> RunName | None:
    """The run that is meant, with its seed; None for a scripted player or one in a file."""
    if kind_of(name) is not Kind.RUN:
        return None
    said = read_run_name(name)
    if said.seat is not None and said.seed is None:
        raise ConfigError(
            f"{name!r} once meant a seed here and means a seat elsewhere: write"
            f" {said.path}#{said.seat} for seed {said.seat}, or the seed and the seat, as in"
            f" {said.path}#0@{said.seat}"
        )
    return replace(said, seed=said.open().config().seed if said.seed is None else said.seed)
