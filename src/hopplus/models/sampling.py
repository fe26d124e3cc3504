"""Drawing from distributions."""

import jax
import jax.numpy as jnp


def draw(key: jax.Array, probabilities: jax.Array) -> jax.Array:
    """[...] int32 drawn from [..., A] probabilities; an action of probability zero is never drawn.

    One uniform number against the running sums: seven times fewer random numbers than Gumbel
    noise for seven actions, and random numbers are what a small board's step costs.
    """
    return drawn_by(jax.random.uniform(key, probabilities.shape[:-1]), probabilities)


def drawn_by(number: jax.Array, probabilities: jax.Array) -> jax.Array:
    """As `draw` with uniform numbers [...] from 0 to below 1 at hand."""
    sums = jnp.cumsum(probabilities, axis=-1)
    # The largest uniform number is below 1, so the threshold stays below the last sum.
    threshold = number * sums[..., -1]
    return jnp.argmax(sums > threshold[..., None], axis=-1).astype(jnp.int32)
