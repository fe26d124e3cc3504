"""The search on random problems: against mctx, and what must hold in every tree."""

from functools import cache, partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from hopplus.config import SearchConfig
from hopplus.planning.search import Found, search
from hopplus.planning.tree import Leaf, Reached, Tree, puct
from tiny_hop_plus import jit

ROOTS = 5
STATES, ACTIONS, DRAWS = 400, 4, 8
MOST = 200  # simulations


class Tables(eqx.Module):
    """A random problem; draw 0 is what happens where there is no chance."""

    after: jax.Array  # [STATES, A, DRAWS] int32 state
    reward: jax.Array  # [STATES, A, DRAWS] float32
    ended: jax.Array  # [STATES, A, DRAWS] bool
    prior: jax.Array  # [STATES, A] float32 logits, -inf where illegal
    value: jax.Array  # [STATES] float32

    def leaf(self, state: jax.Array) -> Leaf:
        return Leaf(jax.nn.log_softmax(self.prior[state]), self.value[state])

    def recurrent_fn(self, state: jax.Array, action: jax.Array, draw: jax.Array) -> Reached:
        edge = (state, action, draw)
        after = self.after[edge]
        return Reached(after, self.leaf(after), self.reward[edge], self.ended[edge])


def tables(ends: float) -> Tables:
    """With a share of ends; a fifth of all actions is illegal, never all of a state's."""
    rng = np.random.default_rng(7)
    edges = (STATES, ACTIONS, DRAWS)
    illegal = rng.random((STATES, ACTIONS)) < 0.2
    illegal[np.arange(STATES), rng.integers(0, ACTIONS, STATES)] = False
    return Tables(
        jnp.asarray(rng.integers(0, STATES, edges), jnp.int32),
        jnp.asarray(rng.normal(size=edges), jnp.float32),
        jnp.asarray(rng.random(edges) < ends),
        jnp.asarray(np.where(illegal, -np.inf, rng.normal(size=(STATES, ACTIONS))), jnp.float32),
        jnp.asarray(rng.normal(size=STATES), jnp.float32),
    )


def found_by(problem: Tables, draws: jax.Array, config: SearchConfig) -> Found:
    """Searches from the first states, side by side, with draws [ROOTS, S]."""

    def grow(state: jax.Array, draws: jax.Array) -> Found:
        return search(problem.recurrent_fn, state, problem.leaf(state), draws, config)

    found: Found = jax.tree.map(np.asarray, jit(jax.vmap(grow))(jnp.arange(ROOTS), draws))
    return found


@cache
def mctx_grower(values: str) -> Any:
    """A function to grow trees by mctx, compiled once for all settings but this.

    An end is to mctx an edge whose discount is 0, behind which it goes on.
    """

    def raw(tree: Any, node: jax.Array) -> jax.Array:
        visits, mean = tree.children_visits[node], tree.node_values[node]
        illegal = jnp.isinf(tree.children_prior_logits[node])
        return jnp.where(illegal, -jnp.inf, jnp.where(visits > 0, tree.qvalues(node), mean))

    @jit
    def grow(
        problem: Tables,
        simulations: int,
        exploration: float,
        discount: float,
        depth: int,
    ) -> Any:
        def step(_: Any, key: Any, action: jax.Array, state: jax.Array) -> Any:
            reached = jax.vmap(problem.recurrent_fn)(state, action, jnp.zeros_like(action))
            output = mctx.RecurrentFnOutput(
                reward=reached.reward,
                discount=jnp.where(reached.ended, 0.0, discount),
                prior_logits=reached.leaf.prior,
                value=reached.leaf.value,
            )
            return output, reached.node

        select = partial(
            mctx.muzero_action_selection,
            pb_c_init=exploration,
            pb_c_base=1e9,  # for its logarithm to vanish
            qtransform=mctx.qtransform_by_parent_and_siblings if values == "scaled" else raw,
        )
        states = jnp.arange(ROOTS)
        leaf = jax.vmap(problem.leaf)(states)
        return mctx.search(
            (),
            jax.random.key(0),
            root=mctx.RootFnOutput(prior_logits=leaf.prior, value=leaf.value, embedding=states),
            recurrent_fn=step,
            root_action_selection_fn=lambda *at: select(*at, 0),
            interior_action_selection_fn=select,
            num_simulations=MOST,
            max_depth=depth,
            loop_fn=lambda low, _, *loop: jax.lax.fori_loop(low, simulations, *loop),
        )

    return grow


