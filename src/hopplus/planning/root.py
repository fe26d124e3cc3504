"""What trees say of the state they grow from: what to do then, and what will follow."""

import jax
import jax.numpy as jnp

from hopplus.config import SearchConfig
from hopplus.planning.search import SearchResult
from hopplus.planning.tree import Leaf, Tree


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


def principal_variation(
    tree: Tree, action: jax.Array, outcomes: int, steps: int
) -> tuple[jax.Array, jax.Array]:
    """The line of play that a tree has looked at most: the nodes [steps] behind the root's `action`
    and then the most visited ones, and whether there are any so deep [steps] bool.

    Of the `outcomes` told apart behind an action the first is met most often.
    """
    nodes, actions = tree.prior.shape
    # Ends are no node's children, but each node knows the edge by which it was reached first.
    reached = jnp.take_along_axis(tree.path, jnp.maximum(tree.depth - 1, 0)[:, None], axis=1)[:, 0]
    reached = jnp.where(jnp.arange(nodes) > 0, reached, -1)  # nothing leads to the root

    def step(
        carry: tuple[jax.Array, jax.Array], number: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
        node, there = carry
        best = jnp.where(number == 0, action, tree.visits[node].argmax())
        there = there & (tree.visits[node, best] > 0)
        after = (reached == (node * actions + best) * outcomes).argmax()
        return (after, there), (after, there)

    start = (jnp.zeros((), int), jnp.bool_(True))
    return jax.lax.scan(step, start, jnp.arange(steps))[1]
