"""The tree of a search: what is kept of each node, and what is thought of its actions.

A tree is a few arrays with a row for each node:

- Each node keeps the whole path that leads to it, so that nothing has to climb.
- Each node keeps the edge at which a descent from it ends (`ahead`), so that nothing has to
  descend. A simulation changes scores on its own path only; there the edges ahead are found anew.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import SearchConfig

Node = Any  # a state as whoever searches knows it: any pytree of arrays


class Leaf(eqx.Module):
    """What is thought of a state before looking further."""

    prior: jax.Array  # [A] float32, log-probabilities of the actions, -inf where illegal
    value: jax.Array  # [] float32, expected return from here


class Reached(eqx.Module):
    """A state that an action led to."""

    node: Node
    leaf: Leaf
    reward: jax.Array  # [] float32, on the way there
    ended: jax.Array  # [] bool, there is nothing behind it


RecurrentFn = Callable[[Node, jax.Array, Any], Reached]  # a node, an action [] int32, chance


class Tree(eqx.Module):
    """M nodes, the root first. An edge's number is (node * A + action) * K + outcome."""

    nodes: Node  # [M, ...]
    value: jax.Array  # [M] float32, the leaf's
    prior: jax.Array  # [M, A] float32 probabilities, 0 where illegal
    visits: jax.Array  # [M, A] float32
    total: jax.Array  # [M, A] float32, of the returns found behind each action
    child: jax.Array  # [M * A * K] int32 node behind an edge; 0 none yet, M an end
    reward: jax.Array  # [M * A * K] float32
    path: jax.Array  # [M, D] int32 edges from the root to the node; anything behind the last
    depth: jax.Array  # [M] int32 edges on that path
    ahead: jax.Array  # [M] int32 edge at which a descent from the node ends


def puct(
    value: jax.Array, prior: jax.Array, visits: jax.Array, total: jax.Array, config: SearchConfig
) -> jax.Array:
    """[A] scores of a node's actions, -inf where illegal: Q(a) + c P(a) sqrt(n) / (1 + n(a)).

    n counts the node's visits with the first. An action that was never taken is thought to be
    worth what the node is or, scaled, what the worst action is.
    """
    mean = mean_value(value, visits, total)
    known = jnp.where(visits > 0, total / jnp.maximum(visits, 1), mean)
    if config.values == "scaled":
        least = jnp.minimum(known.min(), mean)
        most = jnp.maximum(known.max(), mean)
        known = jnp.where(visits > 0, (known - least) / jnp.maximum(most - least, 1e-8), 0.0)
    wish = config.exploration * prior * jnp.sqrt(1 + visits.sum()) / (1 + visits)
    return jnp.where(prior > 0, known + wish, -jnp.inf)


def mean_value(value: jax.Array, visits: jax.Array, total: jax.Array) -> jax.Array:
    """[] mean of a node's own value and all returns found behind it."""
    return (value + total.sum()) / (1 + visits.sum())


def plant(root: Node, leaf: Leaf, simulations: int, config: SearchConfig) -> Tree:
    """A tree of a root alone."""
    nodes, actions = simulations + 1, len(leaf.prior)
    edges = nodes * actions * config.outcomes
    depth = min(config.depth or simulations, simulations)
    prior = jnp.exp(leaf.prior)

    def first(leaf: jax.Array) -> jax.Array:
        return jnp.zeros((nodes, *leaf.shape), leaf.dtype).at[0].set(leaf)

    return Tree(
        nodes=jax.tree.map(first, root),
        value=first(leaf.value),
        prior=first(prior),
        visits=jnp.zeros((nodes, actions)),
        total=jnp.zeros((nodes, actions)),
        child=jnp.zeros(edges, jnp.int32),
        reward=jnp.zeros(edges),
        path=jnp.zeros((nodes, depth), jnp.int32),
        depth=jnp.zeros(nodes, jnp.int32),
        ahead=first(jnp.int32(prior.argmax() * config.outcomes)),
    )
