"""Whom a command is about: a run, exported players, or a preset that learns first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from hopplus.cli.train import carry_on
from hopplus.config import ConfigError, GameConfig, TrainConfig
from hopplus.learning.restore import PLAYER_FILE, new_run, run_players
from hopplus.learning.trained import Trained, read_player
from hopplus.presets import PRESETS
from hopplus.runs.folder import open_run


@dataclass(frozen=True)
class Subject:
    """Learned players by seat, of each of [S] seeds."""

    name: str
    game: GameConfig
    players: Sequence[Mapping[int, Trained]]
    config: TrainConfig | None = None  # of their run; None for players alone


def find_subject(
    names: Sequence[str], game: GameConfig, steps: int | None, seeds: int, runs: Path
) -> Subject:
    """Whoever is meant: one run, any number of players' files, or one preset."""
    first = names[0] if names else ""
    if names and all(name.endswith(PLAYER_FILE) for name in names):
        players = [{0: read_player(Path(name))} for name in names]
        return Subject(", ".join(Path(name).stem for name in names), game, players)
    if len(names) != 1:
        raise ConfigError("give one run, one preset, or players exported by hopplus export")
    if first in PRESETS and not Path(first).exists():
        config = replace(PRESETS[first], game=game, seeds=seeds, train_against="all", seats=None)
        config = replace(config, steps=steps or config.steps, trial=max(config.trial, 5))
        run = new_run(runs / f"adapt-{first}", config)
        if carry_on(run, False):
            raise KeyboardInterrupt
    elif Path(first).exists():
        run = open_run(Path(first))
        if game != GameConfig():
            raise ConfigError(f"{first} has a game of its own: leave --game options out")
        if steps is not None:
            raise ConfigError(f"--steps is for presets, and {first} has learned already")
    else:
        near = get_close_matches(first, PRESETS, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f"{first!r} is neither a run's folder nor a preset{hint}")
    config = run.config()
    players = [run_players(run, seed) for seed in range(config.seeds)]
    return Subject(str(run.path), config.game, players, config)
