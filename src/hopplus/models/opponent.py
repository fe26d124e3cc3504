"""What will another player do? Its action, from what it sees and what is known of its goal."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import NetConfig
from hopplus.models.nets import Body, Linear, make_body
from hopplus.models.part import Metrics
from hopplus.types import Params, Sample, View


class OpponentModel(eqx.Module):
    """pi_j(a | o_j, g_j) with o_j the view of the player in question."""

    body: Body
    head: Linear

    def __init__(
        self,
        shape: tuple[int, int, int],
        seats: int,
        actions: int,
        goal: int,
        net: NetConfig,
        key: jax.Array,
    ) -> None:
        key_body, key_head = jax.random.split(key)
        self.body = make_body(shape, net, key_body, extra=seats * actions + goal)
        self.head = Linear(net.hidden, actions, 0.01, key_head)

    def __call__(self, view: View, goal: jax.Array) -> jax.Array:
        """[A] log-probabilities, -inf where illegal."""
        # Nothing is shown as no action at all: one_hot of -1 is zero.
        last = jax.nn.one_hot(view.last_actions, self.head.bias.shape[-1])
        features = self.body(view, jnp.concatenate([last.reshape(-1), goal]))
        return jax.nn.log_softmax(jnp.where(view.legal, self.head(features), -jnp.inf))


@dataclass(frozen=True)
class OpponentPart:
    """Cross-entropy of the actions of players that are present and have a choice."""

    shape: tuple[int, int, int]
    seats: int
    actions: int
    goal: int  # numbers of the goal it is given
    net: NetConfig
    class_weights: tuple[float, ...]  # [A]

    def init(self, key: jax.Array) -> Params:
        return OpponentModel(self.shape, self.seats, self.actions, self.goal, self.net, key)

    def losses(self, params: OpponentModel, sample: Sample, key: jax.Array) -> Metrics:
        log_prob = params(sample.view, sample.goal)[sample.joint[0]]
        return {"cross_entropy": -log_prob}

    def weight(self, sample: Sample) -> jax.Array:
        counts = sample.present[0] & (sample.view.legal.sum() > 1)
        return counts * jnp.asarray(self.class_weights)[sample.joint[0]]
