"""Looking one step ahead: what is behind each action, on average over what the others may do."""

from typing import Any

import jax
import jax.numpy as jnp

from hopplus.config import SearchConfig
from hopplus.planning.search import Leaf, Node, RecurrentFn, SearchResult


def one_step(
    recurrent_fn: RecurrentFn, root: Node, leaf: Leaf, chance: Any, config: SearchConfig
) -> SearchResult:
    """Q(a) = mean of r + discount * V(next) over [S, ...] chances, the same for every action."""

    def score(action: jax.Array, chance: Any) -> jax.Array:
        reached = recurrent_fn(root, action, chance)
        ahead = jnp.where(reached.ended, 0.0, reached.leaf.value)
        return reached.reward + config.worth * ahead

    actions = jnp.arange(len(leaf.prior))
    scores = jax.vmap(jax.vmap(score, in_axes=(None, 0)), in_axes=(0, None))(actions, chance)
    legal = leaf.prior > -jnp.inf
    values = jnp.where(legal, scores.mean(axis=1), leaf.value)
    visits = jnp.where(legal, float(scores.shape[1]), 0.0)
    return SearchResult(visits, values, (jnp.exp(leaf.prior) * values).sum())
