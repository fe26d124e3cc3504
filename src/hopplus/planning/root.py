"""What trees say of the moment they grow from, and what to do then."""

import jax
import jax.numpy as jnp

from hopplus.config import SearchConfig
from hopplus.planning.search import Leaf, SearchResult


def with_noise(leaf: Leaf, config: SearchConfig, key: jax.Array) -> Leaf:
    """The prior with its share of Dirichlet noise over the legal actions."""
    if config.noise == 0:
        return leaf
    legal = leaf.prior > -jnp.inf
    drawn = jnp.where(legal, jax.random.gamma(key, config.noise_alpha, legal.shape), 0.0)
    noise = drawn / jnp.maximum(drawn.sum(), 1e-30)
    mixed = (1 - config.noise) * jnp.exp(leaf.prior) + config.noise * noise
    return Leaf(jnp.where(legal, jnp.log(mixed), -jnp.inf), leaf.value)


def averaged(found: SearchResult) -> SearchResult:
    """What trees [trees, ...] say on average; every look at an action counts alike."""
    visits = found.visits.sum(axis=0)
    mean = (found.visits * found.values).sum(axis=0) / jnp.maximum(visits, 1)
    values = jnp.where(visits > 0, mean, found.value.mean())
    return SearchResult(found.visits.mean(axis=0), values, found.value.mean())


def choice_of(found: SearchResult, leaf: Leaf, config: SearchConfig) -> jax.Array:
    """[A] log-probabilities of acting so, -inf where illegal or never looked at.

    Without temperature it is the best alone.

    By values: proportional to exp(value / temperature). By visits: to visits ** (1 / temperature),
    as in Silver et al. 2017.
    """
    known = (leaf.prior > -jnp.inf) & (found.visits > 0)
    scores = found.values if config.choice == "values" else jnp.log(found.visits)
    scores = jnp.where(known, scores, -jnp.inf)
    if config.temperature == 0:
        best = jnp.arange(len(scores)) == scores.argmax()
        return jnp.where(best, 0.0, -jnp.inf)
    return jax.nn.log_softmax(scores / config.temperature)
