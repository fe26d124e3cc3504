"""Records of a step as one array: what a loop keeps of each step is written by one copy, and not by
one for every field, each of which a GPU takes as long to begin."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

SMALL = 64  # numbers of a game, at most: larger fields are written by themselves
WORDS = (np.dtype("float32"), np.dtype("int32"), np.dtype("uint32"))


class Field(NamedTuple):
    """Where a field is: from that word on, or by itself."""

    shape: tuple[int, ...]  # without games
    dtype: np.dtype[Any]
    begin: int | None


class Packed(eqx.Module):
    """A record of games [B]; a loop puts steps in front."""

    words: jax.Array  # [..., W, B] uint32, the bits of all small fields
    large: list[jax.Array]  # [..., B, ...] the other fields
    fields: tuple[Field, ...] = eqx.field(static=True)
    form: Any = eqx.field(static=True)


def pack(record: Any) -> Packed:
    """A record of games [B, ...] as one array, so far as its fields are small."""
    leaves, form = jax.tree.flatten(record)
    fields, words, large, width = list[Field](), list[jax.Array](), list[jax.Array](), 0
    for leaf in leaves:
        size = math.prod(leaf.shape[1:])
        small = size <= SMALL and (leaf.dtype == bool or leaf.dtype in WORDS)
        fields.append(Field(leaf.shape[1:], leaf.dtype, width if small else None))
        if small:
            bits = leaf.astype(jnp.uint32) if leaf.dtype == bool else _bits(leaf, jnp.uint32)
            words.append(bits.reshape(len(leaf), size).T)
            width += size
        else:
            large.append(leaf)
    return Packed(jnp.concatenate(words), large, tuple(fields), form)


def unpack(packed: Packed) -> Any:
    """The record again, with whatever is in front of it."""
    *front, _, games = packed.words.shape
    large = iter(packed.large)
    leaves = []
    for shape, dtype, begin in packed.fields:
        if begin is None:
            leaves.append(next(large))
            continue
        bits = jnp.moveaxis(packed.words[..., begin : begin + math.prod(shape), :], -1, -2)
        bits = bits.reshape(*front, games, *shape)
        leaves.append(_bits(bits, dtype) if dtype in WORDS else bits != 0)
    return jax.tree.unflatten(packed.form, leaves)


def _bits(leaf: jax.Array, dtype: Any) -> jax.Array:
    """The same bits read as another kind of number."""
    return jax.lax.bitcast_convert_type(leaf, dtype)
