"""The share of one device, where cores have the sets of parameters of a seed apart: what it works
on, and what the others are told of it. Where devices share nothing, all of this does nothing."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from hopplus.devices import SETS

Tree = TypeVar("Tree")
Rows = TypeVar("Rows")


def own_share(tree: Tree, axis: int = 0) -> Tree:
    """Of sets of parameters, or of rows that need nothing of each other, those that the device is
    to work on: all of them, unless devices share the sets of a seed."""
    count = _sharing()
    if count == 1:
        return tree
    here = jax.lax.axis_index(SETS)

    def own(leaf: jax.Array) -> jax.Array:
        rows, rest = divmod(leaf.shape[axis], count)
        assert not rest, "rows have to divide among those who share them"
        return jax.lax.dynamic_slice_in_dim(leaf, here * rows, rows, axis)

    share: Tree = jax.tree.map(own, tree)
    return share


def all_shares(tree: Tree, axis: int = 0) -> Tree:
    """What the shares of all devices have come to, in order, for each of them."""
    if _sharing() == 1:
        return tree

    def whole(leaf: jax.Array) -> jax.Array:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(whole(jax.random.key_data(leaf)))
        return jax.lax.all_gather(leaf, SETS, axis=axis, tiled=True)

    gathered: Tree = jax.tree.map(whole, tree)
    return gathered


def by_shares(
    play: Callable[[Tree], tuple[Tree, Rows]], games: Tree, count: int
) -> tuple[Tree, Rows]:
    """What becomes of `count` games [B, ...], and what was played [T, B, ...]: each device plays
    its share of them, if they divide, and is told of the others."""
    if count % _sharing():
        return play(games)
    after, played = play(own_share(games))
    return all_shares(after), all_shares(played, axis=1)


def _sharing() -> int:
    """How many devices share the sets of a seed in the program that is traced."""
    inside: int = jax.sharding.get_abstract_mesh().shape.get(SETS, 1)
    return inside
