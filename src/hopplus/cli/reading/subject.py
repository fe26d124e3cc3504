"""Whom a command is about: a run, exported players, or a preset that learns first."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from hopplus.cli.train import carry_on
from hopplus.config import ConfigError, GameConfig, TrainConfig, default_game
from hopplus.learning.from_run import new_run, player_in, players_by_seed
from hopplus.play.names import Kind, RunName, kind_of, read_run_name, seeds_said
from hopplus.play.trained import Trained, read_player
from hopplus.presets import PRESETS
from hopplus.runs.folder import check_free
from hopplus.runs.watchdog import say


@dataclass(frozen=True)
class Subject:
    """Learned players by seat, of each of [S] seeds."""

    name: str
    game: GameConfig
    players: Sequence[Mapping[int, Trained]]
    folder: Path = Path()  # for what is written about them
    config: TrainConfig | None = None  # of their run; None for players alone


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


def find_subject(
    names: Sequence[str], game: GameConfig, steps: int | None, seeds: int, seed: int, runs: Path
) -> Subject:
    """Whoever is meant: one run, any number of players' files, or one preset, which learns now."""
    first = names[0] if names else ""
    preset = kind_of(first) is Kind.PRESET
    if steps is not None and not preset:
        raise ConfigError("--steps is for presets: runs and players have learned already")
    if names and all(kind_of(name) is Kind.FILE for name in names):
        players = [{0: read_player(Path(name))} for name in names]
        return Subject(", ".join(Path(name).stem for name in names), game, players)
    if len(names) != 1:
        raise ConfigError("give one run, one preset, or players exported by hopplus export")
    if preset:
        config = replace(PRESETS[first], game=game, seeds=seeds, seed=seed, train_against="all")
        config = replace(config, steps=steps or config.steps, trial=max(config.trial, 5))
        check_free(
            runs / f"adapt-{first}",
            f"go on with hopplus adapt {runs / f'adapt-{first}'}, or take another --runs",
        )
        run = new_run(runs / f"adapt-{first}", config)
        with redirect_stdout(sys.stderr):
            if carry_on(run, False):
                raise KeyboardInterrupt
        say(f"{first} has learned; from now on: hopplus adapt {run.path}")
        said = RunName(run.path)
    elif found := _run_named(first):
        said, run = found, found.open()
    else:
        near = get_close_matches(first, PRESETS, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f"{first!r} is neither a run's folder nor a preset{hint}")
    config = run.config()
    by_seed = players_by_seed(run, seeds_said(said, config))
    players = [_of_seat(said, found) for found in by_seed.values()]
    return Subject(str(said), config.game, players, run.path, config)


def _of_seat(said: RunName, players: dict[int, Trained]) -> dict[int, Trained]:
    """The player of the seat that is named, for wherever it sits, or all of them."""
    if said.seat is None:
        return players
    return {said.seat: player_in(said, players)}
