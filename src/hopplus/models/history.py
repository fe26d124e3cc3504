"""What a seat has seen so far, read by a recurrent network."""

from functools import partial
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.models.gru_kernel import GruKernel, kernel_for
from hopplus.models.nets import Body, Gru, last_actions
from hopplus.models.opponent import others_views
from hopplus.types import View, ViewShape


class Histories(eqx.Module):
    """Of each other: the board and what was done as seen from its place, read by one network for
    all of them before it is remembered (as the character net of Rabinowitz et al. 2018)."""

    body: Body
    gru: Gru

    def given(self, view: View) -> jax.Array:
        """[N - 1, ...] what a view brings to the memories."""
        nothing = jnp.zeros((len(view.last_actions), *view.legal.shape), bool)  # not looked at

        def one(seen: View) -> jax.Array:
            return self.gru.given(self.body(seen, last_actions(seen)))

        return jax.vmap(one)(others_views(view, nothing))

    def advance(self, memory: jax.Array, given: jax.Array) -> jax.Array:
        """[N - 1, hidden] the memories after it."""
        return jax.vmap(self.gru.advance)(memory, given)


History: TypeAlias = Gru | Histories


def seen_size(shape: ViewShape, seats: int, actions: int) -> int:
    """Numbers of what is read from a view."""
    height, width, planes = shape
    return height * width * planes + 1 + seats * actions


def given(history: History, view: View) -> jax.Array:
    """What a view brings to the memory; it does not wait for the memory before."""
    if isinstance(history, Histories):
        return history.given(view)
    planes = view.planes.astype(jnp.float32).reshape(-1)
    return history.given(jnp.concatenate([planes, view.time[None], last_actions(view)]))


def recalled(
    history: History,
    memory: jax.Array,
    views: View,
    fresh: jax.Array,
    known: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """The memory before and after each of [T] views in order, [T, ...] each; where `fresh` [T], it
    begins anew, with nothing or with what is `known` [T, ...] to have been remembered."""
    brought = jax.vmap(given, in_axes=(None, 0))(history, views)
    known = jnp.zeros((len(fresh), *memory.shape)) if known is None else known
    if kernel := _kernel(history, brought):
        after = _through(kernel, history, memory, brought, fresh, known)
        anew = fresh.reshape(-1, *[1] * memory.ndim)
        return jnp.where(anew, known, jnp.concatenate([memory[None], after[:-1]])), after

    def step(
        memory: jax.Array, now: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        brought, fresh, known = now
        before = jnp.where(fresh, known, memory)
        after = history.advance(before, brought)
        return after, (before, after)

    _, (before, after) = jax.lax.scan(step, memory, (brought, fresh, known))
    return before, after


def _kernel(history: History, brought: jax.Array) -> GruKernel | None:
    """Of this history, if it goes by the equations that a kernel has, and not by its own."""
    gru = history.gru if isinstance(history, Histories) else history
    fits = type(gru) is Gru and brought.dtype == gru.kept.weight.dtype == jnp.float32
    return kernel_for(gru.kept.weight.shape[0]) if fits else None


def _through(
    kernel: GruKernel, history: History, memory: jax.Array, *steps: jax.Array
) -> jax.Array:
    """[T, ...] the memory after each step, in one kernel."""
    if isinstance(history, Histories):
        over_others = jax.vmap(
            partial(_through, kernel, history.gru), in_axes=(0, 1, None, 1), out_axes=1
        )
        after: jax.Array = over_others(memory, *steps)
        return after
    return kernel(history.kept.weight, history.kept.bias, memory, *steps)
