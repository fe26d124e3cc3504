"""Training: what `hopplus train` and `hopplus resume` do, for programs too."""

import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from hopplus.config import (
    ConfigError,
    GameConfig,
    SearchConfig,
    TrainConfig,
    change,
    default_game,
    read_toml,
)
from hopplus.learning.from_run import new_run
from hopplus.learning.left_out import LeftOut
from hopplus.learning.train import Moment, train_side_by_side
from hopplus.presets import PRESETS
from hopplus.runs.checkpoint import steps_of
from hopplus.runs.executor import Tell, telling
from hopplus.runs.folder import RunFolder, check_name
from hopplus.runs.processes import first_only, said_by_first
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say

PLAIN = "ppo"  # the preset of a file that names none: all defaults
# A game by its name, by some of its settings, or by all of them.
GameLike: TypeAlias = GameConfig | str | Mapping[str, Any]
SearchLike: TypeAlias = SearchConfig | Mapping[str, Any]


def as_game(game: GameLike | None) -> GameConfig:
    """The settings of the game that is meant; of the one that is played when none is named."""
    if game is None or isinstance(game, GameConfig):
        return default_game() if game is None else game
    return change(TrainConfig(), {"game": game}).game


def as_search(search: SearchLike | None) -> SearchConfig:
    """The settings of a search."""
    if search is None or isinstance(search, SearchConfig):
        return search or SearchConfig()
    return change(SearchConfig(), search, "search.")


def written_config(path: Path, preset: str | None = None) -> tuple[str, TrainConfig]:
    """The settings in a TOML file, and the preset that they are changes of: the one it names, or
    the one given."""
    tree = read_toml(path)
    named = tree.pop("preset", None) or preset or PLAIN
    if not isinstance(named, str) or preset not in (None, named):
        raise ConfigError(f"{path} says preset {named!r}: leave {preset} out, or the line")
    return named, change(PRESETS[named], tree)


def quietly(quiet: bool) -> TextIO | None:
    """Where progress goes: nowhere if it is to be quiet, else where it usually does."""
    return io.StringIO() if quiet else None


def begin(config: TrainConfig, name: str | None, runs: Path) -> RunFolder:
    """Make the folder of a run, called after the time if it has no name; of several processes that
    train it the first one does."""
    config.search.check_asked()
    name = f"run-{time.strftime('%Y%m%d-%H%M%S')}" if name is None else name
    path = runs / check_name(said_by_first(name))
    with first_only() as first:
        return new_run(path, config) if first else RunFolder(path)


def finish(run: RunFolder, *, quiet: bool = False) -> dict[str, Any]:
    """Train to the end, with progress; the result. Ctrl-C leaves a run that can be resumed."""
    run.log_until(max(steps_of(run.checkpoints), default=0))  # raises before work is announced
    config = run.config()
    total = config.updates * config.ppo.steps
    try:
        with Progress("training", total, "steps", quietly(quiet), where=run.path) as progress:
            (result,) = train_to_end([run], telling(progress))
    except KeyboardInterrupt:  # out here, where the bar is gone
        say(f"stopped; go on with: hopplus resume {run.path}")
        raise
    return result


def extend(run: RunFolder, steps: int) -> None:
    """Let a run have so many steps in the end."""
    config = run.config()
    longer = replace(config, steps=steps)
    done = steps_of(run.checkpoints)
    has = ""
    if longer.updates <= config.updates and run.result():
        has = f"has {config.updates * config.ppo.steps:,}"
    elif done and longer.updates < done[-1]:
        has = f"has come to {done[-1] * config.ppo.steps:,}"
    if has:
        raise ConfigError(f"--steps is {steps:,}, and {run.path} {has} already: give more to go on")
    with run.locked():
        run.extend(longer)


def train_to_end(
    runs: Sequence[RunFolder], tell: Tell, everyone: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Train a run, or several that each leave one of everyone out; their results. It can be sent to
    another process, as the work of an executor."""
    left_out = LeftOut.of(runs, everyone) if len(runs) > 1 else None
    return train_side_by_side(runs, left_out, lambda moment: tell(moment.steps, note_on(moment)))


def note_on(moment: Moment) -> str:
    """The learners' mean return, and that of every seat, learners marked if not all are."""
    if moment.returns is None:
        return ""
    partly = len(moment.learning) < len(moment.returns)
    seats = " ".join(
        f"{value:.2f}{'*' if partly and seat in moment.learning else ''}"
        for seat, value in enumerate(moment.returns)
    )
    return f"return {moment.mean_return:.2f} (seats {seats})"
