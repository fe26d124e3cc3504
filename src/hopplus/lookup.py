"""Reading from arrays at places that are computed."""

from typing import Any

import jax


def at(table: jax.Array, where: Any) -> jax.Array:
    """Entries of an array, all of which are there. To allow for negative and missing ones, as
    `table[where]` does, costs more than to read: in small steps in time, and in a large program in
    tracing and compilation, as everything is read in many places."""
    return table.at[where].get(mode="promise_in_bounds", wrap_negative_indices=False)
