"""World models by their configuration, as something to be fitted."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.config import WorldConfig
from hopplus.models.cells_world import CellsWorld
from hopplus.models.part import Metrics
from hopplus.models.structured_world import StructuredWorld
from hopplus.models.world import Board, World
from hopplus.types import Params, Sample


@dataclass(frozen=True)
class WorldPart:
    """The losses of a world model, over steps at which the seat is present."""

    board: Board
    config: WorldConfig

    def init(self, key: jax.Array) -> Params:
        match self.config.head:
            case "structured":
                return StructuredWorld(self.board, self.config.hidden, key)
            case "cells":
                return CellsWorld(self.board, self.config.hidden, key)

    def losses(self, params: World, sample: Sample, key: jax.Array) -> Metrics:
        weights = self.config.channel_weights or (1.0,) * self.board.shape[2]
        return params.losses(sample, jnp.asarray(weights))

    def weight(self, sample: Sample) -> jax.Array:
        return sample.present[0].astype(jnp.float32)
