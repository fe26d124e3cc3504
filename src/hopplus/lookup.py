"""Reading from arrays at places that are computed."""

from typing import Any

import jax
import numpy as np


def at(table: jax.Array, where: Any) -> jax.Array:
    """Entries of an array, all of which are there. To allow for negative and missing ones, as
    `table[where]` does, costs more than to read: in small steps in time, and in a large program in
    tracing and compilation, as everything is read in many places."""
    return table.at[where].get(mode="promise_in_bounds", wrap_negative_indices=False)


def along(tree: Any, places: np.ndarray, axis: int = 0) -> Any:
    """Of every array the entries at places along an axis that are known beforehand. Where they are
    in a row, and above all where they are all there are, nothing has to be read one by one."""
    first, last = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
    in_a_row = first >= 0 and np.array_equal(places, np.arange(first, last))

    def part(leaf: jax.Array) -> jax.Array:
        if in_a_row:
            return jax.lax.slice_in_dim(leaf, first, last, axis=axis)
        return leaf[(slice(None),) * axis + (places,)]

    return jax.tree.map(part, tree)
