"""The search: numbers worked by hand, and a maze. Random problems are in test_search_oracle.py."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError, SearchConfig
from hopplus.planning.search import Found, search
from hopplus.planning.tree import Leaf, Reached, puct
from tiny_hop_plus import jit

ILLEGAL = -np.inf
EVEN = Leaf(jnp.array([ILLEGAL, *[np.log(1 / 3)] * 3]), jnp.float32(0))  # three of four are legal


def alive(found: Found) -> np.ndarray:
    """Numbers of the nodes that edges lead to, and of the root."""
    child = np.asarray(found.tree.child)
    return np.unique([0, *child[child < len(found.tree.value)]])


# Selection


def test_scores_by_hand() -> None:
    """Legal actions are worth 1, 0.5 and not known; the node's mean is (0 + 2 + 0.5) / 4."""

    def scores(**settings: Any) -> jax.Array:
        visits, total = jnp.array([0.0, 2.0, 1.0, 0.0]), jnp.array([0.0, 2.0, 0.5, 0.0])
        return puct(EVEN.value, jnp.exp(EVEN.prior), visits, total, SearchConfig(**settings))

    expected = [ILLEGAL, 1 + 2 / 9, 0.5 + 1 / 3, 0.625 + 2 / 3]
    np.testing.assert_allclose(scores(values="raw"), expected, rtol=1e-6)
    expected = [ILLEGAL, 1 + 2 / 9, 0 + 1 / 3, 0 + 2 / 3]
    np.testing.assert_allclose(scores(values="scaled"), expected, rtol=1e-6)
    expected = [ILLEGAL, 1 + 6 / 9, 0 + 3 / 3, 0 + 6 / 3]
    np.testing.assert_allclose(scores(exploration=3.0), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "simulations", "visits", "value"),
    [
        # The best is the first of three alike. Then there are
        # 1 + sqrt(2)/6 = 1.24 against 1/2 + sqrt(2)/3 = 0.97,
        # 1 + sqrt(3)/9 = 1.19 against 2/3 + sqrt(3)/3 = 1.24,
        # 1 + 2/9 = 1.22, 1/2 + 1/3 and 5/8 + 2/3 = 1.29,
        # 1 + sqrt(5)/9 = 1.25 against 1/2 + sqrt(5)/6 = 0.87 and sqrt(5)/6 = 0.37.
        ("raw", 5, [0, 3, 1, 1], 3.5 / 6),
        # Others are 0 until sqrt(n)/3 > 1 + sqrt(n)/3/n, that is n > 10: they are looked at in the
        # 11th and 12th simulation, the second being 0 again, and the best in the 13th.
        ("scaled", 13, [0, 11, 1, 1], 11.5 / 14),
    ],
)
def test_a_bandit(
    values: Literal["scaled", "raw"], simulations: int, visits: list[float], value: float
) -> None:
    """Arms of 1, 0.5 and 0; the best of all, of 9, is illegal."""
    arms = jnp.array([9.0, 1.0, 0.5, 0.0])
    config = SearchConfig(values=values)

    def pull(root: jax.Array, arm: jax.Array, chance: jax.Array) -> Reached:
        return Reached(root, EVEN, arms[arm], jnp.array(True))

    found = jit(lambda: search(pull, jnp.zeros(2), EVEN, jnp.zeros(simulations), config))()
    np.testing.assert_array_equal(found.visits, visits)
    np.testing.assert_allclose(found.value, value, rtol=1e-6)
    expected = np.where(np.array(visits) > 0, arms, value)
    np.testing.assert_allclose(found.values, expected, rtol=1e-6)
    assert (alive(found) == 0).all()  # every arm is an end


# Chance


@pytest.mark.parametrize(
    ("outcomes", "depth", "goes_on", "ends"),
    [
        (1, 1, 6 * 1.0, 1.0),
        (3, 1, 6 * 15 / 8, 15 / 8),  # 1, 2, 3, 1, 2, 3, 1, 2
        (1, 2, (6 + 7 * 7) / 8, 1.0),  # 1 + 5, then 1 + (2 + 10)/2 again and again
        # 1 + 5, 2 + 10, 1 + (3 + 15)/2, 2 + (4 + 20)/2, 1 + (5 + 25)/2, 2 + (6 + 30)/2, and what
        # was drawn third and fourth again
        (2, 2, (6 + 12 + 10 + 14 + 16 + 20 + 10 + 14) / 8, 1.5),
    ],
)
def test_draws_by_hand(outcomes: int, depth: int, goes_on: float, ends: float) -> None:
    """One action, whose reward is drawn 1 to 8, with a value of ten times as much behind it.

    What was drawn first stays for each of the outcomes told apart, of ends too.
    """
    config = SearchConfig(outcomes=outcomes, depth=depth, discount=0.5)
    only = jnp.array([ILLEGAL, 0.0])

    def recurrent_fn(node: Any, action: jax.Array, chance: Any) -> Reached:
        draw = chance["draw"]
        return Reached(node, Leaf(only, 10 * draw), draw, node["ends"])

    def grow(ends: jax.Array) -> Found:
        chance = {"draw": jnp.arange(1.0, 9.0)}
        return search(recurrent_fn, {"ends": ends}, Leaf(only, jnp.float32(0)), chance, config)

    found = jit(jax.vmap(grow))(jnp.array([False, True]))
    np.testing.assert_array_equal(found.visits, [[0, 8]] * 2)
    np.testing.assert_allclose(found.values[:, 1], [goes_on, ends], rtol=1e-6)
    np.testing.assert_allclose(found.value, [goes_on * 8 / 9, ends * 8 / 9], rtol=1e-6)


