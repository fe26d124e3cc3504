"""Monte-Carlo tree search for one seat (Coulom 2006; PUCT as in Silver et al. 2017).

Written for one tree; `vmap` grows many side by side. A tree is a few arrays with a row for each
node, and a simulation is a fixed handful of operations on them, without a loop:

- Each node keeps the whole path that leads to it, so that nothing has to climb.
- Each node keeps the edge at which a descent from it ends (`ahead`), so that nothing has to
  descend. A simulation changes scores on its own path only; there the edges ahead are found anew,
  all at once: a descent follows the path as far as the best actions do, and from where it leaves
  the path the edge ahead is known.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import SearchConfig
from hopplus.lookup import at

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


class SearchResult(eqx.Module):
    """What looking ahead says of the state it began in."""

    visits: jax.Array  # [A] float32, how often each action was looked at
    values: jax.Array  # [A] float32, expected return of each action; of the root where unvisited
    value: jax.Array  # [] float32, expected return


class Found(SearchResult):
    """The result of a search, and the tree it comes from."""

    tree: Tree


def search(
    recurrent_fn: RecurrentFn, root: Node, leaf: Leaf, chance: Any, config: SearchConfig
) -> Found:
    """Look ahead from a root, with [S, ...] chance for as many simulations.

    A reward is earned on the way to a node, and values are of what comes after it. Behind each
    action `config.outcomes` nodes are told apart and visited in turn.
    """
    simulations = len(jax.tree.leaves(chance)[0])
    tree = _plant(root, leaf, simulations, config)

    def simulate(tree: Tree, now: tuple[jax.Array, Any]) -> tuple[Tree, None]:
        return _grow(recurrent_fn, tree, *now, config), None

    tree, _ = jax.lax.scan(simulate, tree, (jnp.arange(1, simulations + 1), chance))
    value = _mean_value(tree.value[0], tree.visits[0], tree.total[0])
    visits = tree.visits[0]
    values = jnp.where(visits > 0, tree.total[0] / jnp.maximum(visits, 1), value)
    return Found(visits, values, value, tree)


def one_step(
    recurrent_fn: RecurrentFn, root: Node, leaf: Leaf, chance: Any, config: SearchConfig
) -> SearchResult:
    """Look one step ahead, at what is behind each action on average over what the others may do:
    Q(a) = mean of r + discount * V(next) over [S, ...] chances, the same for every action."""

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


def puct(
    value: jax.Array, prior: jax.Array, visits: jax.Array, total: jax.Array, config: SearchConfig
) -> jax.Array:
    """[A] scores of a node's actions, -inf where illegal: Q(a) + c P(a) sqrt(n) / (1 + n(a)).

    n counts the node's visits with the first. An action that was never taken is thought to be
    worth what the node is or, scaled, what the worst action is.
    """
    mean = _mean_value(value, visits, total)
    known = jnp.where(visits > 0, total / jnp.maximum(visits, 1), mean)
    if config.values == "scaled":
        least = jnp.minimum(known.min(), mean)
        most = jnp.maximum(known.max(), mean)
        known = jnp.where(visits > 0, (known - least) / jnp.maximum(most - least, 1e-8), 0.0)
    wish = config.exploration * prior * jnp.sqrt(1 + visits.sum()) / (1 + visits)
    return jnp.where(prior > 0, known + wish, -jnp.inf)


def _mean_value(value: jax.Array, visits: jax.Array, total: jax.Array) -> jax.Array:
    """[] mean of a node's own value and all returns found behind it."""
    return (value + total.sum()) / (1 + visits.sum())


def _plant(root: Node, leaf: Leaf, simulations: int, config: SearchConfig) -> Tree:
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


