"""Parts of minds that were learned before, from recorded play: found, kept in a run, and read."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from hopplus.config import (
    ConfigError,
    PretrainGoal,
    PretrainOpponent,
    PretrainWorld,
    TrainConfig,
)
from hopplus.games import make_game
from hopplus.learning.parts import Setting, load_parts
from hopplus.models.nets import Mlp
from hopplus.models.opponent import OpponentModel
from hopplus.players.actor import make_actor
from hopplus.players.parts import Parts
from hopplus.runs.checkpoint import filled, named_arrays, write_durably
from hopplus.runs.folder import open_run
from hopplus.types import Params

FOLDER = "parts/"  # where a run keeps them
FIELDS = {"goal": "prior", "opponent": "opponents", "world": "world"}  # of a mind


@dataclass(frozen=True)
class Initial:
    """What a run begins with, by part."""

    params: dict[str, Params]

    @property
    def fields(self) -> dict[str, Params]:
        """By the field of a mind."""
        return {FIELDS[name]: params for name, params in self.params.items()}


def find_initial(config: TrainConfig) -> tuple[TrainConfig, Initial]:
    """Load the parts that a configuration takes from runs, each the first seed's; and the
    configuration with their shapes, and with the places where the run will keep them."""
    found: dict[str, Params] = {}
    for name in FIELDS:
        given = getattr(config, name).from_run
        if given is None:
            continue
        if name not in config.parts:
            raise ConfigError(f"--{name}.from is given but --parts has no {name}")
        setting, params = load_parts(open_run(Path(given)))
        config = _shaped(config, name, setting, given)
        found[name] = jax.tree.map(lambda leaf: leaf[0], params)
    if "opponent" in found:
        found["opponent"] = _told(found["opponent"], config)
    return config, Initial(found)


def _shaped(config: TrainConfig, name: str, setting: Setting, given: str) -> TrainConfig:
    """The configuration with a part as it is in the run that it comes from."""
    option = f"--{name}.from {given}"
    if setting.config.kind != name:
        raise ConfigError(f"{option} is a run of kind {setting.config.kind}, no {name}")
    if setting.game.shape != make_game(config.game).shape:
        raise ConfigError(
            f"{option} is of boards {setting.game.shape}, the game has"
            f" {make_game(config.game).shape}"
        )
    inside = f"{FOLDER}{name}.safetensors"
    match setting.config:
        case PretrainGoal() as known:
            return replace(config, goal=replace(config.goal, prior=known.goal, from_run=inside))
        case PretrainWorld() as known:
            return replace(config, world=replace(config.world, model=known.world, from_run=inside))
        case PretrainOpponent() as known:
            if known.opponent.goal != "none":
                raise ConfigError(
                    f"{option} was told the goal {known.opponent.goal}, which nobody knows in play:"
                    " take one with --opponent.goal none"
                )
            opponent = replace(config.opponent, net=known.opponent.net, from_run=inside)
            return replace(config, opponent=opponent)


def _told(model: OpponentModel, config: TrainConfig) -> OpponentModel:
    """A model that was told no goals, as one that is and does not care yet."""
    part = make_actor("learn", make_game(config.game), config).parts.opponent
    assert part is not None
    size = part.goal

    def first(model: OpponentModel) -> jax.Array:
        dense = model.body if isinstance(model.body, Mlp) else model.body.dense
        return dense.dense.layers[0].weight

    wider: OpponentModel = eqx.tree_at(
        first, model, replace_fn=lambda weight: jnp.pad(weight, ((0, size), (0, 0)))
    )
    return wider


def write_initial(folder: Path, initial: Initial) -> None:
    """Put them into a run's folder, so that the run needs nothing outside."""
    for name, params in initial.params.items():
        path = folder / f"{FOLDER}{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        write_durably(path, save_tensors(named_arrays(params)))


def read_initial(folder: Path, config: TrainConfig) -> Initial:
    """What `write_initial` put into a run's folder."""
    parts = make_actor("learn", make_game(config.game), config).parts
    found = {}
    for name in FIELDS:
        inside = getattr(config, name).from_run
        if inside is None:
            continue
        path = folder / inside
        try:
            arrays = load_tensors(path.read_bytes())
        except (OSError, SafetensorError) as error:
            raise ConfigError(f"cannot read {path}: {error}") from error
        found[name] = filled(_shapes(parts, name), arrays, str(path))
    return Initial(found)


def _shapes(parts: Parts, name: str) -> Any:
    part = {"goal": parts.prior, "opponent": parts.opponent, "world": parts.world}[name]
    assert part is not None
    return jax.eval_shape(part.init, jax.random.key(0))
