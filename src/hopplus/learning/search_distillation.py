"""Learning from search (Silver et al. 2017): act at once as one did after thinking."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from hopplus.learning.ppo import Batch, mean_of
from hopplus.types import Params, View


def distillation_loss(
    params: Params,
    batch: Batch,
    policy_and_value: Callable[[Params, View, jax.Array], tuple[jax.Array, jax.Array]],
    value_weight: float,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Cross-entropy of the policy to what the search would do, where there was a choice, and the
    squared error of the value; and the named parts.

    `kl` is how far the policy is from the search: the cross-entropy less the search's own entropy.
    """
    assert batch.aim is not None
    logits, value = jax.vmap(policy_and_value, in_axes=(None, 0, 0))(
        params, batch.view, batch.inferred
    )
    legal = batch.view.legal
    aim = jnp.where(legal, jnp.exp(batch.aim), 0.0)

    def crossed(logits: jax.Array) -> jax.Array:
        return -jnp.where(aim > 0, aim * jnp.where(legal, logits, 0.0), 0.0).sum(axis=-1)

    chose = batch.present & (legal.sum(axis=-1) > 1)
    surprise = jnp.where(legal, -jnp.exp(logits) * jnp.where(legal, logits, 0.0), 0.0)
    policy_loss = mean_of(crossed(logits), chose)
    value_loss = mean_of((value - batch.returns) ** 2, batch.valued)
    found = {
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": mean_of(surprise.sum(axis=-1), batch.present),
        "kl": policy_loss - mean_of(crossed(jnp.where(aim > 0, batch.aim, 0.0)), chose),
    }
    return policy_loss + value_weight * value_loss, found