# Ends and depth


def test_nothing_is_looked_at_behind_an_end() -> None:
    """Of two actions one ends with 1; the other leads to a hall, where the only one ends with 2."""
    root, hall, behind = range(3)
    after = jnp.array([[behind, hall], [root, behind], [behind, behind]])
    reward = jnp.array([[1.0, 0.0], [0.0, 2.0], [1e9, 1e9]])
    prior = jnp.array([[np.log(0.5)] * 2, [ILLEGAL, 0.0], [np.log(0.5)] * 2])
    value = jnp.array([0.0, 0.0, 1e9])
    config = SearchConfig(discount=0.5, exploration=5.0)

    def recurrent_fn(node: jax.Array, action: jax.Array, chance: jax.Array) -> Reached:
        to = after[node, action]
        return Reached(to, Leaf(prior[to], value[to]), reward[node, action], to == behind)

    start = Leaf(prior[root], value[root])
    found = jit(lambda: search(recurrent_fn, jnp.int32(root), start, jnp.zeros(20), config))()
    assert found.visits.min() > 4
    often = float(found.visits[1])
    np.testing.assert_allclose(found.values, [1.0, (often - 1) / often], rtol=1e-6)
    np.testing.assert_allclose(found.value, (20 - 1) / 21, rtol=1e-6)
    nodes = alive(found)
    assert np.asarray(found.tree.nodes)[nodes].tolist() == [root, hall]
    assert found.tree.visits[nodes[1]].tolist() == [0, often - 1]


def test_one_step_ahead() -> None:
    reward, value = jnp.array([7.0, 1.0, 0.0, -1.0]), jnp.array([7.0, 0.0, 4.0, 4.0])
    config = SearchConfig(depth=1, discount=0.5, exploration=3.0)

    def recurrent_fn(node: jax.Array, action: jax.Array, chance: jax.Array) -> Reached:
        leaf = Leaf(EVEN.prior, value[action] + 100 * node)
        return Reached(node + 1, leaf, reward[action] + 100 * node, jnp.array(False))

    found = jit(lambda: search(recurrent_fn, jnp.int32(0), EVEN, jnp.zeros(30), config))()
    assert found.visits[1:].min() > 1
    assert found.visits.sum() == 30
    np.testing.assert_allclose(found.values[1:], [1.0, 2.0, 1.0], rtol=1e-6)
    assert len(alive(found)) == 4
    assert found.tree.depth.max() == 1
    assert not found.tree.visits[1:].any()


def test_a_corridor_by_hand() -> None:
    """Each step gives 1 and only three are looked at: 1, 1 + 1/2, and eight times 1 + 1/2 + 1/4."""
    config = SearchConfig(depth=3, discount=0.5)
    leaf = Leaf(jnp.zeros(1), jnp.float32(0))

    def recurrent_fn(node: jax.Array, action: jax.Array, chance: jax.Array) -> Reached:
        return Reached(node + 1, leaf, jnp.float32(1), jnp.array(False))

    found = jit(lambda: search(recurrent_fn, jnp.int32(0), leaf, jnp.zeros(10), config))()
    np.testing.assert_allclose(found.values, [(1 + 1.5 + 8 * 1.75) / 10], rtol=1e-6)
    assert alive(found).tolist() == [0, 1, 2, 3]
    for counted in (found.tree.depth, found.tree.nodes):
        assert counted[:4].tolist() == [0, 1, 2, 3]
    assert found.tree.depth.max() == 3
    assert found.tree.visits[:4, 0].tolist() == [10, 9, 8, 0]


# A maze

MAZE = """
. . . # .
. # . . .
. # # # .
. . . . X
"""
CELLS = MAZE.split()
WIDTH, EXIT = 5, len(CELLS) - 1
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def moved(cell: int, move: tuple[int, int]) -> int:
    """The cell that a move leads to, the same where there is a wall."""
    row, column = cell // WIDTH + move[0], cell % WIDTH + move[1]
    inside = 0 <= row < len(CELLS) // WIDTH and 0 <= column < WIDTH
    to = row * WIDTH + column
    return to if inside and CELLS[to] != "#" else cell


