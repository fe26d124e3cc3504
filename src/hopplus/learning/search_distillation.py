"""Learning from search (Silver et al. 2017): act at once as one did after thinking."""

import jax
import jax.numpy as jnp

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
    value_loss = mean_of((value - batch.returns) ** 2, batch.valued)
    found = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": mean_of(entropies(logits, legal), batch.present),
        "kl": policy_loss - mean_of(crossed(jnp.where(aim > 0, batch.aim, 0.0)), chose),
    }
    return policy_loss + value_weight * value_loss, found
