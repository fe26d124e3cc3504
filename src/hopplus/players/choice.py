"""From a distribution over actions to an act."""

import jax
import jax.numpy as jnp

from hopplus.types import Act


def draw(key: jax.Array, probabilities: jax.Array) -> jax.Array:
    """[] int32 drawn from [A] probabilities; an action of probability zero is never drawn.

    One uniform number against the running sums: seven times fewer random numbers than Gumbel
    noise for seven actions, and random numbers are what a small board's step costs.
    """
    sums = jnp.cumsum(probabilities)
    # The largest uniform number is below 1, so the threshold stays below the last sum.
    threshold = jax.random.uniform(key) * sums[-1]
    return jnp.argmax(sums > threshold).astype(jnp.int32)


def act_from(
    logits: jax.Array, action: jax.Array, value: jax.Array | float, goal: jax.Array
) -> Act:
    """The act of taking an action under [A] normalised log-probabilities."""
    return Act(
        action=action.astype(jnp.int32),
        logits=logits,
        log_prob=logits[action],
        value=jnp.asarray(value, jnp.float32),
        goal=goal,
    )
