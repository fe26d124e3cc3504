"""Parts of players that were learned before, from recorded play: found, kept in a run, and read."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from hopplus.config import ConfigError, TrainConfig
from hopplus.games import make_game
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS
from hopplus.players.actor import make_actor
from hopplus.recorded.models import load_first
from hopplus.runs.checkpoint import filled, read_arrays, write_arrays
from hopplus.types import Params

FOLDER = "parts/"  # where a run keeps them
STARTS = {name: row.warm_start for name, row in AUXILIARY_MODELS.items() if row.warm_start}


@dataclass(frozen=True)
class WarmStart:
    """What a run begins with, by part."""

    params: dict[str, Params]

    @property
    def fields(self) -> dict[str, Params]:
        """By the field of `PlayerParams`."""
        return {STARTS[name].field: params for name, params in self.params.items()}


def find_warm_start(config: TrainConfig) -> tuple[TrainConfig, WarmStart]:
    """Load the parts that a configuration takes from runs, each the first seed's; and the
    configuration with their shapes, and with the places where the run will keep them."""
    found: dict[str, Params] = {}
    for name, start in STARTS.items():
        given = getattr(config, name).from_run
        if given is None:
            continue
        if name not in config.parts:
            raise ConfigError(f"--{name}.from is given but --parts has no {name}")
        game = make_game(config.game)
        setting, found[name] = load_first(f"--{name}.from", given, name, game.shape)
        known: dict[str, Any] = start.settings(setting.config)
        kept = replace(getattr(config, name), from_run=f"{FOLDER}{name}.safetensors", **known)
        changed: dict[str, Any] = {name: kept}
        config = replace(config, **changed)
    parts = make_actor("learn", make_game(config.game), config).parts
    return config, WarmStart({name: STARTS[name].adapt(one, parts) for name, one in found.items()})


def write_warm_start(folder: Path, warm_start: WarmStart) -> None:
    """Put them into a run's folder, so that the run needs nothing outside."""
    for name, params in warm_start.params.items():
        path = folder / f"{FOLDER}{name}.safetensors"
        path.parent.mkdir(exist_ok=True)
        write_arrays(path, params)


def read_warm_start(folder: Path, config: TrainConfig) -> WarmStart:
    """What `write_initial` put into a run's folder."""
    parts = make_actor("learn", make_game(config.game), config).parts
    found = {}
    for name, start in STARTS.items():
        inside = getattr(config, name).from_run
        if inside is None:
            continue
        path = folder / inside
        arrays, _ = read_arrays(path, f"the {name} model")
        part = start.model(parts)
        assert part is not None
        shapes = jax.eval_shape(part.init, jax.random.key(0))
        found[name] = filled(shapes, arrays, str(path))
    return WarmStart(found)
