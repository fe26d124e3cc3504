"""A belief over what each other is after, kept by the rules of probability."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.models.belief import BeliefMemory, BeliefPart
from hopplus.models.opponent import OpponentModel
from hopplus.players.context.context import Context
from hopplus.players.parameters import PlayerParams
from hopplus.types import Outcome, Params, View


@dataclass(frozen=True)
class BeliefContext(Context):
    """Learns nothing itself: it reads the models of the others."""

    part: BeliefPart

    @property
    def size(self) -> int:
        return self.part.others * self.part.kinds

    @property
    def carries(self) -> bool:
        return self.part.config.across

    @property
    def gives_chances(self) -> bool:
        return True

    def params_of(self, learned: PlayerParams) -> Params:
        return learned.opponents

    def start(self) -> BeliefMemory:
        return self.part.start()

    def carry(self, memory: BeliefMemory, view: View) -> BeliefMemory:
        return self.part.again(memory, view)

    def infer(
        self, params: OpponentModel, memory: BeliefMemory, view: View
    ) -> tuple[BeliefMemory, jax.Array]:
        memory, belief = self.part.infer(params, memory, view)
        return memory, belief.reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        return context.reshape(self.part.others, -1)

    def known_later(self, context: jax.Array, outcome: Outcome, seats: np.ndarray) -> jax.Array:
        """What each other turned out to take; zeros where that was not seen, which teaches
        nothing."""
        return goals_taken(outcome, seats, self.part.config.none)


def goals_taken(outcome: Outcome, seats: np.ndarray, none: bool = False) -> jax.Array:
    """[T, B, n, (N - 1) * K] what each other of the seats is after, as it turned out: one-hot the
    kind that it takes next in the episode, in the seats' order; zeros if that was not seen. With
    `none`, a further kind is that it was seen to take nothing."""

    def step(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        took, done = now
        later = jnp.where(done[:, None, None], nothing, later)
        after = jnp.where(took.any(axis=-1, keepdims=True), took, later)
        return after, after

    took = (outcome.took > 0).astype(jnp.float32)  # [T, B, N, K]
    took = jnp.pad(took, ((0, 0), (0, 0), (0, 0), (0, none)))
    nothing = jax.nn.one_hot(took.shape[-1] - 1, took.shape[-1]) * none
    found = jax.lax.scan(step, jnp.zeros_like(took[0]), (took, outcome.done), reverse=True)[1]
    count = found.shape[2]
    others = (seats[:, None] + np.arange(1, count)) % count  # [n, N - 1]
    return found[:, :, others].reshape(*found.shape[:2], len(seats), -1)
