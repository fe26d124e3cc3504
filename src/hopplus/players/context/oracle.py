"""Who the others are, shown to a player that should have to find out."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from hopplus.players.context.context import Context
from hopplus.types import View


@dataclass(frozen=True)
class OracleContext(Context):
    """Which of so many possible players each other is, and what it was after in its last act: of
    one that remembers the trial, its name alone does not say how it feels by now. The one parameter
    is whether it is told: who is not, is given zeros, and learns as one without."""

    others: int  # N - 1
    kinds: int  # possible players
    goals: int = 0  # that they may be after; 0 not to tell
    ignored_at_first: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.others * (self.kinds + self.goals)

    @property
    def carries(self) -> bool:
        return True

    def init(self, key: jax.Array) -> jax.Array:
        return jnp.array(True)  # [] bool

    def start(self) -> jax.Array:
        return jnp.zeros(self.size)

    def meet(self, memory: jax.Array, others: jax.Array) -> jax.Array:
        known = jax.nn.one_hot(others, self.kinds)
        return jnp.pad(known, ((0, 0), (0, self.goals))).reshape(-1)  # nobody has acted yet

    def overhear(self, memory: jax.Array, goals: jax.Array) -> jax.Array:
        if not self.goals:
            return memory
        return self.about_others(memory).at[:, self.kinds :].set(goals).reshape(-1)

    def infer(
        self, params: jax.Array, memory: jax.Array, view: View
    ) -> tuple[jax.Array, jax.Array]:
        return memory, jnp.where(params, memory, 0.0)

    def about_others(self, context: jax.Array) -> jax.Array:
        return context.reshape(self.others, self.kinds + self.goals)
