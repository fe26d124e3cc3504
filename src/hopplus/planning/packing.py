"""Nodes as rows of 32-bit words, so that a kernel copies any of them with a few reads, whatever
they hold. A row of many small arrays would be as many places of memory."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.planning.tree import Node

BITS = 32
LINE = 8  # words that are read from memory together
WHOLE = ("float32", "int32", "uint32")  # a word each, bit by bit
SMALL = ("int8", "uint8", "int16", "uint16")  # a word each, too, by value


@dataclass(frozen=True)
class Packing:
    """How nodes of one structure are written as rows, and read again."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]

    @property
    def words(self) -> int:
        """Of a row."""
        flags = sum(self._sizes("bool"))
        return lines(-(-flags // BITS) + sum(self._sizes(*WHOLE, *SMALL)))

    def pack(self, node: Node) -> jax.Array:
        """[words] int32, of a node whose arrays are made like those of the first, as writing into
        arrays does."""
        flags, others = [], []
        for leaf, shape, kind in zip(jax.tree.leaves(node), self.shapes, self.kinds, strict=True):
            flat = jnp.broadcast_to(leaf, shape).astype(kind).reshape(-1)
            if kind == "bool":
                flags.append(flat)
            elif kind in WHOLE:
                others.append(jax.lax.bitcast_convert_type(flat, jnp.int32))
            else:
                others.append(flat.astype(jnp.int32))
        if flags:
            bits = jnp.concatenate(flags).astype(jnp.uint32)
            bits = jnp.pad(bits, (0, -len(bits) % BITS)).reshape(-1, BITS)
            words = (bits << jnp.arange(BITS, dtype=jnp.uint32)).sum(axis=1, dtype=jnp.uint32)
            others.append(jax.lax.bitcast_convert_type(words, jnp.int32))
        row = jnp.concatenate([*others, jnp.zeros(0, jnp.int32)])
        return jnp.pad(row, (0, self.words - len(row)))

    def unpack(self, row: jax.Array) -> Node:
        """The node that a row [words, or more behind them] holds."""
        flags = row[sum(self._sizes(*WHOLE, *SMALL)) :]
        flags = jax.lax.bitcast_convert_type(flags, jnp.uint32)
        bits = ((flags[:, None] >> jnp.arange(BITS, dtype=jnp.uint32)) & 1).reshape(-1) > 0
        leaves, begin, begin_bits = [], 0, 0
        for shape, kind in zip(self.shapes, self.kinds, strict=True):
            size = math.prod(shape)
            if kind == "bool":
                flat = bits[begin_bits : begin_bits + size]
                begin_bits += size
            else:
                flat = row[begin : begin + size]
                begin += size
                whole = kind in WHOLE
                flat = jax.lax.bitcast_convert_type(flat, kind) if whole else flat.astype(kind)
            leaves.append(flat.reshape(shape))
        return jax.tree.unflatten(self.structure, leaves)

    def _sizes(self, *kinds: str) -> list[int]:
        sized = zip(self.shapes, self.kinds, strict=True)
        return [math.prod(shape) for shape, kind in sized if kind in kinds]


def lines(size: int) -> int:
    """Whole lines with room for so many words, so that what follows begins with a line."""
    return max(-(-size // LINE), 1) * LINE


def packing_of(node: Node) -> Packing | None:
    """For nodes like this one; None where it holds what has no place in words, as keys."""
    leaves, structure = jax.tree.flatten(node)
    kinds = tuple(str(leaf.dtype) for leaf in leaves)
    if not all(kind in ("bool", *WHOLE, *SMALL) for kind in kinds):
        return None
    return Packing(structure, tuple(leaf.shape for leaf in leaves), kinds)
