"""Trees that are grown by one kernel: the same as without it."""

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import SearchConfig
from hopplus.planning import search as module
from hopplus.planning import search_kernel
from hopplus.planning.search_kernel import PLACES, TreeKernel, kernel_for
from hopplus.planning.tree import Leaf, Reached, plant
from test_search_oracle import ACTIONS, DRAWS, ROOTS, tables

SIMULATIONS = 60


def both(monkeypatch: pytest.MonkeyPatch, grow: Any) -> tuple[Any, Any]:
    """What XLA makes of it, and the kernel."""
    plain = jax.jit(lambda: grow())()
    used = []

    def interpreted(*given: Any) -> Any:
        used.append(kernel_for(*given, interpret=True))
        return used[-1]

    monkeypatch.setattr(module, "kernel_for", interpreted)
    found = jax.jit(lambda: grow())()
    assert used
    assert all(used)
    return jax.device_get((plain, found))


@pytest.mark.parametrize("values", ["raw", "scaled"])
@pytest.mark.parametrize(
    ("ends", "depth", "outcomes", "exploration"),
    [(0.0, 5, 1, 1.0), (0.3, 0, 1, 1.0), (0.2, 9, 3, 1.0), (0.0, 0, 1, 0.02)],
)
def test_trees_are_the_same(
    values: Literal["raw", "scaled"],
    ends: float,
    depth: int,
    outcomes: int,
    exploration: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of each tree, node by node, where there are ends, bounds of depth and chance."""
    problem, draws = tables(ends), np.zeros((ROOTS, SIMULATIONS), np.int32)
    if outcomes > 1:
        draws = np.random.default_rng(3).integers(0, DRAWS, draws.shape).astype(np.int32)
    config = SearchConfig(
        simulations=SIMULATIONS,
        depth=depth,
        values=values,
        outcomes=outcomes,
        discount=0.9,
        exploration=exploration,
    )

    def grow() -> Any:
        def one(state: jax.Array, draws: jax.Array) -> Any:
            leaf = problem.leaf(state)
            return module.search(problem.recurrent_fn, state, leaf, draws, config)

        return jax.vmap(one)(jnp.arange(ROOTS), jnp.asarray(draws))

    plain, found = both(monkeypatch, grow)
    assert plain.visits.sum() == ROOTS * SIMULATIONS
    if exploration < 1:  # so that paths are gone up in several parts
        assert plain.tree.depth.max() > PLACES + 4
    for name in ("visits", "values", "value"):
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-5, atol=1e-6)
    one, other = found.tree, plain.tree
    for name in ("nodes", "value", "prior", "visits", "total", "child", "reward", "depth", "ahead"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-5, err_msg=name
        )
    depths = np.arange(one.path.shape[-1]) < one.depth[..., None]  # behind that it may be anything
    np.testing.assert_array_equal(np.where(depths, one.path, 0), np.where(depths, other.path, 0))


def test_nodes_keep_whatever_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of every kind and size, bools, and more than is copied at once."""
    root = {
        "flag": jnp.bool_(True),
        "flags": jnp.zeros((2, 3), bool),
        "many": jnp.zeros(2500),
        "bits": jnp.zeros(3, jnp.uint32),
        "small": jnp.full(5, -128, jnp.int8),
        "step": jnp.int32(0),
        "nothing": jnp.zeros((3, 0)),
    }

    def recurrent_fn(node: Any, action: jax.Array, chance: jax.Array) -> Reached:
        now = 4 * node["step"] + action + 1
        after = {
            "flag": ~node["flag"],
            "flags": node["flags"].at[1, action % 3].set(True),
            "many": node["many"] + now * jnp.arange(2500),
            "bits": node["bits"] * 3 + now.astype(jnp.uint32),
            "small": node["small"] + 1,
            "step": now,
            "nothing": node["nothing"],
        }
        value = jnp.sin(after["many"].sum() * 1e-6) + after["flags"].sum()
        return Reached(after, Leaf(jnp.log(jnp.full(4, 0.25)), value), chance, jnp.bool_(False))

    def grow() -> Any:
        leaf = Leaf(jnp.log(jnp.full(4, 0.25)), jnp.float32(0))
        return module.search(recurrent_fn, root, leaf, jnp.zeros(30), SearchConfig(simulations=30))

    plain, found = both(monkeypatch, grow)
    for name, leaf in plain.tree.nodes.items():
        assert found.tree.nodes[name].dtype == leaf.dtype
        np.testing.assert_allclose(found.tree.nodes[name], leaf, rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(found.visits, plain.visits)


def test_where_there_is_no_gpu_xla_has_it() -> None:
    leaf, config = Leaf(jnp.zeros(ACTIONS), jnp.float32(0)), SearchConfig(simulations=8)
    tree = partial(plant, leaf=leaf, simulations=8, config=config)
    assert kernel_for(tree(jnp.zeros(3)), config) is None
    assert kernel_for(tree(jnp.zeros(3)), config, interpret=True) is not None
    # What has no place in its memory is left to XLA anywhere.
    assert kernel_for(tree(jax.random.key(0)), config, interpret=True) is None


def test_a_gpu_is_given_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowered for one, which takes none to be there: nothing in it is unknown to its compiler, and
    what is compiled to see whether there is room is the kernel that is then taken."""
    tried, taken = [], []

    def lowered(function: Any, *shapes: Any) -> str:
        traced = jax.jit(function).trace(*shapes)
        return traced.lower(lowering_platforms=("cuda",)).as_text()

    def has_room(function: Any, *shapes: Any) -> bool:
        assert "xla.gpu.triton" in lowered(function, *shapes)
        tried.append(shapes)
        return True

    def grown(kernel: TreeKernel, *given: Any) -> Any:
        taken.append(jax.tree.map(jax.typeof, given[:3]))
        return grow(kernel, *given)

    grow = TreeKernel.grow
    search_kernel._has_room.cache_clear()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(search_kernel, "has_room", has_room)
    problem, config = tables(0.1), SearchConfig(simulations=20, outcomes=2)

    def look(state: jax.Array) -> Any:
        """Nodes hold a flag beside the state."""

        def recurrent_fn(node: Any, action: jax.Array, chance: jax.Array) -> Reached:
            reached = problem.recurrent_fn(node[0], action, chance)
            return Reached((reached.node, ~node[1]), reached.leaf, reached.reward, reached.ended)

        root, draws = (state, jnp.bool_(True)), jnp.zeros(20, jnp.int32)
        return module.search(recurrent_fn, root, problem.leaf(state), draws, config)

    with monkeypatch.context() as patched:
        patched.setattr(TreeKernel, "grow", grown)
        jax.eval_shape(look, jnp.int32(0))
    assert "xla.gpu.triton" in lowered(jax.vmap(look), jnp.arange(ROOTS))
    assert len(tried) == 1
    for one, other in zip(jax.tree.leaves(tried[0][:3]), jax.tree.leaves(taken[0]), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
