"""A memory that the policy learns to keep of what its seat has seen (Cho et al. 2014)."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from hopplus.config import MemoryConfig
from hopplus.models.history import given, recalled, seen_size
from hopplus.models.nets import LASTING, Gru
from hopplus.players.context.context import Context
from hopplus.types import View, ViewShape


@dataclass(frozen=True)
class RecurrentContext(Context):
    """Within an episode, or from episode to episode of a trial."""

    shape: ViewShape
    seats: int
    actions: int
    config: MemoryConfig
    learned_by_policy: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.config.size

    @property
    def carries(self) -> bool:
        return self.config.kind == "trial"

    def init(self, key: jax.Array) -> Gru:
        seen = seen_size(self.shape, self.seats, self.actions)
        return Gru(seen, self.size, jax.random.fold_in(key, 5), LASTING)

    def start(self) -> jax.Array:
        return jnp.zeros(self.size)

    def infer(self, params: Gru, memory: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        memory = params.advance(memory, given(params, view))
        return memory, memory

    def about_others(self, context: jax.Array) -> jax.Array:
        """All that is remembered: nobody has said what of it is about whom."""
        return jnp.broadcast_to(context, (self.seats - 1, self.size))

    def replay(
        self, params: Gru, before: jax.Array, views: View, begins: jax.Array, episode: jax.Array
    ) -> jax.Array:
        # Gradients go back to where the memory began, through the episodes of a trial if it lasts.
        anew = begins & (episode == 0) if self.carries else begins
        return recalled(params, before[0], views, anew, before)[1]
