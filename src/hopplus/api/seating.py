"""Who plays: a run, names, or both."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hopplus.config import (
    MIXED,
    ConfigError,
    GameConfig,
    SearchConfig,
    check_options,
    default_game,
)
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.from_run import Seated, find_background_players, seats_by_seed
from hopplus.play.lineup import Lineup, make_lineup
from hopplus.play.names import MARKS, full_name, read_run_name, seeds_said
from hopplus.play.seating import options, split_names
from hopplus.play.trained import named
from hopplus.players.player import Player

RUN = "run"  # in a list of players, whoever sits there in the run that is given


class Setup(NamedTuple):
    """A game, its settings, and who plays it."""

    config: GameConfig
    game: Game
    lineup: Lineup
    focal: tuple[int, ...]  # the seats that means are about


class Setups(NamedTuple):
    """The same for each of a run's seeds; without a run there is one, of no seed."""

    seeds: list[int]
    each: list[Setup]


@dataclass(frozen=True)
class Playing:
    """What every command that lets players play is told."""

    run_name: str | None = None
    """A run whose players play: runs/a, runs/a#1 for its seed 1, or zoo:NAME for one that comes
    with hopplus (see `hopplus list zoo`)."""
    players: str | None = None
    """Who sits where, one name per seat: stag,stag,hare,random (see `hopplus list players`), a run
    (runs/a for its player of that seat, runs/a@2 for that of seat 2, runs/a#1~0.5@2 for that of
    seed 1 and seat 2 after half of the training), an exported player, module:function for one's
    own, run for the run given first (also run@2), or a mixture of such names (stag|hare) of whom
    one is drawn for each episode; a mixture alone is for every seat."""
    greedy: bool = False
    """Learned players take their best action instead of drawing from their policy."""
    game: GameConfig = field(default_factory=default_game)
    search: SearchConfig = field(default_factory=SearchConfig)
    seed: int = 0
    """Seed of everything random."""

    def setup(self) -> Setup:
        """The game and who plays it: of the run's first seed, unless another is named."""
        return self.setups(every_seed=False).each[0]

    def setups(self, *, every_seed: bool = True) -> Setups:
        """The game and who plays it, from a run, from names, or both; for every seed of the run
        that is meant.

        With a run, its own game is played, `run` means whoever sits there in the run, and that is
        everyone when no names are given.
        """
        check_options(seed=self.seed)
        if self.run_name is None:
            if self.players is None:
                raise ConfigError(
                    "who plays? Give a run folder, or --players stag,stag,hare,random"
                )
            return Setups([], [self._seated(self.game, None)])
        if self.game != default_game():
            raise ConfigError(f"{self.run_name} has a game of its own: leave --game options out")
        said = read_run_name(self.run_name)
        if said.seat is not None:
            raise ConfigError(
                f"{said} is one player of a run: name it in --players, and here the run alone"
            )
        run = said.open()
        config = run.config()
        seeds = seeds_said(said, config)[: None if every_seed else 1]
        runs = seats_by_seed(run, seeds, said.stage)
        each = [self._seated(config.game, of) for of in runs]
        if not any(one in runs[0].learners for one in each[0].lineup.trained):
            return Setups([], each[:1])  # nobody of the run plays, so that seeds make no difference
        return Setups(seeds, each)

    def _seated(self, config: GameConfig, run: Seated | None) -> Setup:
        asked = self.asked(config.seats, run)
        names = [self._called(name, seat, run) for seat, name in enumerate(asked)]
        known = run.known if run else {}
        elsewhere = [one for name in names for one in options(name) if one not in known]
        known = {**known, **find_background_players(elsewhere)}
        if self.search != SearchConfig() and not known:
            raise ConfigError("--search options are given, but nobody here has learned anything")
        game = make_game(config)
        seated = {name: named(player, name, greedy=self.greedy) for name, player in known.items()}
        lineup = make_lineup(names, game, seated, self.newcomer(game), search=self.search)
        own = _holding(names, run.learners) if run else ()
        everyone = tuple(range(config.seats))
        return Setup(config, game, lineup, own or _holding(names, list(known)) or everyone)

    def asked(self, seats: int, run: Seated | None) -> list[str]:
        """[N] who is asked to sit where, if a run's own with the seats of that."""
        return split_names(self.players, seats) if self.players else [RUN] * seats

    def newcomer(self, game: Game) -> Player | None:
        """Someone whom no table of players has."""
        return None

    def _called(self, name: str, seat: int, run: Seated | None) -> str:
        """The name in full, with the run's own in place of `run` and `run@2`."""
        found = []
        for one in options(name):
            own = one == RUN or (one.startswith(RUN) and one[len(RUN)] in MARKS)
            if own and run is None:
                raise ConfigError(f"{one!r} is somebody of the run given first, and there is none")
            found.append(_of_run(one, seat, run) if own and run else full_name(one, seat))
        return MIXED.join(found)


def _of_run(name: str, seat: int, run: Seated) -> str:
    """Whom `run` or `run@2` means, in that seat."""
    said = read_run_name(name)
    if said.seed is not None or said.stage is not None:
        raise ConfigError(
            f"{name!r}: name seed and stage behind the run itself, as in runs/a#1~0.5"
        )
    wanted = seat if said.seat is None else said.seat
    if wanted >= len(run.names):
        raise ConfigError(f"{name!r}: the run has the seats 0 to {len(run.names) - 1}")
    return run.names[wanted]


def _holding(names: Sequence[str], some: Sequence[str]) -> tuple[int, ...]:
    """The seats in which always one of these sits."""
    return tuple(seat for seat, name in enumerate(names) if set(options(name)) <= set(some))
