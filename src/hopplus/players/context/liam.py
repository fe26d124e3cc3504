"""LIAM (Papoudakis, Christianos and Albrecht 2021): an embedding of what a seat has seen and done,
from which its decoder must tell what the others see and do. The policy takes it as it is."""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import LiamConfig
from hopplus.models.history import given, seen_size
from hopplus.models.nets import LASTING, Gru, Layers, Linear, planes_loss
from hopplus.models.part import Metrics
from hopplus.players.context.context import Context
from hopplus.types import View, ViewShape


class Liam(eqx.Module):
    """The encoder, and the decoder that is needed to learn it and never to play."""

    history: Gru
    embedding: Linear
    decoder: Layers  # embedding -> planes and actions of each other, as logits


@dataclass(frozen=True)
class LiamContext(Context):
    """Within an episode, or from episode to episode of a trial."""

    shape: ViewShape
    seats: int
    actions: int
    config: LiamConfig
    bits: bool = True  # views are 0 and 1, and not any numbers

    @property
    def size(self) -> int:
        return self.config.size

    @property
    def carries(self) -> bool:
        return self.config.across

    def init(self, key: jax.Array) -> Liam:
        keys = jax.random.split(jax.random.fold_in(key, 8), 3)
        hidden, cells = self.config.hidden, math.prod(self.shape)
        told = (self.seats - 1) * (cells + self.actions)
        return Liam(
            history=Gru(seen_size(self.shape, self.seats, self.actions), hidden, keys[0], LASTING),
            embedding=Linear(hidden, self.size, 1.0, keys[1]),
            decoder=Layers((self.size, 2 * hidden, told), keys[2], last_gain=0.1),
        )

    def start(self) -> jax.Array:
        return jnp.zeros(self.config.hidden)

    def infer(self, params: Liam, memory: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        memory = params.history.advance(memory, given(params.history, view))
        return memory, params.embedding(memory)

    def about_others(self, context: jax.Array) -> jax.Array:
        """All of it: nobody has said what of it is about whom."""
        return jnp.broadcast_to(context, (self.seats - 1, self.size))

    def decode(self, params: Liam, context: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Logits of the planes [N - 1, H * W * C] that the others see, and [N - 1, A] of what they
        do."""
        told = params.decoder(context).reshape(self.seats - 1, -1)
        return told[:, : -self.actions], told[:, -self.actions :]

    def losses(self, params: Liam, context: jax.Array, seen: View, joint: jax.Array) -> Metrics:
        """[N - 1] of each other: how badly its view `seen` [N - 1, ...] and its action are told."""
        planes, acts = self.decode(params, context)
        truth = seen.planes.reshape(planes.shape)
        log_probs = jax.nn.log_softmax(jnp.where(seen.legal, acts, -jnp.inf))
        return {
            "observation": planes_loss(planes, truth, self.bits).sum(axis=1),
            "action": -jnp.take_along_axis(log_probs, joint[:, None], axis=1)[:, 0],
        }
