"""Buffers of fixed size: the newest rows take the place of the oldest."""

from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def capacity(wanted: int, rows: int) -> int:
    """Room for at least `wanted` rows, in whole updates of `rows`."""
    return -(-wanted // rows) * rows


def empty_buffer(like: Tree, size: int) -> Tree:
    """[size, ...] of nothing, shaped as rows [M, ...]; seats in it are not present."""
    buffer: Tree = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), like)
    return buffer


def pushed(buffer: Tree, rows: Tree, updates: jax.Array) -> Tree:
    """The buffer after rows [M, ...], the same number in every one of the `updates` before."""

    def put(kept: jax.Array, new: jax.Array) -> jax.Array:
        rows, room = new.shape[0], kept.shape[0]  # room for whole updates; no product overflows
        first = (updates % (room // rows)) * rows
        return jax.lax.dynamic_update_slice_in_dim(kept, new, first, axis=0)

    after: Tree = jax.tree.map(put, buffer, rows)
    return after


def drawn_rows(key: jax.Array, present: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """[count] rows and places, drawn alike from the pairs that are `present` [R, k].

    Any pair where none is: whoever learns from it must look at its presence again.
    """
    sums = jnp.cumsum(present.reshape(-1).astype(jnp.int32))
    threshold = jax.random.uniform(key, (count,)) * sums[-1]
    flat = jnp.searchsorted(sums, threshold, side="right")
    flat = jnp.minimum(flat, present.size - 1)
    return flat // present.shape[1], flat % present.shape[1]


def rows_at(buffer: Any, rows: jax.Array) -> Any:
    """The buffer's rows of these numbers."""
    return jax.tree.map(lambda leaf: leaf[rows], buffer)
