"""Dense networks that read the same view, with one product for all their first layers: a view is
written down and read once, however many there are."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hopplus.kernels import on_gpu
from hopplus.models.nets import ActorCritic, features_above, first_layer, last_actions
from hopplus.types import View

ALIGNED = 8  # numbers of a row of inputs on a GPU, which reads rows that begin anywhere slowly


class OverView(NamedTuple):
    """A network but for the product of its first layer."""

    first: jax.Array  # [I, K] weights by which `all_seen` is multiplied
    above: Callable[..., Any]  # what it says, from that product [K] and what else it is given


def inputs_size(shape: tuple[int, ...], seats: int, actions: int) -> int:
    """I, of what `all_seen` gives."""
    size = math.prod(shape) + 1 + seats * actions
    return size + _behind(size)


def all_seen(view: View) -> jax.Array:
    """[I] planes, time, what everyone did last, and zeros behind."""
    planes = view.planes.astype(jnp.float32).reshape(-1)
    seen = jnp.concatenate([planes, view.time[None], last_actions(view)])
    return jnp.pad(seen, (0, _behind(len(seen))))


def _behind(size: int) -> int:
    """Zeros behind so many numbers."""
    return -size % ALIGNED if on_gpu() else 0


def rows_to(size: int, weight: jax.Array) -> jax.Array:
    """[size, K] with zeros below."""
    return jnp.pad(weight, ((0, size - len(weight)), (0, 0)))


def policy_over_view(
    policy: ActorCritic, shape: tuple[int, ...], seats: int, actions: int
) -> OverView:
    """A policy, of dense layers, that is given what is legal [A] and the context."""
    weight = first_layer(policy.body).weight
    own = math.prod(shape) + 1 + seats * actions * policy.recalls

    def say(
        product: jax.Array, legal: jax.Array, context: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        product = product + context @ weight[own:]
        return policy.from_features(features_above(policy.body, product), legal)

    return OverView(rows_to(inputs_size(shape, seats, actions), weight[:own]), say)


def together(*networks: OverView) -> Callable[..., list[Any]]:
    """All of them over one view [I], each with what else it is given as a tuple."""
    weights = jnp.concatenate([network.first for network in networks], axis=1)
    sizes = [network.first.shape[1] for network in networks]
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]

    def say(view: View, *given: tuple[Any, ...]) -> list[Any]:
        x = all_seen(view) @ weights
        parts = [x[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        return [
            network.above(part, *more)
            for network, part, more in zip(networks, parts, given, strict=True)
        ]

    return say
