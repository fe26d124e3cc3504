"""The product of dense layers and its gradients, beside JAX's own."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.models.product import product, weight_gradient

Product = Callable[[jax.Array, jax.Array], jax.Array]


def plain(x: jax.Array, weight: jax.Array) -> jax.Array:
    return x @ weight


def mapped(one: Product, axes: tuple[tuple[int | None, int | None], ...]) -> Product:
    for each in axes:
        one = jax.vmap(one, each)
    return one


@pytest.mark.parametrize(
    ("x", "weight", "axes"),
    [
        ((5,), (5, 3), ()),
        ((4, 5), (5, 3), ()),  # several rows without any vmap
        ((4, 5), (5, 3), ((0, None),)),
        ((5, 4), (5, 3), ((1, None),)),
        ((2, 4, 5), (5, 3), ((0, None), (0, None))),
        ((2, 4, 5), (2, 5, 3), ((0, None), (0, 0))),  # rows of sets
        ((2, 6, 4, 5), (2, 5, 3), ((0, None), (0, None), (0, 0))),
        ((6, 2, 4, 5), (2, 5, 3), ((0, None), (0, 0), (0, None))),  # and more rows of all sets
        ((4, 5), (2, 5, 3), ((0, None), (None, 0))),  # the same rows for all sets
        ((5,), (5, 3, 2), ((None, 2),)),
        ((3, 2, 4, 5), (3, 2, 5, 3), ((0, None), (0, 0), (0, 0))),  # sets of seeds
        ((4, 80), (80, 3), ((0, None),)),  # a wide layer that says little
        ((4, 80), (80, 20), ((0, None),)),  # and one that is left to XLA
        ((4, 5), (5, 1), ((0, None),)),
        ((0, 5), (5, 3), ((0, None),)),
        ((4, 0), (0, 3), ((0, None),)),
        ((4, 5), (5, 0), ((0, None),)),
    ],
)
def test_it_and_its_gradients_are_those_of_the_operator(
    x: tuple[int, ...], weight: tuple[int, ...], axes: Any
) -> None:
    keys = jax.random.split(jax.random.key(0))
    given = jax.random.normal(keys[0], x), jax.random.normal(keys[1], weight)

    def found(one: Product) -> Any:
        many = mapped(one, axes)
        slopes = jax.grad(lambda *given: jnp.sin(many(*given)).sum(), (0, 1))
        return many(*given), slopes(*given), jax.jit(slopes)(*given)

    for ours, theirs in zip(
        jax.tree.leaves(found(product)), jax.tree.leaves(found(plain)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_slopes_of_each_set_and_slopes_of_slopes() -> None:
    x, weights = (jax.random.normal(jax.random.key(1), shape) for shape in ((2, 4, 5), (2, 5, 3)))

    def slope(one: Product) -> Any:
        def of_set(weight: jax.Array, rows: jax.Array) -> jax.Array:
            over_rows = jax.vmap(one, (0, None))
            return jnp.sin(over_rows(rows, weight)).sum()

        return jax.vmap(jax.grad(of_set))

    def second(one: Product) -> Any:
        return jax.grad(lambda weights: (slope(one)(weights, x) ** 2).sum())(weights)

    np.testing.assert_allclose(slope(product)(weights, x), slope(plain)(weights, x), rtol=1e-4)
    np.testing.assert_allclose(second(product), second(plain), rtol=1e-3, atol=1e-4)


def test_a_gradient_worked_by_hand() -> None:
    x = jnp.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
    slope = jnp.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [5.0, 0.0, 0.0]])
    expected = [[1, 3, 2], [2 + 5, 4, 4]]
    np.testing.assert_array_equal(weight_gradient(x, slope), expected)
    np.testing.assert_array_equal(weight_gradient(x[None], slope[None], 1), [expected])


@pytest.mark.parametrize(("x", "weight"), [((4, 6), (5, 3)), ((5,), (2, 5, 3)), ((), (5, 3))])
def test_what_does_not_fit_is_refused_at_once(x: tuple[int, ...], weight: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="no product of"):
        jax.eval_shape(product, jnp.zeros(x), jnp.zeros(weight))


def test_narrow_layers_alone_are_turned() -> None:
    def barriers(size_in: int, size_out: int) -> int:
        shapes = jnp.zeros((8, size_in)), jnp.zeros((8, size_out))
        return str(jax.make_jaxpr(weight_gradient)(*shapes)).count("optimization_barrier")

    assert [barriers(64, 64), barriers(200, 16), barriers(65, 17), barriers(64, 1)] == [2, 2, 0, 0]


def test_elsewhere_it_is_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    given = jnp.ones((2, 3)), jnp.ones((3, 4))

    def primitives() -> str:
        return str(jax.make_jaxpr(lambda *given: product(*given))(*given))  # traced anew

    assert "hopplus_product" in primitives()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "hopplus_product" not in primitives()
