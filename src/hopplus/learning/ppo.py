"""Proximal policy optimisation (Schulman et al. 2017): the losses of one set of parameters."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import PPOConfig
from hopplus.types import Params, View


class Batch(eqx.Module):
    """Steps of play to learn from, [M, ...]."""

    view: View
    action: jax.Array  # [M] int32
    log_prob: jax.Array  # [M] float32, when it was played
    value: jax.Array  # [M] float32, when it was played
    returns: jax.Array  # [M] float32
    present: jax.Array  # [M] bool; only these count for the policy
    valued: jax.Array  # [M] bool; only these count for the value


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
    judge: Callable[[Params, View], tuple[jax.Array, jax.Array]],
    config: PPOConfig,
    entropy_weight: jax.Array,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The loss over present steps, and its named parts.

    `judge` gives [A] log-probabilities and [] value of one view. `value_loss` is the clipped mean
    squared error of the value.
    """
    logits, value = jax.vmap(judge, in_axes=(None, 0))(params, batch.view)
    mask = batch.present
    log_prob = jnp.take_along_axis(logits, batch.action[:, None], axis=-1)[:, 0]
    # Masked before the exponential: an infinity there would be no number in the gradient.
    change = jnp.where(mask, log_prob - batch.log_prob, 0.0)
    ratio = jnp.exp(change)
    advantage = normalised(batch.returns - batch.value, mask)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    policy_loss = mean_of(-jnp.minimum(ratio * advantage, clipped * advantage), mask)

    near = batch.value + jnp.clip(value - batch.value, -config.value_clip, config.value_clip)
    error = jnp.maximum((value - batch.returns) ** 2, (near - batch.returns) ** 2)
    value_loss = mean_of(error, batch.valued)

    legal = batch.view.legal
    surprise = jnp.where(legal, -jnp.exp(logits) * jnp.where(legal, logits, 0.0), 0.0)
    entropy = mean_of(surprise.sum(axis=-1), mask)

    loss = policy_loss + config.value_weight * value_loss - entropy_weight * entropy
    return loss, {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "kl": mean_of(ratio - 1 - change, mask),
        "clipped": mean_of((jnp.abs(ratio - 1) > config.clip).astype(jnp.float32), mask),
    }
