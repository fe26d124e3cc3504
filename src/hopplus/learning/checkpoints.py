"""What a training run keeps in its folder: its players, apart from them what only training needs,
and the models that it began with."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError, TrainConfig
from hopplus.games import make_game
from hopplus.learning.auxiliary.table import warm_starts
from hopplus.learning.learner import Learner, Learning
from hopplus.play.seeds import seed_keys
from hopplus.players.actor import Actor, make_actor
from hopplus.players.parameters import PlayerParams
from hopplus.recorded.models import load_first
from hopplus.runs.checkpoint import (
    PLAYERS,
    STAGE,
    TRAINING,
    filled,
    read_arrays,
    read_manifest,
    steps_of,
    write_arrays,
)
from hopplus.runs.folder import RunFolder, Saved
from hopplus.types import Params

FOLDER = "parts/"  # where a run keeps what it began with
NEAR = 0.05  # how far from a stage, as a share of the training, a checkpoint of it may be


def split_learning(learner: Learner, learning: Learning) -> dict[str, Any]:
    """The files of a checkpoint: the learning player's parameters, and the rest."""
    rest = replace(learning, params=learner.with_param_sets(learning.params, None))
    return {PLAYERS: learning.params[learner.learning], TRAINING: rest}


def join_learning(learner: Learner, trees: Mapping[str, Any]) -> Learning:
    """What `split_learning` took apart."""
    rest: Learning = trees[TRAINING]
    return replace(rest, params=learner.with_param_sets(rest.params, trees[PLAYERS]))


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


def stages_of(run: RunFolder) -> dict[int, float]:
    """The stages that a run has kept: its checkpoints that were to stay, and the newest; each with
    the share of the training that was done."""
    updates, steps = run.config().updates, steps_of(run.checkpoints)
    held = [s for s in steps[:-1] if read_manifest(run.checkpoints / str(s)).get(STAGE)]
    return {step: float(f"{step / updates:.3g}") for step in [*held, *steps[-1:]]}


def step_at(run: RunFolder, stage: float) -> int:
    """The checkpoint nearest to a stage of a run."""
    updates, steps = run.config().updates, steps_of(run.checkpoints)
    nearest = min(steps, key=lambda step: abs(step / updates - stage), default=None)
    if nearest is None or abs(nearest / updates - stage) > NEAR:
        there = ", ".join(f"~{step / updates:.3g}" for step in steps) or "none"
        raise ConfigError(
            f"{run.path} has kept no checkpoint near ~{stage:g} of its training; there are {there}"
            " (--keep-stages keeps more while a run trains)"
        )
    return nearest


def load_players(
    run: RunFolder, actor: Actor, seats: int, stage: float | None = None
) -> PlayerParams:
    """[S, sets, ...] NumPy arrays, what the player of so many seats has learned in all seeds of a
    run, by now or by that stage. Needs no learner, and reads nothing that only training needs."""
    sets = 1 if actor.shares_params else seats

    def fresh(key: jax.Array) -> PlayerParams:
        param_sets: PlayerParams = jax.vmap(actor.init)(jax.random.split(key, sets))
        return param_sets

    shapes = {PLAYERS: jax.eval_shape(jax.vmap(fresh), seed_keys(run.config()))}
    saved = run.load(shapes, None if stage is None else step_at(run, stage))
    if saved is None:
        raise ConfigError(f"{run.path} has no usable checkpoint yet")
    # By NumPy: whoever takes one seed and seat of it by JAX compiles a program for every shape.
    learned: PlayerParams = jax.tree.map(np.asarray, saved.trees[PLAYERS])
    return learned


def find_warm_start(config: TrainConfig) -> tuple[TrainConfig, dict[str, Params]]:
    """Load the models that a configuration takes from runs, each the first seed's, with those that
    they were fitted with; and the configuration with their shapes, and with the places where the
    run will keep them."""
    found: dict[str, tuple[dict[str, Any], Params]] = {}
    whose: dict[str, str] = {}
    for name, start in warm_starts().items():
        given, option = getattr(config, name).from_run, f"--{name}.from"
        if given is None:
            continue
        if name not in config.parts:
            raise ConfigError(f"{option} is given but --parts has no {name}")
        setting, params = load_first(option, given, name, make_game(config.game).shape)
        own = {name: (start.settings(setting.config), params)}
        for model, loaded in (own | start.brings(setting)).items():
            if model not in config.parts:
                raise ConfigError(
                    f"{option} {given} was fitted with a {model} model but --parts has no {model}"
                )
            if model in found and not _same(found[model], loaded):
                raise ConfigError(
                    f"{whose[model]} and {option} bring different {model} models: leave out"
                    f" --{model}.from"
                )
            found[model], whose[model] = loaded, option
    kept: dict[str, Any] = {
        name: replace(getattr(config, name), from_run=f"{FOLDER}{name}.safetensors", **settings)
        for name, (settings, _) in found.items()
    }
    config = replace(config, **kept)
    parts = make_actor("learn", make_game(config.game), config).parts
    starts = warm_starts()
    return config, {name: starts[name].adapt(one, parts) for name, (_, one) in found.items()}


def _same(one: tuple[dict[str, Any], Params], two: tuple[dict[str, Any], Params]) -> bool:
    """Whether settings and parameters are the same."""
    leaves = (jax.tree.leaves(params) for _, params in (one, two))
    return one[0] == two[0] and all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


def write_warm_start(folder: Path, warm_start: Mapping[str, Params]) -> None:
    """Put them into a run's folder, so that the run needs nothing outside."""
    for name, params in warm_start.items():
        path = folder / f"{FOLDER}{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        write_arrays(path, params)


def read_warm_start(folder: Path, config: TrainConfig) -> dict[str, Params]:
    """What `write_warm_start` put into a run's folder."""
    parts = make_actor("learn", make_game(config.game), config).parts
    found = {}
    for name, start in warm_starts().items():
        inside = getattr(config, name).from_run
        if inside is None:
            continue
        path = folder / inside
        arrays, _ = read_arrays(path, f"the {name} model")
        part = start.model(parts)
        assert part is not None
        shapes = jax.eval_shape(part.init, jax.random.key(0))
        found[name] = filled(shapes, arrays, str(path))
    return found
