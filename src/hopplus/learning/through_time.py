"""Batches that keep each game's steps together, for what is learned through them in order."""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from hopplus.learning.ppo import Batch
from hopplus.players.context.context import Context
from hopplus.types import Params


def replay_games(
    context: Context,
    params: Params,
    part: Batch,
    imagined: int,
    lengths: Sequence[tuple[int, int]],
) -> Batch:
    """A minibatch with the contexts as the parameters have them now, from what was remembered
    before the first steps of its games.

    Its last rows, so many, are `imagined`. `lengths` are the seats k and steps T of the real games
    and, where there are any, of the imagined ones: rows run [k, T, games].
    """
    real = len(part.action) - imagined
    pieces = [slice(0, real), slice(real, None)][: len(lengths)]
    found = []
    for rows, (seats, steps) in zip(pieces, lengths, strict=True):
        some: Batch = jax.tree.map(lambda leaf: leaf[rows], part)  # noqa: B023
        found.append(_replayed(context, params, some, seats, steps))
    return replace(part, inferred=jnp.concatenate(found))


def _replayed(context: Context, params: Params, part: Batch, seats: int, steps: int) -> jax.Array:
    """[M, size] the contexts of rows that run [k, T, g]."""

    def games(leaf: jax.Array) -> jax.Array:  # [k * g, T, ...]
        rows = leaf.reshape(seats, steps, -1, *leaf.shape[1:])
        return jnp.moveaxis(rows, 1, 2).reshape(-1, steps, *leaf.shape[1:])

    def rows(leaf: jax.Array) -> jax.Array:
        split = leaf.reshape(seats, -1, steps, *leaf.shape[2:])
        return jnp.moveaxis(split, 2, 1).reshape(-1, *leaf.shape[2:])

    given = jax.tree.map(games, (part.before, part.view, part.begins, part.episode))
    return rows(jax.vmap(context.replay, in_axes=(None, 0, 0, 0, 0))(params, *given))


def minibatch_rows(
    key: jax.Array, rows: int, minibatches: int, games: int, whole_games: bool
) -> jax.Array:
    """[minibatches, rows / minibatches] int32, the rows of a batch in random parts.

    Rows run [..., B]: a row's game is its number modulo `games`. Parts are any rows; or, for
    players with memory and where shuffling all of them is not worth its time, `whole_games`, each
    game's steps together and in their order. Games that do not divide are left out this time.
    """
    if not whole_games:
        return jax.random.permutation(key, rows).reshape(minibatches, -1)
    kept = games - games % minibatches
    chosen = jax.random.permutation(key, games)[:kept].reshape(minibatches, 1, -1)
    first_rows = jnp.arange(0, rows, games)[None, :, None]
    return (first_rows + chosen).reshape(minibatches, -1)
