"""Monte-Carlo tree search for one seat (Coulom 2006; PUCT as in Silver et al. 2017).

Written for one tree; `vmap` grows many side by side. A simulation is a fixed handful of operations
on its arrays (`tree.py`), without a loop: scores change on its own path only, where the edges ahead
are found anew, all at once. A descent follows the path as far as the best actions do, and from
where it leaves the path the edge ahead is known. On a GPU one kernel does the same
(`search_kernel.py`).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import SearchConfig
from hopplus.kernels import on_gpu
from hopplus.lookup import at
from hopplus.planning.packing import Packing
from hopplus.planning.search_kernel import Growing, TreeKernel, kernel_for
from hopplus.planning.tree import Leaf, Node, Reached, RecurrentFn, Tree, mean_value, plant, puct

PART = 8  # nodes of a path whose scores are found at a time


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
    tree = grown(
        recurrent_fn, plant(root, leaf, len(jax.tree.leaves(chance)[0]), config), chance, config
    )
    value = mean_value(tree.value[0], tree.visits[0], tree.total[0])
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


def grown(recurrent_fn: RecurrentFn, tree: Tree, chance: Any, config: SearchConfig) -> Tree:
    """A tree of a root alone after [S, ...] simulations."""
    given = jnp.arange(1, len(jax.tree.leaves(chance)[0]) + 1), chance
    if found := kernel_for(tree, config):
        return _grown_by(*found, recurrent_fn, tree, given)

    def simulate(tree: Tree, now: tuple[jax.Array, Any]) -> tuple[Tree, None]:
        return _grow(recurrent_fn, tree, *now, config), None

    return jax.lax.scan(simulate, tree, given)[0]


def _grown_by(
    kernel: TreeKernel,
    packing: Packing,
    recurrent_fn: RecurrentFn,
    tree: Tree,
    given: tuple[jax.Array, Any],
) -> Tree:
    """The same by a kernel."""

    def simulate(growing: Growing, now: tuple[jax.Array, Any]) -> tuple[Growing, None]:
        new, chance = now
        action = growing.edge[0] // kernel.config.outcomes % kernel.actions
        with jax.named_scope("expand"):
            reached = recurrent_fn(packing.unpack(growing.node), action, chance)
            node = packing.pack(reached.node)
        with jax.named_scope("backup"):
            return kernel.grow(growing, new, node, reached), None

    growing = jax.lax.scan(simulate, kernel.begin(tree, packing), given)[0]
    return kernel.tree(growing, packing)


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
    edges = _best_edges(tree, stops, depth, config)
    child = at(tree.child, edges)
    ends = (child == 0) | (child == nodes) | (places == len(path) - 1)
    onward = jnp.where(ends, edges, at(tree.ahead, jnp.where(ends, 0, child)))
    stays = (places < depth) & (child == jnp.roll(stops, -1))
    leaves = jax.lax.cummin(jnp.where(stays, len(path), places), reverse=True)
    ahead = at(onward, jnp.minimum(leaves, len(path) - 1))
    where = jnp.where(on_path, stops, nodes)
    # Nodes on a path differ, but those behind its end are all dropped at the same place.
    return replace(tree, ahead=tree.ahead.at[where].set(ahead, mode="drop"))


def _best_edges(tree: Tree, stops: jax.Array, depth: jax.Array, config: SearchConfig) -> jax.Array:
    """[D] the best edge of each node along a path [D]; any edge behind its end.

    Paths are much shorter than they may be, and scores are most of the work: on a CPU they are
    found part by part, as far as the longest path goes. A GPU would wait for each part.
    """
    most, actions = len(stops), tree.prior.shape[1]
    size = most if on_gpu() else min(PART, most)

    def find(first: jax.Array, edges: jax.Array) -> jax.Array:
        here = jax.lax.dynamic_slice_in_dim(stops, first, size)
        value, prior, visits, total = (
            at(leaf, here) for leaf in (tree.value, tree.prior, tree.visits, tree.total)
        )
        scores = jax.vmap(puct, in_axes=(0, 0, 0, 0, None))(value, prior, visits, total, config)
        best = scores.argmax(axis=1)
        turn = jnp.take_along_axis(visits, best[:, None], axis=1)[:, 0].astype(jnp.int32)
        found = (here * actions + best) * config.outcomes + turn % config.outcomes
        return jax.lax.dynamic_update_slice_in_dim(edges, found, first, 0)

    if size == most:
        return find(jnp.int32(0), jnp.zeros_like(stops))

    def more(now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        first, edges = now
        return first + size, find(jnp.minimum(first, most - size), edges)

    first = jnp.int32(0), jnp.zeros_like(stops)
    return jax.lax.while_loop(lambda now: now[0] <= depth, more, first)[1]


def _discounts(depths: int, discount: float) -> np.ndarray:
    """[D, D] float32, what a gain at one place is worth at another before it."""
    later = np.arange(depths)[:, None] - np.arange(depths)
    return np.where(later >= 0, discount ** np.maximum(later, 0), 0.0).astype(np.float32)


def _add(counts: jax.Array, where: jax.Array, more: jax.Array) -> jax.Array:
    """[M, A] with more [D] at places [D] in its flat order; places beyond the last are dropped."""
    return counts.reshape(-1).at[where].add(more, mode="drop").reshape(counts.shape)
