"""The line of play that a tree has looked at most."""

import jax
import jax.numpy as jnp

from hopplus.planning.search import Tree


def principal_variation(
    tree: Tree, action: jax.Array, outcomes: int, steps: int
) -> tuple[jax.Array, jax.Array]:
    """The nodes [steps] behind the root's `action` and then the most visited ones, and whether
    there are any so deep [steps] bool.

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
