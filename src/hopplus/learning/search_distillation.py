"""Learning from search (Silver et al. 2017): act at once as one did after thinking."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from hopplus.config import DistilConfig
from hopplus.learning.ppo import Batch, entropies, mean_of
from hopplus.models.part import Metrics


def distillation_loss(
    logits: jax.Array, value: jax.Array, batch: Batch, value_weight: float
) -> tuple[jax.Array, Metrics]:
    """Cross-entropy of the policy [M, A] to what the search would do, where there was a choice, and
    the squared error of the value [M]; and the named parts.

    `kl` is how far the policy is from the search: the cross-entropy less the search's own entropy.
    """
    assert batch.aim is not None
    legal = batch.view.legal
    aim = jnp.where(legal, jnp.exp(batch.aim), 0.0)

    def crossed(logits: jax.Array) -> jax.Array:
        return -jnp.where(aim > 0, aim * jnp.where(legal, logits, 0.0), 0.0).sum(axis=-1)

    chose = batch.present & (legal.sum(axis=-1) > 1)
    policy_loss = mean_of(crossed(logits), chose)
    error = value - batch.returns
    error = error if batch.scale is None else error / batch.scale
    value_loss = mean_of(error**2, batch.valued)
    found = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": mean_of(entropies(logits, legal), batch.present),
        "kl": policy_loss - mean_of(crossed(jnp.where(aim > 0, batch.aim, 0.0)), chose),
    }
    return policy_loss + value_weight * value_loss, found


def scale_errors(given: Batch, known: Batch, config: DistilConfig) -> Batch:
    """What is learned from [sets, M, ...], with the deviation of all targets that are known
    [sets, ...], where it is asked for.

    Values that learn targets less their mean, over their deviation, and are brought back wherever
    they are used, have the same errors over that deviation: the mean makes no difference.
    """
    if not config.normalise:
        return given

    def deviation(returns: jax.Array, valued: jax.Array) -> jax.Array:
        spread = jnp.sqrt(mean_of((returns - mean_of(returns, valued)) ** 2, valued))
        return jnp.where(spread > 1e-3, spread, 1.0)  # all may be alike at first

    scale = jax.vmap(deviation)(known.returns, known.valued)
    return replace(given, scale=jnp.broadcast_to(scale[:, None], given.returns.shape))


def empty_replay(batch: Batch, updates: int) -> Batch:
    """Room [sets, updates, M, ...] for as many batches [sets, M, ...]."""

    def room(leaf: jax.Array) -> jax.Array:
        return jnp.zeros((leaf.shape[0], updates, *leaf.shape[1:]), leaf.dtype)

    rows: Batch = jax.tree.map(room, batch)
    return rows


def distilled(
    batch: Batch,
    kept: Batch | None,
    config: DistilConfig,
    trusts: jax.Array | None,
    updates: jax.Array,
    games: int,
    key: jax.Array,
) -> tuple[Batch, Batch | None]:
    """What is learned from after a batch [sets, M, ...], and what is kept [sets, U, M, ...] if
    anything is.

    Values learn returns, or what the search hoped for, in sets that trust it [sets].
    Of what is kept as many rows are drawn as a batch has. A row's game is its number modulo
    `games`; the steps of a game are all of one update, so that players with a memory can go through
    them, and of which one, is drawn for each game.
    """
    if config.value_target == "search":
        hoped = batch.value
        hoped = hoped if trusts is None else jnp.where(trusts[:, None], hoped, batch.returns)
        batch = replace(batch, returns=hoped)
    if kept is None:
        return scale_errors(batch, batch, config), None
    room, rows = kept.action.shape[1:]
    # A policy that was played without search is nothing to come back to later.
    worth = batch if trusts is None else replace(batch, present=batch.present & trusts[:, None])
    kept = jax.tree.map(lambda old, new: old.at[:, updates % room].set(new), kept, worth)
    drawn = jax.random.randint(key, (games,), 0, jnp.minimum(updates + 1, room))
    which = drawn[jnp.arange(rows) % games]
    given: Batch = jax.tree.map(lambda leaf: leaf[:, which, jnp.arange(rows)], kept)
    return scale_errors(given, kept, config), kept
