"""Nodes written as rows of words, and read again."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.planning.packing import LINE, packing_of

NODES: dict[str, Any] = {
    "numbers": {"a": jnp.array([1.5, -0.0, jnp.inf, jnp.nan]), "b": jnp.int32(-7)},
    "flags": (jnp.arange(33) % 3 == 0, jnp.bool_(True)),
    "small": (jnp.array([-128, 127], jnp.int8), jnp.array([0, 255], jnp.uint8)),
    "sixteen": (jnp.array([-32768], jnp.int16), jnp.array([65535], jnp.uint16)),
    "whole": jnp.array([0, 2**32 - 1], jnp.uint32),
    "mixed": [jnp.eye(3, dtype=bool), jnp.ones((2, 0)), jnp.arange(9.0), jnp.zeros((0, 4), bool)],
    "empty": (jnp.zeros(0), ()),
    "nothing": (),
}


@pytest.mark.parametrize("name", NODES)
def test_what_is_read_is_what_was_written(name: str) -> None:
    node = NODES[name]
    packing = packing_of(node)
    assert packing is not None
    assert packing.words % LINE == 0
    row = jax.jit(packing.pack)(node)
    assert (row.shape, row.dtype) == ((packing.words,), jnp.int32)
    behind = jnp.full(5, -1, jnp.int32)  # of what follows in memory
    for longer in (row, jnp.concatenate([row, behind])):
        found = packing.unpack(longer)
        found_structure: Any = jax.tree.structure(found)
        assert found_structure == jax.tree.structure(node)
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(node), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("float32", "int32"),
        ("float32", "bool"),
        ("int32", "int8"),
        ("int32", "bool"),
        ("uint32", "uint8"),
    ],
)
def test_others_are_made_like_the_first(kind: str, given: str) -> None:
    """As writing them into arrays would: a game's step may come to other kinds of numbers than what
    is seen, or to one number for all."""
    first = (jnp.zeros(3, kind), jnp.zeros(2, bool), jnp.float32(0))
    later = (jnp.array([0, 2, 4]).astype(given), jnp.array([True, False]), jnp.float32(7))
    packing = packing_of(first)
    assert packing is not None
    for node in (later, (later[0][2], *later[1:])):
        expected = [
            jnp.zeros((1, *one.shape), one.dtype).at[0].set(other)[0]
            for one, other in zip(first, node, strict=True)
        ]
        for one, other in zip(packing.unpack(packing.pack(node)), expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_what_is_no_word_has_no_packing() -> None:
    assert packing_of((jnp.zeros(2), jax.random.key(0))) is None
    assert packing_of(jnp.zeros(2, jnp.bfloat16)) is None
