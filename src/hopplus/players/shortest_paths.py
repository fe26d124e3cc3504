"""The first steps of shortest ways to things on a board, all found at once."""

import jax
import jax.numpy as jnp


def first_moves(here: jax.Array, things: jax.Array, walls: jax.Array) -> jax.Array:
    """[4] bool, the moves that start a shortest way from one cell to the nearest thing.

    All are [H, W] bool. A wave spreads from the things until it reaches the cell; the neighbours
    it had reached one step earlier are a step nearer. Rows are packed into the bits of one number
    each, so that a step of the wave is a few operations on [H] numbers.
    """
    start, end, free = (_packed(cells) for cells in (things, here, ~walls))

    def searching(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        wave, before = carry
        return ~(wave & end).any() & (wave != before).any()

    def spread(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        wave, _ = carry
        up, down, left, right = _neighbours(wave)
        return (wave | up | down | left | right) & free, wave

    wave, before = jax.lax.while_loop(searching, spread, (start, jnp.zeros_like(start)))
    reached = (wave & end).any()
    return jnp.stack([(cells & end).any() for cells in _neighbours(before)]) & reached


def _packed(cells: jax.Array) -> jax.Array:
    """[H] uint32, a bit for each of at most 32 columns of [H, W] bool."""
    columns = jnp.arange(cells.shape[1], dtype=jnp.uint32)
    return (cells.astype(jnp.uint32) << columns).sum(axis=1, dtype=jnp.uint32)


def _neighbours(rows: jax.Array) -> tuple[jax.Array, ...]:
    """For each move up, down, left, right: the cells that it leads from into the given ones."""
    above = jnp.pad(rows[:-1], (1, 0))
    below = jnp.pad(rows[1:], (0, 1))
    return above, below, rows << 1, rows >> 1
