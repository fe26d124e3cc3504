"""What are the others after? Goals inferred from what a seat has seen so far.

A conditional variational autoencoder (Sohn et al. 2015): the history, read by a recurrent network,
is the condition; the goal must tell the present view, given the history before it, and keeps near
the goal of a view that another player will come to, which hindsight selects (Yu et al. 2024).
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.models.goal import GoalCode, GoalPart
from hopplus.models.history import Histories, History, given, seen_size
from hopplus.models.nets import LASTING, Gru, Layers, Linear, binary_loss, make_body
from hopplus.models.part import Metrics
from hopplus.types import View


class GoalInference(eqx.Module):
    """q(g | history, o)."""

    history: History
    code: Linear  # memory -> codes of all goals; or each memory -> the code of its goal
    decoder: Layers  # goals, memory before the view -> a logit for every cell of every plane


@dataclass(frozen=True)
class InferencePart:
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

    def init(self, key: jax.Array) -> GoalInference:
        key_history, key_code, key_decoder = jax.random.split(key, 3)
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
        """The memory after a view, and the goals [J, G]: the mean, or how likely each category
        is."""
        memory = params.history.advance(memory, given(params.history, view))
        return memory, self.codes(params, memory).mean

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
            "reconstruction": binary_loss(logits, planes.reshape(-1)).sum(),
            "kl": jnp.where(known, apart, 0.0).sum(),
        }


def selected(
    scores: jax.Array, valid: jax.Array, codes: GoalCode, *, each: bool
) -> tuple[GoalCode, jax.Array]:
    """The codes of the candidates with the highest scores: [J, G], and whether there is any [J].

    Candidates are [H, others, G], with scores [H, others], those that are `valid` [H, others]; one
    is selected for `each` other, or one of all.
    """
    scores = jnp.where(valid, scores, -jnp.inf)
    size = codes.mean.shape[-1]
    if each:
        best = scores.argmax(axis=0)  # [others]
        place = jnp.arange(scores.shape[1])
        chosen = GoalCode(codes.mean[best, place], codes.log[best, place])
        return chosen, valid.any(axis=0)
    flat = scores.reshape(-1).argmax()
    chosen = GoalCode(codes.mean.reshape(-1, size)[flat], codes.log.reshape(-1, size)[flat])
    return jax.tree.map(lambda leaf: leaf[None], chosen), valid.any()[None]
