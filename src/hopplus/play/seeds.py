"""Seeds side by side."""

import jax
import numpy as np

from hopplus.config import RunConfig


def seed_keys(config: RunConfig) -> jax.Array:
    """[S] a key for each seed, the same whether it runs alone or with others."""
    return jax.vmap(jax.random.key)(np.arange(config.seed, config.seed + config.seeds))