@pytest.mark.parametrize(
    ("simulations", "exploration", "discount", "depth", "values", "ends"),
    [
        (1, 1.0, 0.95, 0, "scaled", 0.0),
        (2, 3.0, 0.95, 16, "raw", 0.0),
        (60, 1.0, 0.95, 0, "scaled", 0.0),
        (60, 3.0, 0.0, 60, "scaled", 0.0),
        (60, 1.0, 0.95, 3, "raw", 0.0),
        (200, 0.5, 1.0, 0, "raw", 0.0),
        (200, 3.0, 0.95, 3, "scaled", 0.0),
        (60, 0.5, 1.0, 60, "scaled", 0.2),
        (200, 3.0, 0.95, 0, "scaled", 0.2),
        (200, 3.0, 0.95, 4, "raw", 0.2),
    ],
)
def test_trees_are_those_of_mctx(
    simulations: int,
    exploration: float,
    discount: float,
    depth: int,
    values: Literal["scaled", "raw"],
    ends: float,
) -> None:
    """Node by node: in both a node's number is that of the simulation that found it."""
    config = SearchConfig(exploration=exploration, discount=discount, depth=depth, values=values)
    problem = tables(ends)
    found = found_by(problem, jnp.zeros((ROOTS, simulations), jnp.int32), config)
    nodes = simulations + 1
    other = mctx_grower(values)(problem, simulations, exploration, discount, depth or MOST)
    tree, other = found.tree, jax.tree.map(lambda leaf: np.array(leaf)[:, :nodes], other)
    # The nodes of mctx that are not behind an end: a parent's number is below its child's.
    ended = np.asarray(problem.ended)[other.embeddings, :, 0]  # [ROOTS, M, A]
    alive = other.parents >= 0
    alive[:, 0] = True
    for root, node in np.argwhere(other.parents >= 0):
        parent = other.parents[root, node]
        behind = ended[root, parent, other.action_from_parent[root, node]]
        alive[root, node] = alive[root, parent] and not behind
    assert alive.sum() > ROOTS
    if not ends and (depth == 0 or depth >= simulations):
        assert alive.all()

    links = tree.child.reshape(other.children_index.shape)
    theirs = np.where(ended & (other.children_index > 0), nodes, other.children_index)
    np.testing.assert_array_equal(links[alive], np.maximum(theirs, 0)[alive])
    np.testing.assert_array_equal(tree.visits[alive], other.children_visits[alive])
    assert not tree.visits[~alive].any()
    np.testing.assert_array_equal(tree.nodes[alive], other.embeddings[alive])
    taken = alive[..., None] & (tree.visits > 0)
    theirs = other.children_rewards + other.children_discounts * other.children_values
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    close((tree.total / np.maximum(tree.visits, 1))[taken], theirs[taken])

    np.testing.assert_array_equal(found.visits, other.children_visits[:, 0])
    close(found.value, other.node_values[:, 0])
    close(found.values, np.where(taken[:, 0], theirs[:, 0], other.node_values[:, :1]))


@pytest.mark.parametrize("simulations", [1, 9, 120])
@pytest.mark.parametrize(
    "config",
    [
        SearchConfig(exploration=0.5),
        SearchConfig(depth=3, outcomes=2, values="raw", discount=0.8),
    ],
    ids=["deep", "two outcomes"],
)
def test_trees_are_sound(simulations: int, config: SearchConfig) -> None:
    problem = tables(0.15)
    draws = np.random.default_rng(3).integers(0, DRAWS, (ROOTS, simulations))
    tree = found_by(problem, jnp.asarray(draws), config).tree
    score = jit(jax.vmap(jax.vmap(partial(puct, config=config))))
    scores = np.asarray(score(tree.value, tree.prior, tree.visits, tree.total))
    for root in range(ROOTS):
        one = jax.tree.map(lambda leaf, root=root: leaf[root], tree)
        assert one.visits[0].sum() == simulations
        child = one.child[(one.child > 0) & (one.child <= simulations)].tolist()
        assert len(set(child)) == len(child)  # each node is behind one edge alone
        assert not np.delete(one.visits, [0, *child], axis=0).any()
        assert not one.visits[one.prior == 0].any()
        for node in [0, *child]:
            assert_led_to(one, node, problem, draws[root], config)
            if one.depth[node] < one.path.shape[1]:
                assert_added_up(one, node, config)
                assert one.ahead[node] == descended(one, node, scores[root], config)
            else:
                assert not one.visits[node].any()


def assert_led_to(
    tree: Tree, node: int, problem: Tables, draws: np.ndarray, config: SearchConfig
) -> None:
    """A node's path leads to it from the root, the last step as the tables have it."""
    assert tree.depth[node] <= (config.depth or len(draws))
    here, parent, action, edge = 0, 0, 0, 0
    for edge in tree.path[node][: tree.depth[node]].tolist():
        parent, action = divmod(edge // config.outcomes, ACTIONS)
        assert parent == here
        here = int(tree.child[edge])
    assert here == node
    state = tree.nodes[node]
    if node > 0:
        step = (tree.nodes[parent], action, draws[node - 1])
        assert state == np.asarray(problem.after)[step]
        assert tree.reward[edge] == np.asarray(problem.reward)[step]
        assert not np.asarray(problem.ended)[step]
    assert tree.value[node] == np.asarray(problem.value)[state]
    weights = np.exp(np.asarray(problem.prior)[state])
    np.testing.assert_allclose(tree.prior[node], weights / weights.sum(), rtol=1e-4)


def assert_added_up(tree: Tree, node: int, config: SearchConfig) -> None:
    """Visits and returns of a node's actions are those of what is behind them, each in turn."""
    nodes, outcomes = len(tree.value), config.outcomes
    for action, visits in enumerate(tree.visits[node]):
        total: Any = 0.0
        for outcome in range(outcomes):
            edge = (node * ACTIONS + action) * outcomes + outcome
            turns = len(range(outcome, int(visits), outcomes))
            child = tree.child[edge]
            assert (child > 0) == (turns > 0)
            total += turns * tree.reward[edge]
            if 0 < child < nodes and tree.depth[child] == tree.path.shape[1]:
                total += config.worth * turns * tree.value[child]
            elif 0 < child < nodes:
                assert tree.visits[child].sum() == turns - 1
                total += config.worth * (tree.value[child] + tree.total[child].sum())
        np.testing.assert_allclose(tree.total[node, action], total, rtol=1e-4, atol=1e-4)


def descended(tree: Tree, node: int, scores: np.ndarray, config: SearchConfig) -> int:
    """The edge at which a descent by scores [M, A] ends, step by step."""
    while True:
        action = int(scores[node].argmax())
        transition = int(tree.visits[node, action]) % config.outcomes
        edge = (node * ACTIONS + action) * config.outcomes + transition
        child = int(tree.child[edge])
        if child in (0, len(tree.value)) or tree.depth[node] + 1 == tree.path.shape[1]:
            return edge
        node = child
