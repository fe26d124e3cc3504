"""Models by their configuration, and models of finished runs."""

import json
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from hopplus.config import (
    ConfigError,
    GameConfig,
    GoalConfig,
    PretrainConfig,
    PretrainGoal,
    PretrainOpponent,
    PretrainWorld,
    WorldConfig,
    from_json,
    to_json,
)
from hopplus.games import make_game
from hopplus.games.game import Game, check_board
from hopplus.models.goal import GoalPart
from hopplus.models.opponent import OpponentPart
from hopplus.models.part import Part
from hopplus.models.world import board_of
from hopplus.models.world_part import WorldPart
from hopplus.play.seeds import seed_keys
from hopplus.recorded.dataset import Data
from hopplus.recorded.samples import Sampler, seat_steps
from hopplus.runs.checkpoint import filled, read_arrays, write_arrays
from hopplus.runs.folder import RunFolder, open_run
from hopplus.types import Params

PRIOR_FILE = "goal.safetensors"  # in the folder of a run whose model is given goals
MODEL = "model"  # the file of a checkpoint that holds what each seed had learned at its best
KINDS: dict[str, type[PretrainConfig]] = {
    kind.kind: kind for kind in (PretrainGoal, PretrainOpponent, PretrainWorld)
}


@dataclass(frozen=True)
class Prior:
    """A goal prior and what it has learned."""

    part: GoalPart
    params: Params


@dataclass(frozen=True)
class Setting:
    """What a run fits, and how samples for it are made."""

    config: PretrainConfig
    part: Part
    sampler: Sampler
    prior_params: Params = ()  # of the goal prior in the sampler, if there is one

    @property
    def game(self) -> Game:
        return self.sampler.game


def make_setting(
    config: PretrainConfig,
    game_config: GameConfig,
    prior: Prior | None = None,
    class_weights: tuple[float, ...] = (),
) -> Setting:
    """The model that a configuration describes, for a game."""
    game = make_game(game_config)
    actions = len(game.action_names)
    part: Part
    match config:
        case PretrainGoal():
            part = GoalPart(game.shape, actions, config.goal)
            return Setting(config, part, Sampler(game, config.goal.ahead))
        case PretrainOpponent():
            ahead = prior.part.config.ahead if prior else 1
            sampler = Sampler(game, ahead, config.opponent.goal, prior.part if prior else None)
            weights = class_weights or (1.0,) * actions
            net, size = config.opponent.net, sampler.goal_size
            part = OpponentPart(game.shape, game.seats, actions, size, net, weights)
            return Setting(config, part, sampler, prior.params if prior else ())
        case PretrainWorld():
            check_world(config.world, game)
            return Setting(config, WorldPart(board_of(game), config.world), Sampler(game))


def check_world(config: WorldConfig, game: Game) -> None:
    """Raise `ConfigError` where a world model cannot be one of such a game."""
    check_board(game, "a world model")
    if not game.sees_all and config.head == "structured":
        raise ConfigError(
            f"nobody sees {game.hidden}, so that others come into sight and go out of it, of which"
            " the structured world model knows nothing: take --world.head cells"
        )
    given = len(config.channel_weights)
    if given not in (0, game.shape[2]):
        raise ConfigError(
            f"world.channel_weights has {given} numbers but views have {game.shape[2]} planes"
        )


def doubts(config: PretrainConfig, game: Game) -> list[str]:
    """What no model of this kind can know of such a game, in sentences."""
    if isinstance(config, PretrainWorld) and game.hidden:
        return [f"no view tells {game.hidden}: expect errors in what depends on it"]
    return []


def class_weights_of(config: PretrainConfig, data: Data) -> tuple[float, ...]:
    """[A] one over how often each action is taken, 1 on average; empty where none are wanted."""
    if not (isinstance(config, PretrainOpponent) and config.opponent.weighted):
        return ()
    counts = np.zeros(len(data.game.action_names))
    for shard in data.iterate():
        row, seat = seat_steps(shard, config.fit.held_out, measured=False).T
        counts += np.bincount(np.asarray(shard.rows.joint)[row, seat], minlength=len(counts))
    weights = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return tuple(np.where(counts > 0, weights, 0.0).tolist())


def kind_of(run: RunFolder) -> type[PretrainConfig]:
    """What configures a run of `hopplus pretrain`."""
    kind = KINDS.get(run.kind)
    if kind is None:
        raise ConfigError(
            f"{run.path} is a run of kind {run.kind} and not of hopplus pretrain: it has no model"
            " of its own to look at"
        )
    return kind


def setting_of(run: RunFolder, data: Data | None = None) -> Setting:
    """What an existing run fits; class weights only with the data."""
    facts, config = run.facts(), run.config_of(kind_of(run))
    weights = class_weights_of(config, data) if data else ()
    game = from_json(GameConfig, facts["game"])
    return make_setting(config, game, read_prior(run.path, make_game(game)), weights)


def load_parts(run: RunFolder) -> tuple[Setting, Params]:
    """The model of a run, and what each seed had learned at its best, [S, ...]."""
    setting = setting_of(run)
    saved = run.load(
        {MODEL: jax.eval_shape(jax.vmap(setting.part.init), seed_keys(setting.config))}
    )
    if saved is None:
        raise ConfigError(f"{run.path} has no usable checkpoint yet")
    return setting, saved.trees[MODEL]


def load_first(
    option: str, run: str, kind: str, shape: tuple[int, int, int]
) -> tuple[Setting, Params]:
    """The model of the run that an option names, of its first seed, if it is of that kind and of
    such boards."""
    setting, params = load_parts(open_run(Path(run)))
    if setting.config.kind != kind:
        raise ConfigError(f"{option} {run} is a run of kind {setting.config.kind}, no {kind}")
    if setting.game.shape != shape:
        raise ConfigError(
            f"{option} {run} is of boards {setting.game.shape}, and {shape} are needed"
        )
    return setting, jax.tree.map(lambda leaf: leaf[0], params)


def find_prior(config: PretrainConfig, game: Game) -> Prior | None:
    """The goal prior that a configuration asks for: the first seed's of a run elsewhere."""
    if not (isinstance(config, PretrainOpponent) and config.goal_run):
        return None
    setting, params = load_first("--goal-run", config.goal_run, PretrainGoal.kind, game.shape)
    assert isinstance(setting.part, GoalPart)
    return Prior(setting.part, params)


def write_prior(folder: Path, prior: Prior | None) -> None:
    """Put a goal prior into a run's folder, so that the run needs nothing outside."""
    if prior is not None:
        about = {"goal": json.dumps(to_json(prior.part.config))}
        write_arrays(folder / PRIOR_FILE, prior.params, about)


def read_prior(folder: Path, game: Game) -> Prior | None:
    """The goal prior that a run's folder holds, if it holds one."""
    path = folder / PRIOR_FILE
    if not path.exists():
        return None
    arrays, about = read_arrays(path, "the goal prior")
    try:
        config = from_json(GoalConfig, json.loads(about["goal"]))
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"cannot read the goal prior {path}: {error}") from error
    part = GoalPart(game.shape, len(game.action_names), config)
    like = jax.eval_shape(part.init, jax.random.key(0))
    return Prior(part, filled(like, arrays, str(path)))
