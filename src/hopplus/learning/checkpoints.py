"""What a training run saves: its players, and apart from them what only training needs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError, TrainConfig
from hopplus.learning.learner import Learner, Learning
from hopplus.play.seeds import seed_keys
from hopplus.players.actor import Actor
from hopplus.players.parameters import PlayerParams
from hopplus.runs.checkpoint import PLAYERS, TRAINING
from hopplus.runs.folder import RunFolder, Saved


def split_learning(learner: Learner, learning: Learning) -> dict[str, Any]:
    """The files of a checkpoint: the learning player's parameters, and the rest."""
    rest = replace(learning, params=_with(learner, learning, None))
    return {PLAYERS: learning.params[learner.learning], TRAINING: rest}


def join_learning(learner: Learner, trees: Mapping[str, Any]) -> Learning:
    """What `split_learning` took apart."""
    rest: Learning = trees[TRAINING]
    return replace(rest, params=_with(learner, rest, trees[PLAYERS]))


def _with(learner: Learner, learning: Learning, players: PlayerParams | None) -> tuple[Any, ...]:
    return tuple(
        players if group == learner.learning else params
        for group, params in enumerate(learning.params)
    )


def empty_learning(learner: Learner, config: TrainConfig) -> Learning:
    """The shapes of what is learned, over seeds."""
    shapes: Learning = jax.eval_shape(learner.init_all, seed_keys(config))
    return shapes


def load_learning(
    run: RunFolder, learner: Learner, config: TrainConfig
) -> tuple[Learning, Saved] | None:
    """Where a run goes on: the newest checkpoint with all that training needs, if there is any."""
    saved = run.load(split_learning(learner, empty_learning(learner, config)))
    return saved and (join_learning(learner, saved.trees), saved)


def load_players(run: RunFolder, actor: Actor, seats: int) -> PlayerParams:
    """[S, sets, ...] NumPy arrays, what the player of so many seats has learned in all seeds of a
    run. Needs no learner, and reads nothing that only training needs."""
    sets = 1 if actor.shares_params else seats

    def fresh(key: jax.Array) -> PlayerParams:
        param_sets: PlayerParams = jax.vmap(actor.init)(jax.random.split(key, sets))
        return param_sets

    saved = run.load({PLAYERS: jax.eval_shape(jax.vmap(fresh), seed_keys(run.config()))})
    if saved is None:
        raise ConfigError(f"{run.path} has no usable checkpoint yet")
    # By NumPy: whoever takes one seed and seat of it by JAX compiles a program for every shape.
    learned: PlayerParams = jax.tree.map(np.asarray, saved.trees[PLAYERS])
    return learned
