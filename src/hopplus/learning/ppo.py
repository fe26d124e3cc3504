"""Proximal policy optimisation (Schulman et al. 2017): the losses of one set of parameters."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import PPOConfig
from hopplus.types import Memory, Params, View


class Batch(eqx.Module):
    """Steps of play to learn from, [M, ...]."""

    view: View
    inferred: jax.Array  # [M, J] float32, what the others were taken to be after
    action: jax.Array  # [M] int32
    log_prob: jax.Array  # [M] float32, when it was played
    value: jax.Array  # [M] float32, when it was played
    reward: jax.Array  # [M] float32
    returns: jax.Array  # [M] float32
    present: jax.Array  # [M] bool; only these count for the policy
    valued: jax.Array  # [M] bool; only these count for the value
    aim: jax.Array | None = None  # [M, A] log-probabilities after a search; None without any
    imagined: jax.Array | None = None  # [M] bool, was only imagined; None where nothing was
    before: Memory = None  # [M, ...] what was remembered before; None where it is not gone through
    begins: jax.Array | None = None  # [M] bool, an episode began; None likewise
    episode: jax.Array | None = None  # [M] int32, the episode's number in its trial; None likewise


def mean_of(values: jax.Array, mask: jax.Array) -> jax.Array:
    """The mean over masked entries; 0 when there are none."""
    return jnp.where(mask, values, 0.0).sum() / jnp.maximum(mask.sum(), 1)


def normalised(values: jax.Array, mask: jax.Array) -> jax.Array:
    """Shifted and scaled to mean 0 and variance 1 over masked entries."""
    centred = values - mean_of(values, mask)
    return centred / (jnp.sqrt(mean_of(centred**2, mask)) + 1e-8)


def explained(value: jax.Array, returns: jax.Array, mask: jax.Array) -> jax.Array:
    """The share of the returns' variance that the values explain: 1 all, 0 none."""
    spread = mean_of((returns - mean_of(returns, mask)) ** 2, mask)
    error = returns - value
    return 1 - mean_of((error - mean_of(error, mask)) ** 2, mask) / (spread + 1e-8)


def ppo_loss(
    params: Params,
    batch: Batch,
    policy_and_value: Callable[[Params, View, jax.Array], tuple[jax.Array, jax.Array]],
    config: PPOConfig,
    entropy_weight: jax.Array,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The loss over present steps, and its named parts, those of imagined steps apart.

    `policy_and_value` gives [A] log-probabilities and [] value of one view. `value_loss` is the
    clipped mean
    squared error of the value. Advantages are normalised over real and over imagined steps each for
    themselves, so that what is only imagined cannot drown what happened.
    """
    logits, value = jax.vmap(policy_and_value, in_axes=(None, 0, 0))(
        params, batch.view, batch.inferred
    )
    log_prob = jnp.take_along_axis(logits, batch.action[:, None], axis=-1)[:, 0]
    # Masked before the exponential: an infinity there would be no number in the gradient.
    change = jnp.where(batch.present, log_prob - batch.log_prob, 0.0)
    ratio = jnp.exp(change)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)

    near = batch.value + jnp.clip(value - batch.value, -config.value_clip, config.value_clip)
    error = jnp.maximum((value - batch.returns) ** 2, (near - batch.returns) ** 2)

    legal = batch.view.legal
    surprise = jnp.where(legal, -jnp.exp(logits) * jnp.where(legal, logits, 0.0), 0.0)
    surprise = surprise.sum(axis=-1)

    def parts(mask: jax.Array, valued: jax.Array) -> dict[str, jax.Array]:
        advantage = normalised(batch.returns - batch.value, mask)
        return {
            "policy_loss": mean_of(-jnp.minimum(ratio * advantage, clipped * advantage), mask),
            "value_loss": mean_of(error, valued),
            "entropy": mean_of(surprise, mask),
            "kl": mean_of(ratio - 1 - change, mask),
            "clipped": mean_of((jnp.abs(ratio - 1) > config.clip).astype(jnp.float32), mask),
        }

    def loss(found: dict[str, jax.Array]) -> jax.Array:
        bonus = entropy_weight * found["entropy"]
        return found["policy_loss"] + config.value_weight * found["value_loss"] - bonus

    if batch.imagined is None:
        found = parts(batch.present, batch.valued)
        return loss(found), found
    real, imagined_batch = ~batch.imagined, batch.imagined
    found = parts(batch.present & real, batch.valued & real)
    imagined_rollouts = parts(batch.present & imagined_batch, batch.valued & imagined_batch)
    # Every step counts alike, whatever its source; one that is not valued adds nothing to the
    # value's share, so with imagination that weighs less beside the policy's.
    share = (batch.present & imagined_batch).sum() / jnp.maximum(batch.present.sum(), 1)
    total = (1 - share) * loss(found) + share * loss(imagined_rollouts)
    return total, found | {f"imagined/{name}": value for name, value in imagined_rollouts.items()}
