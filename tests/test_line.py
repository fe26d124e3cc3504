"""The line of play that a tree has looked at most, where it is known."""

from typing import Any

import jax
import jax.numpy as jnp

from hopplus.config import SearchConfig
from hopplus.planning.root import principal_variation
from hopplus.planning.search import search
from hopplus.planning.tree import Leaf, Reached
from tiny_hop_plus import jit


def test_the_most_visited_line() -> None:
    """A walk of three steps of which 2, 1, 2 is worth most; a node's number is the way to it."""
    way = jnp.array([2, 1, 2])

    def expand(node: jax.Array, action: jax.Array, chance: jax.Array) -> Reached:
        depth = jnp.where(node < 10, 0, jnp.where(node < 100, 1, 2))
        right = (action == way[depth]).astype(jnp.float32)
        leaf = Leaf(jnp.log(jnp.full(3, 1 / 3)), jnp.float32(0))
        return Reached(10 * node + action, leaf, right, depth == 2)

    even = Leaf(jnp.log(jnp.full(3, 1 / 3)), jnp.float32(0))
    config = SearchConfig(exploration=0.5, outcomes=2)

    @jit
    def both() -> Any:
        found = search(expand, jnp.int32(1), even, jnp.zeros((60, 1)), config)
        best = principal_variation(found.tree, found.visits.argmax(), config.outcomes, 5)
        return found, best, principal_variation(found.tree, jnp.int32(0), config.outcomes, 1)

    found, (nodes, there), (first, visited) = both()
    assert there.tolist() == [True, True, True, False, False]
    assert found.tree.nodes[nodes][:3].tolist() == [12, 121, 1212]
    assert (found.tree.nodes[first[0]], bool(visited[0])) == (10, True)
