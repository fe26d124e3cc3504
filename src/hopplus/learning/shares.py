"""The share of one device, where cores have the sets of parameters of a seed apart: what it works
on, and what the others are told of it. Where devices share nothing, all of this does nothing."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.devices import SETS

Tree = TypeVar("Tree")
Rows = TypeVar("Rows")
SMALL = 4096  # numbers of an array that is sent together with others


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
    count = _sharing()
    if count == 1:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    keys = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    plain = [
        jax.random.key_data(leaf) if key else leaf for leaf, key in zip(leaves, keys, strict=True)
    ]
    # A message costs its latency, however small it is: small arrays of a kind are one.
    together: dict[Any, list[int]] = {}
    for number, leaf in enumerate(plain):
        together.setdefault(leaf.dtype if leaf.size <= SMALL else number, []).append(number)
    whole = dict[int, jax.Array]()
    for numbers in together.values():
        if len(numbers) == 1:
            (number,) = numbers
            whole[number] = jax.lax.all_gather(plain[number], SETS, axis=axis, tiled=True)
            continue
        message = jnp.concatenate([plain[number].reshape(-1) for number in numbers])
        shares = jax.lax.all_gather(message, SETS)  # [count, ...]
        ends = np.cumsum([plain[number].size for number in numbers])
        for number, part in zip(numbers, jnp.split(shares, ends[:-1], axis=1), strict=True):
            each = part.reshape(count, *plain[number].shape)
            whole[number] = jnp.concatenate(list(each), axis=axis)
    gathered = [
        jax.random.wrap_key_data(whole[number]) if key else whole[number]
        for number, key in enumerate(keys)
    ]
    shared: Tree = jax.tree.unflatten(structure, gathered)
    return shared


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