def _grow(
    recurrent_fn: RecurrentFn, tree: Tree, new: jax.Array, chance: Any, config: SearchConfig
) -> Tree:
    """The tree after one more simulation, whose node is to be number `new`."""
    with jax.named_scope("select"):
        descent = _descend(tree, config)
    with jax.named_scope("expand"):
        node = jax.tree.map(lambda leaf: at(leaf, descent.parent), tree.nodes)
        reached = recurrent_fn(node, descent.edge // config.outcomes % tree.prior.shape[1], chance)
    with jax.named_scope("backup"):
        tree = _back_up(tree, new, descent, reached, config)
        return _look_ahead(tree, descent, config)


class Descent(NamedTuple):
    """The way from the root to the edge that is to be looked at next."""

    edge: jax.Array  # [] int32
    parent: jax.Array  # [] int32 node that the edge leads from
    depth: jax.Array  # [] int32 of that node
    path: jax.Array  # [D] int32 all edges up to and with it; anything behind


def _descend(tree: Tree, config: SearchConfig) -> Descent:
    edge = tree.ahead[0]
    parent = edge // (tree.prior.shape[1] * config.outcomes)
    depth = at(tree.depth, parent)
    places = jnp.arange(tree.path.shape[1])
    return Descent(edge, parent, depth, jnp.where(places == depth, edge, at(tree.path, parent)))


def _back_up(
    tree: Tree, new: jax.Array, descent: Descent, reached: Reached, config: SearchConfig
) -> Tree:
    """The tree with a new node, and what was found there added all along the path."""
    nodes, actions = tree.prior.shape
    outcomes, depths = config.outcomes, tree.path.shape[1]
    edge, _, depth, path = descent
    places = jnp.arange(depths)
    on_path = places <= depth

    # Ends, and nodes as deep as one may look, are met again and not looked at a second time.
    known = at(tree.child, edge)
    fresh = known == 0
    ended = jnp.where(fresh, reached.ended, known == nodes)
    # Arrays are read only after they are written to, so that writing needs no copy.
    rewards = tree.reward.at[edge].set(jnp.where(fresh, reached.reward, at(tree.reward, edge)))
    values = tree.value.at[new].set(reached.leaf.value)
    value = at(values, jnp.where(fresh, new, jnp.minimum(known, nodes - 1)))
    gains = jnp.where(on_path, at(rewards, jnp.where(on_path, path, 0)), 0.0)
    gains += jnp.where((places == depth) & ~ended, config.worth * value, 0.0)
    discounts = jnp.asarray(_discounts(depths, config.worth))
    returns = jnp.matmul(gains, discounts, precision="highest")  # [D]

    prior = jnp.exp(reached.leaf.prior)
    taken = jnp.where(on_path, path // outcomes, nodes * actions)
    return Tree(
        nodes=jax.tree.map(lambda old, leaf: old.at[new].set(leaf), tree.nodes, reached.node),
        value=values,
        prior=tree.prior.at[new].set(prior),
        visits=_add(tree.visits, taken, jnp.ones(depths)),
        total=_add(tree.total, taken, returns),
        child=tree.child.at[edge].set(jnp.where(fresh, jnp.where(ended, nodes, new), known)),
        reward=rewards,
        path=tree.path.at[new].set(path),
        depth=tree.depth.at[new].set(depth + 1),
        ahead=tree.ahead.at[new].set((new * actions + prior.argmax()) * outcomes),
    )


def _look_ahead(tree: Tree, descent: Descent, config: SearchConfig) -> Tree:
    """The tree with the edges ahead of all nodes on a path found anew."""
    nodes, actions = tree.prior.shape
    path, depth = descent.path, descent.depth
    places = jnp.arange(len(path))
    on_path = places <= depth
    stops = jnp.where(on_path, path // (actions * config.outcomes), 0)  # [D] nodes along it
    value, prior, visits, total = (
        at(leaf, stops) for leaf in (tree.value, tree.prior, tree.visits, tree.total)
    )
    scores = jax.vmap(puct, in_axes=(0, 0, 0, 0, None))(value, prior, visits, total, config)
    best = scores.argmax(axis=1)  # [D]
    turn = jnp.take_along_axis(visits, best[:, None], axis=1)[:, 0].astype(jnp.int32)
    edges = (stops * actions + best) * config.outcomes + turn % config.outcomes
    child = at(tree.child, edges)
    ends = (child == 0) | (child == nodes) | (places == len(path) - 1)
    onward = jnp.where(ends, edges, at(tree.ahead, jnp.where(ends, 0, child)))
    stays = (places < depth) & (child == jnp.roll(stops, -1))
    leaves = jax.lax.cummin(jnp.where(stays, len(path), places), reverse=True)
    ahead = at(onward, jnp.minimum(leaves, len(path) - 1))
    where = jnp.where(on_path, stops, nodes)
    # Nodes on a path differ, but those behind its end are all dropped at the same place.
    return replace(tree, ahead=tree.ahead.at[where].set(ahead, mode="drop"))


def _discounts(depths: int, discount: float) -> np.ndarray:
    """[D, D] float32, what a gain at one place is worth at another before it."""
    later = np.arange(depths)[:, None] - np.arange(depths)
    return np.where(later >= 0, discount ** np.maximum(later, 0), 0.0).astype(np.float32)


def _add(counts: jax.Array, where: jax.Array, more: jax.Array) -> jax.Array:
    """[M, A] with more [D] at places [D] in its flat order; places beyond the last are dropped."""
    return counts.reshape(-1).at[where].add(more, mode="drop").reshape(counts.shape)
