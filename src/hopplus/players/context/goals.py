"""Goals of the others, inferred from a seat's history, and the losses by which that is learned."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.models.goal import GoalCode, GoalInference, GoalPart
from hopplus.models.history import Histories, History, given, seen_size
from hopplus.models.nets import LASTING, Gru, Layers, Linear, make_body
from hopplus.models.part import Metrics
from hopplus.players.context.context import Context
from hopplus.types import View


@dataclass(frozen=True)
class GoalsContext(Context):
    """Infers goals, and the losses by which it learns to."""

    goal: GoalPart
    seats: int
    goals: int  # how many: one about all others, or one about each
    hidden: int
    across: bool = False  # its memory goes on from episode to episode of a trial
    of_each: bool = False  # it reads a history of each other, not one of all

    @property
    def size(self) -> int:
        """Numbers of all goals together."""
        return self.goals * self.goal.config.size

    @property
    def carries(self) -> bool:
        return self.across

    def init(self, key: jax.Array) -> GoalInference:
        key_history, key_code, key_decoder = jax.random.split(jax.random.fold_in(key, 2), 3)
        height, width, planes = self.goal.shape
        cells = height * width * planes
        sizes = (self.size + self.start().size, 2 * self.hidden, cells)
        numbers = self.goal.numbers * (1 if self.of_each else self.goals)
        return GoalInference(
            history=self._history(key_history),
            code=Linear(self.hidden, numbers, 0.1, key_code),
            decoder=Layers(sizes, key_decoder),
        )

    def _history(self, key: jax.Array) -> History:
        if not self.of_each:
            return Gru(seen_size(self.goal.shape, self.seats, self.goal.actions), self.hidden, key)
        key_body, key_gru = jax.random.split(key)
        net = self.goal.config.net
        body = make_body(self.goal.shape, net, key_body, self.seats * self.goal.actions)
        return Histories(body, Gru(net.hidden, self.hidden, key_gru, LASTING))

    def start(self) -> jax.Array:
        """[hidden] the memory before the first view, or [J, hidden] that of each."""
        return jnp.zeros((self.goals, self.hidden) if self.of_each else self.hidden)

    def codes(self, params: GoalInference, memory: jax.Array) -> GoalCode:
        """[J, G] what is thought of the goals with this memory."""
        return self.goal.code_of(params.code(memory).reshape(self.goals, -1))

    def infer(
        self, params: GoalInference, memory: jax.Array, view: View
    ) -> tuple[jax.Array, jax.Array]:
        """The memory after a view, and the goals [J * G]: the mean, or how likely each category
        is."""
        memory = params.history.advance(memory, given(params.history, view))
        return memory, self.codes(params, memory).mean.reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        goals = context.reshape(self.goals, -1)
        return jnp.broadcast_to(goals, (self.seats - 1, goals.shape[1]))

    def losses(
        self,
        params: GoalInference,
        before: jax.Array,
        after: jax.Array,
        planes: jax.Array,
        target: GoalCode,
        known: jax.Array,
        key: jax.Array,
    ) -> Metrics:
        """Of one step, with the memory before and after its view: how badly the goals tell its
        planes, and how far they are from the targets [J, G], where these are `known` [J]."""
        codes = self.codes(params, after)
        drawn = self.goal.drawn(codes, key).reshape(-1)
        logits = params.decoder(jnp.concatenate([drawn, before.reshape(-1)]))
        apart = self.goal.apart(codes, target).sum(axis=-1)
        return {
            "reconstruction": self.goal.reconstruction(logits, planes.reshape(-1)),
            "kl": jnp.where(known, apart, 0.0).sum(),
        }
