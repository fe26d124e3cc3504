"""Who plays: shared by the commands that let players play."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from hopplus.cli.options import check_seed
from hopplus.config import MIXED, ConfigError, GameConfig, SearchConfig
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.company import Company, make_company
from hopplus.learning.restore import find_guests, full_name, run_seats
from hopplus.learning.trained import Trained, named
from hopplus.players.seating import options, split_names
from hopplus.runs.folder import open_run


class Setup(NamedTuple):
    """A game, its settings, and who plays it."""

    config: GameConfig
    game: Game
    company: Company


@dataclass(frozen=True)
class Playing:
    """The options of every command that lets players play."""

    run_folder: Annotated[Path | None, tyro.conf.Positional] = None
    """A run whose players play."""
    players: Annotated[str | None, tyro.conf.arg(aliases=("--seats",))] = None
    """Who sits where, one name per seat: stag,stag,hare,random (see `hopplus list players`), a run
    (runs/a, runs/a@2), an exported player, run for the run given first, or a mixture of such names
    (stag|hare) of whom one is drawn for each episode; a mixture alone is for every seat."""
    greedy: bool = False
    """Learned players take their best action instead of drawing from their policy."""
    run_seed: int = 0
    """Which of the run's seeds, counted from 0."""
    game: GameConfig = field(default_factory=GameConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    seed: int = 0
    """Seed of everything random."""

    def setup(self) -> Setup:
        """The game and who plays it, from a run, from names, or both.

        With a run, its own game is played, `run` means whoever sits there in the run, and that is
        everyone when no names are given.
        """
        check_seed(self.seed)
        run, players, game = self.run_folder, self.players, self.game
        if run is None and players is None:
            raise ConfigError("who plays? Give a run folder, or --players stag,stag,hare,random")
        own: list[str] = []
        known: dict[str, Trained] = {}
        if run is not None:
            if game != GameConfig():
                raise ConfigError(f"{run} has a game of its own: leave --game options out")
            folder = open_run(run)
            game = folder.config().game
            own, known = run_seats(folder, self.run_seed)
        asked = split_names(players, game.seats) if players else ["run"] * game.seats
        names = []
        for seat, name in enumerate(asked):
            called = [own[seat] if one == "run" and run else one for one in options(name)]
            names.append(full_name(MIXED.join(called), seat))
        elsewhere = [one for name in names for one in options(name) if one not in known]
        known = {**known, **find_guests(elsewhere)}
        if self.search != SearchConfig() and not known:
            raise ConfigError("--search options are given, but nobody here has learned anything")
        made = make_game(game)
        seated = {name: named(player, name, greedy=self.greedy) for name, player in known.items()}
        return Setup(game, made, make_company(names, made, seated, search=self.search))
