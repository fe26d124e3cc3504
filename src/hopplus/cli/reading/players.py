"""Who plays, and whom a command is about: a run, exported players, names, or a preset that learns
first."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, NamedTuple

import tyro

from hopplus.cli.reading.options import check_options
from hopplus.cli.train import carry_on
from hopplus.config import MIXED, ConfigError, GameConfig, SearchConfig, TrainConfig, default_game
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.from_run import (
    Seated,
    find_background_players,
    names_met,
    new_run,
    player_in,
    players_by_seed,
    players_met,
    seats_by_seed,
    settled,
)
from hopplus.play.lineup import Lineup, make_lineup
from hopplus.play.names import MARKS, Kind, RunName, full_name, kind_of, read_run_name, seeds_said
from hopplus.play.seating import options, split_names
from hopplus.play.trained import Trained, named, read_player
from hopplus.players.player import Player
from hopplus.presets import PRESETS
from hopplus.runs.folder import check_free
from hopplus.runs.watchdog import say

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
    """The options of every command that lets players play."""

    run_name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """A run whose players play: runs/a, or runs/a#1 for its seed 1."""
    players: Annotated[str | None, tyro.conf.arg(aliases=("--seats",))] = None
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
        asked = self.asked(config.seats)
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

    def asked(self, seats: int) -> list[str]:
        """[N] who is asked to sit where."""
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


@dataclass(frozen=True)
class LearnedPlayers:
    """Learned players by seat, of each of [S] seeds."""

    name: str
    game: GameConfig
    players: Sequence[Mapping[int, Trained]]
    folder: Path = Path()  # for what is written about them
    config: TrainConfig | None = None  # of their run; None for players alone
    met: Mapping[str, Trained] = field(default_factory=dict)  # from elsewhere, by their names there


def game_of(names: Sequence[str], game: GameConfig) -> GameConfig:
    """The game that is played by whoever is meant: a run's own, or the one given."""
    said = _run_named(names[0]) if len(names) == 1 else None
    if said is None:
        return game
    if game != default_game():
        raise ConfigError(f"{names[0]} has a game of its own: leave --game options out")
    return said.open().config().game


def _run_named(name: str) -> RunName | None:
    """The run of a name that is no preset's and no player's, if there is one."""
    if kind_of(name) in (Kind.FILE, Kind.PRESET):
        return None
    said = read_run_name(name)
    return said if said.path.exists() else None


def find_learned_players(
    names: Sequence[str], game: GameConfig, steps: int | None, seeds: int, seed: int, runs: Path
) -> LearnedPlayers:
    """Whoever is meant: one run, any number of players' files, or one preset, which learns now."""
    first = names[0] if names else ""
    preset = kind_of(first) is Kind.PRESET
    if steps is not None and not preset:
        raise ConfigError("--steps is for presets: runs and players have learned already")
    if names and all(kind_of(name) is Kind.FILE for name in names):
        players = [{0: read_player(Path(name))} for name in names]
        return LearnedPlayers(", ".join(Path(name).stem for name in names), game, players)
    if len(names) != 1:
        raise ConfigError("give one run, one preset, or players exported by hopplus export")
    if preset:
        config = replace(PRESETS[first], game=game, seeds=seeds, seed=seed, train_against="all")
        config = replace(config, steps=steps or config.steps, trial=max(config.trial, 5))
        path = runs / f"adapt-{first}"
        check_free(path, f"go on with hopplus adapt {path}, or take another --runs")
        run = new_run(path, config)
        with redirect_stdout(sys.stderr):
            if carry_on(run, False):
                raise KeyboardInterrupt
        say(f"{first} has learned; from now on: hopplus adapt {run.path}")
        said = RunName(run.path)
    elif found := _run_named(first):
        said, run = found, found.open()
    else:
        raise ConfigError(neither(first))
    config = run.config()
    # As an oracle is told of them: by the names by which lineups call them too.
    called = settled(config, names_met(config, run.facts()))
    by_seed = players_by_seed(run, seeds_said(said, config), said.stage)
    # The player of the seat that is named, for wherever it sits, or all of them.
    players = [
        {
            seat: replace(one, config=called)
            for seat, one in found.items()
            if said.seat is None or one is player_in(said, found)
        }
        for found in by_seed.values()
    ]
    return LearnedPlayers(str(said), config.game, players, run.path, config, players_met(run))


def neither(name: str) -> str:
    """What to say of a name that is no run's and no preset's."""
    near = get_close_matches(name, PRESETS, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{name!r} is neither a run's folder nor a preset{hint}"
