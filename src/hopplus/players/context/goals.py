"""Goals of the others, inferred from a seat's history; how they are learned is said there."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.models.inference import GoalInference, InferencePart
from hopplus.players.context.context import Context
from hopplus.types import View


@dataclass(frozen=True)
class GoalsContext(Context):
    """One goal about all others, or one about each."""

    part: InferencePart

    @property
    def size(self) -> int:
        return self.part.size

    @property
    def carries(self) -> bool:
        return self.part.across

    def init(self, key: jax.Array) -> GoalInference:
        return self.part.init(jax.random.fold_in(key, 2))

    def start(self) -> jax.Array:
        return self.part.start()

    def infer(
        self, params: GoalInference, memory: jax.Array, view: View
    ) -> tuple[jax.Array, jax.Array]:
        memory, goals = self.part.infer(params, memory, view)
        return memory, goals.reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        goals = context.reshape(self.part.goals, -1)
        return jnp.broadcast_to(goals, (self.part.seats - 1, goals.shape[1]))
