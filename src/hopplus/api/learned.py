"""Whom a study is about: a run, exported players, or a preset that learns first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from hopplus.api.training import finish
from hopplus.config import ConfigError, GameConfig, TrainConfig, default_game
from hopplus.learning.from_run import (
    names_met,
    new_run,
    player_in,
    players_by_seed,
    players_met,
    settled,
)
from hopplus.play.names import Kind, RunName, kind_of, read_run_name, seeds_said
from hopplus.play.trained import Trained, read_player
from hopplus.presets import PRESETS
from hopplus.runs.folder import check_free
from hopplus.runs.watchdog import say
from hopplus.runs.zoo import find_home


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
    return said if find_home(said.path).exists() else None


def find_learned_players(
    names: Sequence[str],
    game: GameConfig,
    steps: int | None,
    seeds: int,
    seed: int,
    runs: Path,
    quiet: bool = False,
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
        finish(run, quiet=quiet)
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
    return LearnedPlayers(str(said), config.game, players, run.pages, config, players_met(run))


def neither(name: str) -> str:
    """What to say of a name that is no run's and no preset's."""
    near = get_close_matches(name, PRESETS, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{name!r} is neither a run's folder nor a preset{hint}"
