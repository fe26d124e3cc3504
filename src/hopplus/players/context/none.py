"""No idea of the others."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.players.context.context import Context
from hopplus.types import Memory, Params, View


@dataclass(frozen=True)
class NoContext(Context):
    """The view is all that the policy goes by."""

    others: int = 0  # N - 1

    @property
    def size(self) -> int:
        return 0

    def infer(self, params: Params, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        return memory, jnp.zeros(0)

    def about_others(self, context: jax.Array) -> jax.Array:
        return jnp.zeros((self.others, 0))
