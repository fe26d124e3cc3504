"""Whom a command is about: a run, exported players, or a preset that learns first."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from hopplus.cli.train import carry_on
from hopplus.config import ConfigError, GameConfig, TrainConfig
from hopplus.learning.restore import PLAYER_FILE, new_run, run_players
from hopplus.learning.trained import Trained, read_player
from hopplus.presets import PRESETS
from hopplus.runs.folder import open_run
from hopplus.runs.watchdog import say


@dataclass(frozen=True)
class Subject:
    """Learned players by seat, of each of [S] seeds."""

    name: str
    game: GameConfig
    players: Sequence[Mapping[int, Trained]]
    config: TrainConfig | None = None  # of their run; None for players alone


def game_of(names: Sequence[str], game: GameConfig) -> GameConfig:
    """The game that is played by whoever is meant: a run's own, or the one given."""
    if len(names) == 1 and not names[0].endswith(PLAYER_FILE) and Path(names[0]).exists():
        if game != GameConfig():
            raise ConfigError(f"{names[0]} has a game of its own: leave --game options out")
        return open_run(Path(names[0])).config().game
    return game


def find_subject(
    names: Sequence[str], game: GameConfig, steps: int | None, seeds: int, seed: int, runs: Path
) -> Subject:
    """Whoever is meant: one run, any number of players' files, or one preset, which learns now."""
    first = names[0] if names else ""
    preset = first in PRESETS and not Path(first).exists()
    if steps is not None and not preset:
        raise ConfigError("--steps is for presets: runs and players have learned already")
    if names and all(name.endswith(PLAYER_FILE) for name in names):
        players = [{0: read_player(Path(name))} for name in names]
        return Subject(", ".join(Path(name).stem for name in names), game, players)
    if len(names) != 1:
        raise ConfigError("give one run, one preset, or players exported by hopplus export")
    if preset:
        config = replace(PRESETS[first], game=game, seeds=seeds, seed=seed, train_against="all")
        config = replace(config, steps=steps or config.steps, trial=max(config.trial, 5))
        run = new_run(runs / f"adapt-{first}", config)
        with redirect_stdout(sys.stderr):
            if carry_on(run, False):
                raise KeyboardInterrupt
        say(f"{first} has learned; from now on: hopplus adapt {run.path}")
    elif Path(first).exists():
        run = open_run(Path(first))
    else:
        near = get_close_matches(first, PRESETS, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f"{first!r} is neither a run's folder nor a preset{hint}")
    config = run.config()
    players = [run_players(run, number) for number in range(config.seeds)]
    return Subject(str(run.path), config.game, players, config)
