"""Shortest ways on a board, all found at once by waves that spread around obstacles.

Rows are packed into the bits of one number each, so that a step of a wave is a few operations on
[H] numbers.
"""

import jax
import jax.numpy as jnp

from hopplus.config import ConfigError

MOST_COLUMNS = 32  # bits of a number


def first_moves(here: jax.Array, things: jax.Array, walls: jax.Array) -> jax.Array:
    """[4] bool, the moves that start a shortest way from one cell to the nearest thing.

    All are [H, W] bool. A wave spreads from the things until it reaches the cell; the neighbours
    it had reached one step earlier are a step nearer.
    """
    start, end, free = (_packed(cells) for cells in (things, here, ~walls))

    def searching(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        wave, before = carry
        return ~(wave & end).any() & (wave != before).any()

    def spread(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        wave, _ = carry
        return (wave | _spread(wave)) & free, wave

    wave, before = jax.lax.while_loop(searching, spread, (start, jnp.zeros_like(start)))
    reached = (wave & end).any()
    return jnp.stack([(cells & end).any() for cells in _neighbours(before)]) & reached


def steps_away(here: jax.Array, things: jax.Array, walls: jax.Array) -> jax.Array:
    """[H + W, 4, K] int32, how many things of each kind [H, W, K] bool lie so many steps from one
    cell, from one step to H + W, behind each of its four moves: those that start a shortest way
    there. Nothing lies anywhere for who is on no cell.

    Four waves spread from the cell's neighbours, and no wave comes where any has been before.
    """
    height, width, _ = things.shape
    start, free = _packed(here), _packed(~walls)
    lying = _packed(jnp.moveaxis(things, -1, 0))  # [K, H]
    # A move leads from the cell to where the opposite one would lead from.
    up, down, left, right = _neighbours(start)
    waves = jnp.stack([down, up, right, left]) & free  # [4, H]

    def spread(
        carry: tuple[jax.Array, jax.Array], _: None
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        waves, been = carry
        found = jax.lax.population_count(waves[:, None] & lying).sum(axis=-1, dtype=jnp.int32)
        been = been | waves[0] | waves[1] | waves[2] | waves[3]
        return (_spread(waves) & free & ~been, been), found

    # As a loop: unrolled, XLA computes each wave once more for everything that is read from it.
    _, found = jax.lax.scan(spread, (waves, start), None, length=height + width)
    return found


def _packed(cells: jax.Array) -> jax.Array:
    """[..., H] uint32, a bit for each column of [..., H, W] bool."""
    if cells.shape[-1] > MOST_COLUMNS:
        raise ConfigError(
            f"ways are found on boards of at most {MOST_COLUMNS} columns: by scripted players, and"
            f" by networks of the kind walking; this one has {cells.shape[-1]}"
        )
    columns = jnp.arange(cells.shape[-1], dtype=jnp.uint32)
    return (cells.astype(jnp.uint32) << columns).sum(axis=-1, dtype=jnp.uint32)


def _neighbours(rows: jax.Array) -> tuple[jax.Array, ...]:
    """For each move up, down, left, right: the cells that it leads from into the given ones."""
    same = [(0, 0)] * (rows.ndim - 1)
    above = jnp.pad(rows[..., :-1], [*same, (1, 0)])
    below = jnp.pad(rows[..., 1:], [*same, (0, 1)])
    return above, below, rows << 1, rows >> 1


def _spread(rows: jax.Array) -> jax.Array:
    """The cells next to the given ones."""
    up, down, left, right = _neighbours(rows)
    return up | down | left | right