def ways() -> tuple[np.ndarray, np.ndarray]:
    """[cells, 4] cell after a move, and [cells] steps from each to the exit, breadth first."""
    after = np.array([[moved(cell, move) for move in MOVES] for cell in range(len(CELLS))])
    steps = np.full(len(CELLS), -1)
    steps[EXIT], todo = 0, [EXIT]
    for cell in todo:
        for near in after[cell]:  # moves can be gone back
            if steps[near] < 0:
                steps[near] = steps[cell] + 1
                todo.append(near)
    return after, steps


def in_maze(config: SearchConfig, simulations: int, cells: np.ndarray) -> Found:
    """What is found from each of some cells; 1 is to be had at the exit, and walls are illegal."""
    after = jnp.asarray(ways()[0])

    def leaf(cell: jax.Array) -> Leaf:
        legal = after[cell] != cell
        return Leaf(jnp.where(legal, -jnp.log(legal.sum()), ILLEGAL), jnp.float32(0))

    def recurrent_fn(cell: jax.Array, action: jax.Array, chance: jax.Array) -> Reached:
        to = after[cell, action]
        out = to == EXIT
        return Reached(to, leaf(to), out.astype(jnp.float32), out)

    grow = jax.vmap(
        lambda cell: search(recurrent_fn, cell, leaf(cell), jnp.zeros(simulations), config)
    )
    found: Found = jax.tree.map(np.asarray, jit(grow)(jnp.asarray(cells)))
    return found


def test_shortest_ways_out_of_a_maze() -> None:
    after, steps = ways()
    cells = np.flatnonzero(steps > 0)
    assert len(cells) == 14
    assert steps.max() == 7
    config = SearchConfig(discount=0.9, exploration=0.5, depth=16)
    found = in_maze(config, 4000, cells)
    legal = after[cells] != cells[:, None]
    assert not found.visits[~legal].any()
    assert (found.visits[legal] > 0).all()
    nearer = steps[after[cells]] == steps[cells, None] - 1  # [cells, 4] on a shortest way
    rows, best = np.arange(len(cells)), np.where(legal, found.values, -1).argmax(axis=1)
    assert nearer[rows, best].all()
    assert nearer[rows, found.visits.argmax(axis=1)].all()
    # A move's value is a mean over what was tried behind it: never above what it is worth to who
    # takes a shortest way from there, and close to it for the best.
    assert (found.values <= 0.9 ** steps[after[cells]] + 1e-5)[legal].all()
    assert (found.values[rows, best] > 0.95 * 0.9 ** (steps[cells] - 1)).all()


def test_an_exit_too_far_away_is_not_found() -> None:
    _, steps = ways()
    cells = np.flatnonzero(steps > 0)
    found = in_maze(SearchConfig(discount=0.9, depth=3), 100, cells)
    np.testing.assert_array_equal(found.value > 0, steps[cells] <= 3)
    assert not found.values[steps[cells] > 3].any()


# Settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"simulations": -1}, "search.simulations is -1 but must be from 0 to 32768"),
        ({"simulations": 2**15 + 1}, "search.simulations is 32769"),
        ({"simulations": 8.0}, "search.simulations is 8.0 but must be a whole number"),
        ({"kind": "bush"}, "search.kind is 'bush' but must be tree or one-step"),
        ({"kind": "one-step", "choice": "visits"}, "search.choice is 'visits' but must be values"),
        ({"world": "flat"}, "search.world is 'flat' but must be true or learned"),
        ({"infer_every": -1}, "search.infer-every is -1 but must be from 0 to 1024"),
        ({"trees": 0}, "search.trees is 0 but must be from 1 to 1024"),
        ({"depth": -1}, "search.depth is -1 but must be from 0 to 1024"),
        ({"depth": True}, "search.depth is True but must be a whole number"),
        ({"outcomes": 1025}, "search.outcomes is 1025 but must be from 1 to 1024"),
        ({"discount": 1.01}, "search.discount is 1.01 but must be from 0 to 1"),
        ({"discount": float("nan")}, "search.discount is nan"),
        ({"noise": -0.1}, "search.noise is -0.1 but must be from 0 to 1"),
        ({"noise_alpha": 0.0}, "search.noise-alpha is 0.0 but must be above 0"),
        ({"noise_alpha": float("inf")}, "search.noise-alpha is inf"),
        ({"exploration": -1.0}, "search.exploration is -1.0 but must be from 0 to 1000000"),
        ({"exploration": float("inf")}, "search.exploration is inf"),
        ({"temperature": float("nan")}, "search.temperature is nan but must be from 0 to 1000000"),
        ({"values": "plain"}, "search.values is 'plain' but must be scaled or raw"),
        ({"choice": "best"}, "search.choice is 'best' but must be values or visits"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        SearchConfig(**settings)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_tree_is_no_deeper_than_its_game() -> None:
    depths = {(0, 20): 20, (5, 20): 5, (20, 20): 20, (30, 20): 20}
    for (depth, horizon), within in depths.items():
        assert SearchConfig(depth=depth).within(horizon) == SearchConfig(depth=within)
