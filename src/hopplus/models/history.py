"""What a seat has seen so far, read by a recurrent network."""

import jax
import jax.numpy as jnp

from hopplus.models.nets import Gru
from hopplus.models.opponent import last_actions
from hopplus.types import View


def seen_size(shape: tuple[int, int, int], seats: int, actions: int) -> int:
    """Numbers of what is read from a view."""
    height, width, planes = shape
    return height * width * planes + 1 + seats * actions


def given(history: Gru, view: View) -> jax.Array:
    """What a view brings to the memory; it does not wait for the memory before."""
    planes = view.planes.astype(jnp.float32).reshape(-1)
    return history.given(jnp.concatenate([planes, view.time[None], last_actions(view)]))


def recalled(
    history: Gru, memory: jax.Array, views: View, fresh: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The memory before and after each of [T] views in order, [T, hidden] each; where `fresh` [T],
    it begins anew."""
    brought = jax.vmap(given, in_axes=(None, 0))(history, views)

    def step(
        memory: jax.Array, now: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        brought, fresh = now
        before = jnp.where(fresh, 0.0, memory)
        after = history.advance(before, brought)
        return after, (before, after)

    _, (before, after) = jax.lax.scan(step, memory, (brought, fresh))
    return before, after
