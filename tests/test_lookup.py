"""Entries at places that are known beforehand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.lookup import along


@pytest.mark.parametrize(
    "places",
    [[0, 1, 2, 3], [1, 2], [3], [0, 2], [3, 1], [2, 2, 0], [-1], [-2, -1], [-1, 0], []],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_entries_are_those_at_the_places(places: list[int], axis: int) -> None:
    """All, some in a row, one, some apart, in another order, one twice, from the end, and none."""
    rng = np.random.default_rng(0)
    tree = {"a": jnp.asarray(rng.normal(size=(4, 4, 3))), "b": (jnp.arange(16).reshape(4, 4),)}

    def read(tree: Any) -> Any:
        return along(tree, np.array(places, int), axis)

    for found in (read(tree), jax.jit(read)(tree)):
        for one, leaf in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
            expected = np.take(np.asarray(leaf), np.array(places, int), axis=axis)
            np.testing.assert_array_equal(one, expected)


def test_what_is_in_a_row_is_not_gathered() -> None:
    tree = jnp.zeros((4, 5))
    text = {
        name: str(jax.make_jaxpr(lambda leaf, at=at: along(leaf, np.array(at)))(tree))
        for name, at in {"row": [1, 2], "apart": [0, 2]}.items()
    }
    assert "gather" not in text["row"]
    assert "gather" in text["apart"]
