"""What PPO's kernel is told of a minibatch: of each row, and of all rows together."""

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.learning.ppo import Batch, mean_of


class Record(eqx.Module):
    """What is known of a row before the first step; each [R], float32 in the kernel."""

    returns: jax.Array
    value: jax.Array  # when it was played
    log_prob: jax.Array  # when it was played
    action: jax.Array
    legal: jax.Array  # a bit for each action
    present: jax.Array  # 1 where it counts for the policy
    valued: jax.Array  # 1 where it counts for the value
    imagined: jax.Array  # 1; 0 where it was played


class Kind(eqx.Module):
    """What the played or the imagined rows of a minibatch have in common; each [] float32."""

    mean: jax.Array  # of what they gained over their values
    scale: jax.Array  # one over its standard deviation
    weight: jax.Array  # of a row in means over those that count for the policy
    value_weight: jax.Array  # the same for the value
    share: jax.Array  # of the mean in the policy's loss
    value_share: jax.Array  # of the mean in the value's loss


def records(batch: Batch) -> jax.Array:
    """[M, 8] float32, in the order of `Record`: all of a row lies together."""
    bits = (batch.view.legal * (1 << jnp.arange(batch.view.legal.shape[-1]))).sum(axis=-1)
    imagined = jnp.zeros_like(batch.present) if batch.imagined is None else batch.imagined
    counts = batch.present, batch.valued, imagined
    record = Record(batch.returns, batch.value, batch.log_prob, batch.action, bits, *counts)
    return jnp.stack([leaf.astype(jnp.float32) for leaf in jax.tree.leaves(record)], axis=1)


def loss_weights(
    batch: Batch, imagined_value_weight: float, entropy_weight: jax.Array
) -> jax.Array:
    """[13] float32, what the loss of a minibatch is made with: a `Kind` of played rows, one of
    imagined rows, and the weight of the bonus for entropy."""
    imagined = jnp.zeros_like(batch.present) if batch.imagined is None else batch.imagined
    gains = batch.returns - batch.value
    counted = batch.valued * jnp.where(imagined, imagined_value_weight, 1.0)
    share = (batch.present & imagined).sum() / jnp.maximum(batch.present.sum(), 1)
    value_share = (counted * imagined).sum() / jnp.maximum(counted.sum(), 1e-8)

    def kind(chosen: jax.Array, share: jax.Array, value_share: jax.Array) -> Kind:
        present, valued = batch.present & chosen, batch.valued & chosen
        mean = mean_of(gains, present)
        spread = jnp.sqrt(mean_of((gains - mean) ** 2, present)) + 1e-8
        weight, value_weight = (1 / jnp.maximum(mask.sum(), 1) for mask in (present, valued))
        return Kind(mean, 1 / spread, weight, value_weight, share, value_share)

    played = kind(~imagined, 1 - share, 1 - value_share)
    other = played if batch.imagined is None else kind(imagined, share, value_share)
    return jnp.stack([*jax.tree.leaves((played, other)), entropy_weight])
