"""The product with the weights of a dense layer, whose gradient a CPU finds quickly.

The gradient of weights is x^T dy, summed over the rows of a batch. XLA hands it to libraries that
read both by columns on a CPU, which for narrow layers takes two to eight times as long as to turn
dy first and read that by rows. Here is the product as a primitive of JAX, which keeps the rows of
all `vmap`s together, so that its transpose knows that they are rows.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

NARROW = 64  # numbers that a layer reads: with many more, what XLA does by itself is as quick
FEW = 16  # numbers that a layer says: to turn so few is cheap, however many it reads


def product(x: jax.Array, weight: jax.Array) -> jax.Array:
    """[..., out] x [..., in] @ weight [in, out]."""
    if jax.default_backend() != "cpu":
        return x @ weight
    kind = jnp.result_type(x, weight)
    found: jax.Array = _product.bind(x.astype(kind), weight.astype(kind), sets=0)
    return found


def _dot(x: jax.Array, weight: jax.Array, *, sets: int) -> jax.Array:
    """[*sets, ..., out] of x [*sets, ..., in] and weights [*sets, in, out]."""
    own = tuple(range(sets))
    return jax.lax.dot_general(x, weight, (((x.ndim - 1,), (sets,)), (own, own)))


def weight_gradient(x: jax.Array, slope: jax.Array, sets: int = 0) -> jax.Array:
    """[*sets, in, out] the sum over rows of x [*sets, ..., in] times slope [*sets, ..., out]."""
    shape = (*x.shape[:sets], math.prod(x.shape[sets:-1]))
    rows, slopes = (one.reshape(*shape, one.shape[-1]) for one in (x, slope))
    size_in, size_out = rows.shape[-1], slopes.shape[-1]
    own = tuple(range(sets))
    if size_out == 1 or not (size_in <= NARROW or size_out <= FEW):
        return jax.lax.dot_general(rows, slopes, (((sets,), (sets,)), (own, own)))
    # Without the barriers XLA undoes the turning, and turns the product instead.
    turned = jax.lax.optimization_barrier(jnp.swapaxes(slopes, -1, -2))
    found = jax.lax.dot_general(turned, rows, (((sets + 1,), (sets,)), (own, own)))
    return jnp.swapaxes(jax.lax.optimization_barrier(found), -1, -2)


def _shape(x: Any, weight: Any, *, sets: int) -> Any:
    if weight.ndim != sets + 2 or x.shape[-1:] != weight.shape[-2:-1]:
        raise TypeError(f"no product of {x.shape} with weights {weight.shape}")
    return x.update(shape=(*x.shape[:-1], weight.shape[-1]), weak_type=False)


def _of_many(given: Any, axes: Any, *, sets: int) -> tuple[jax.Array, int]:
    """Where only x comes many times, they are more rows; else more sets."""
    (x, weight), (axis_x, axis_weight) = given, axes
    if axis_weight is None:
        x = jnp.moveaxis(x, axis_x, sets)
        return _product.bind(x, weight, sets=sets), sets
    weight = jnp.moveaxis(weight, axis_weight, 0)
    if axis_x is None:
        x = jnp.broadcast_to(x, (len(weight), *x.shape))
    else:
        x = jnp.moveaxis(x, axis_x, 0)
    return _product.bind(x, weight, sets=sets + 1), 0


def _back_to_x(slope: jax.Array, x: Any, weight: jax.Array, *, sets: int) -> jax.Array:
    found: jax.Array = _product.bind(slope, jnp.swapaxes(weight, -1, -2), sets=sets)
    return found


def _back_to_weight(slope: jax.Array, x: jax.Array, weight: Any, *, sets: int) -> jax.Array:
    return weight_gradient(x, slope, sets)


_product = Primitive("hopplus_product")
_product.def_impl(jax.jit(_dot, static_argnames="sets"))
_product.def_abstract_eval(_shape)
mlir.register_lowering(_product, mlir.lower_fun(_dot, multiple_results=False))
batching.primitive_batchers[_product] = _of_many
ad.defbilinear(_product, _back_to_x, _back_to_weight)
