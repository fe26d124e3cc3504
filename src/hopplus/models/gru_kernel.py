"""A gated recurrent unit over a sequence in one kernel, on a GPU.

Of each step of the sequence XLA makes some fifteen kernels, and nine on the way back, which are
too small to take longer than they take to start. Here one kernel goes through all steps with the
memories of some rows, and another goes back through them. What does not wait for the step before,
as the slope of the weights, stays with XLA: it is a few products over all steps.

The loop over steps of `recalled` in `history.py` is what it is held to: both come to the same, but
for rounding.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.experimental import pallas as pl
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from hopplus.devices import spread_by_xla
from hopplus.kernels import has_room, on_gpu, triton_options
from hopplus.models.nets import gated

NARROWEST, WIDEST = 16, 64  # memories; wider ones' weights have no room on the chip
BLOCK = 16  # rows of a program, the fewest that products on the chip take
WARPS = 4
SHARED = 2  # of the arrays that the memories are made of: weight and bias, one of each set


@dataclass(frozen=True)
class GruKernel:
    """For memories of one size."""

    hidden: int
    interpret: bool = False  # by plain operations of JAX, slowly, wherever there is no GPU

    def __call__(
        self,
        weight: jax.Array,
        bias: jax.Array,
        memory: jax.Array,
        given: jax.Array,
        fresh: jax.Array,
        known: jax.Array,
    ) -> jax.Array:
        """[T, H] the memory after each of [T] steps, from a memory [H] before the first.

        `given` [T, 3 H] is what each step brings and `weight` [H, 3 H] and `bias` [3 H] what the
        memory adds to it, for the reset, the update and the candidate, as in `Gru`. Where `fresh`
        [T], it goes on from what is `known` [T, H].
        """
        found: jax.Array = _memories(self, weight, bias, memory, given, fresh, known)
        return found

    def forward(self, *arrays: Any) -> None:
        """One program: the memories of BLOCK rows after every step."""
        weight, bias, memory, given, fresh, known, after = arrays
        place, rows = pl.program_id(0), pl.ds(pl.program_id(1) * BLOCK, BLOCK)
        parts = [pl.ds(k * self.hidden, self.hidden) for k in range(3)]
        weights = [weight[place, :, part] for part in parts]
        biases = [bias[place, part] for part in parts]

        def step(t: jax.Array, before: jax.Array) -> jax.Array:
            anew = fresh[place, rows, t] > 0
            before = jnp.where(anew[:, None], known[place, rows, t, :], before)
            kept = [jnp.dot(before, w) + b for w, b in zip(weights, biases, strict=True)]
            brought = [given[place, rows, t, part] for part in parts]
            now = gated(before, brought, kept)[0]
            after[place, rows, t, :] = now
            return now

        jax.lax.fori_loop(0, given.shape[2], step, memory[place, rows, :])

    def back(self, *arrays: Any) -> None:
        """One program: how the memories of BLOCK rows after every step tell on all that is asked
        later."""
        turned, keep, slopes, fresh, asked, found = arrays
        place, rows = pl.program_id(0), pl.ds(pl.program_id(1) * BLOCK, BLOCK)
        parts = [pl.ds(k * self.hidden, self.hidden) for k in range(3)]
        weights = [turned[place, part, :] for part in parts]
        last = keep.shape[2] - 1

        def step(number: jax.Array, later: jax.Array) -> jax.Array:
            t = last - number
            own = asked[place, rows, t, :] + later
            found[place, rows, t, :] = own
            earlier = own * keep[place, rows, t, :]
            for part, weight in zip(parts, weights, strict=True):
                earlier += jnp.dot(own * slopes[place, rows, t, part], weight)
            return jnp.where((fresh[place, rows, t] > 0)[:, None], 0.0, earlier)

        jax.lax.fori_loop(0, last + 1, step, jnp.zeros((BLOCK, self.hidden)))

    def call(
        self, kernel: Callable[..., None], shared: list[jax.Array], rows: list[jax.Array]
    ) -> jax.Array:
        """[S, R, T, H] what a kernel makes of arrays of each set [S, ...] and those of its rows
        [S, R, ...], of which the last has the steps."""
        sets, count, steps = *rows[0].shape[:2], rows[-1].shape[2]
        more = -count % BLOCK
        rows = [jnp.pad(one, [(0, 0), (0, more), *[(0, 0)] * (one.ndim - 2)]) for one in rows]
        shape = (sets, count + more, steps, self.hidden)
        found: jax.Array = pl.pallas_call(
            kernel,
            grid=(sets, shape[1] // BLOCK),
            out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
            interpret=self.interpret,
            name=f"gru_{kernel.__name__}",
            **({} if self.interpret else triton_options(WARPS)),
        )(*shared, *rows)
        return found[:, :count]


def kernel_for(hidden: int) -> GruKernel | None:
    """That for memories of this size; None where XLA's kernels are to be taken."""
    if not on_gpu() or spread_by_xla():
        return None
    if hidden & (hidden - 1) or not NARROWEST <= hidden <= WIDEST:
        return None
    return GruKernel(hidden) if _fits(GruKernel(hidden)) else None


@cache
def _fits(kernel: GruKernel) -> bool:
    """Whether the chip has room for both ways."""
    h, steps = kernel.hidden, 4
    shapes = [(h, 3 * h), (3 * h,), (h,), (steps, 3 * h), (steps,), (steps, h)]
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    given[4] = jax.ShapeDtypeStruct((steps,), jnp.bool_)

    def slope(*primals: Any) -> Any:
        def total(weight: jax.Array, brought: jax.Array) -> jax.Array:
            found: jax.Array = _memories(kernel, weight, *primals[1:3], brought, *primals[4:])
            return found.sum()

        return jax.grad(total, (0, 1))(primals[0], primals[3])

    return has_room(slope, *given)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _memories(kernel: GruKernel, *given: jax.Array) -> jax.Array:
    weight, bias, memory, brought, fresh, known = given
    found: jax.Array = _forward.bind(
        weight, bias, memory, brought, fresh.astype(jnp.float32), known, kernel=kernel, sets=0
    )
    return found


def _tangent(kernel: GruKernel, given: Any, changes: Any) -> tuple[jax.Array, jax.Array]:
    """How the memories change: by what changes at each step [T], added up over those before it.

    A change of the memory before a step changes the one after it by `keep`, and by `slopes` times
    what it changes of what the memory adds.
    """
    weight, bias, memory, brought, fresh, known = given
    after = _memories(kernel, *given)
    anew = fresh[:, None]
    before = jnp.where(anew, known, jnp.concatenate([memory[None], after[:-1]]))
    kept = before @ weight + bias
    parts = [jnp.split(one, 3, axis=-1) for one in (brought, kept)]
    _, reset, keep, candidate = gated(before, *parts)
    free = (1 - keep) * (1 - candidate**2)
    by_update = (before - candidate) * keep * (1 - keep)
    by_reset = free * parts[1][2] * reset * (1 - reset)
    slopes = jnp.concatenate([by_reset, by_update, free * reset], axis=-1)

    def added(changed: jax.Array) -> jax.Array:
        return sum(jnp.split(slopes * changed, 3, axis=-1))  # type: ignore[return-value]

    by_weight, by_bias, by_memory, by_brought, _, by_known = changes
    moved = jnp.zeros_like(after)
    if not isinstance(by_weight, SymbolicZero):
        moved += added(before @ by_weight)
    if not isinstance(by_bias, SymbolicZero):
        moved += added(jnp.broadcast_to(by_bias, slopes.shape))
    if not isinstance(by_brought, SymbolicZero):
        each = jnp.split(by_brought, 3, axis=-1)
        moved += by_reset * each[0] + by_update * each[1] + free * each[2]
    entered = None
    if not isinstance(by_memory, SymbolicZero):
        entered = jnp.zeros_like(after).at[0].set(jnp.where(fresh[0], 0.0, by_memory))
    if not isinstance(by_known, SymbolicZero):
        entered = jnp.where(anew, by_known, 0.0 if entered is None else entered)
    if entered is not None:
        moved += keep * entered + added(entered @ weight)
    given_on = (weight, keep, slopes, fresh.astype(jnp.float32), moved)
    return after, _propagate.bind(*given_on, kernel=kernel, sets=0, back=False)


_memories.defjvp(_tangent, symbolic_zeros=True)


def _forward_of(*arrays: jax.Array, kernel: GruKernel, sets: int) -> jax.Array:
    """[*sets, ..., T, H] the memories of all rows."""
    shared, rows, shape = _by_rows(arrays, SHARED, sets)
    return kernel.call(kernel.forward, shared, rows).reshape(shape)


def _propagated(*arrays: jax.Array, kernel: GruKernel, sets: int, back: bool) -> jax.Array:
    """[*sets, ..., T, H] how all memories change by what each step moves them, [..., T, H]; or, on
    the way `back`, how what is asked of each [..., T, H] tells on all before it."""
    if not back:  # nothing that learns goes this way
        return _looped(*arrays, sets=sets, back=back)
    shared, rows, shape = _by_rows(arrays, 1, sets)
    turned = [jnp.swapaxes(shared[0], -1, -2)]
    return kernel.call(kernel.back, turned, rows).reshape(shape)


def _looped(*arrays: jax.Array, sets: int, back: bool) -> jax.Array:
    """The same without a kernel, for what has slopes of its own."""
    shared, rows, shape = _by_rows(arrays, 1, sets)
    weight = shared[0][:, None]

    def onwards(change: jax.Array, now: Any) -> tuple[jax.Array, jax.Array]:
        keep, slopes, fresh, moved = now  # [S, R, ...]
        change = jnp.where(fresh[..., None] > 0, 0.0, change)
        added = jnp.split((change[..., None, :] @ weight)[..., 0, :] * slopes, 3, axis=-1)
        change = keep * change + sum(added) + moved
        return change, change

    def backwards(later: jax.Array, now: Any) -> tuple[jax.Array, jax.Array]:
        keep, slopes, fresh, asked = now
        own = asked + later
        each = jnp.concatenate([own] * 3, axis=-1) * slopes
        added = (each[..., None, :] @ jnp.swapaxes(weight, -1, -2))[..., 0, :]
        return jnp.where(fresh[..., None] > 0, 0.0, keep * own + added), own

    steps = tuple(jnp.moveaxis(one, 2, 0) for one in rows)
    step, nothing = backwards if back else onwards, jnp.zeros_like(steps[-1][0])
    found = jax.lax.scan(step, nothing, steps, reverse=back)[1]
    return jnp.moveaxis(found, 0, 2).reshape(shape)


def _by_rows(
    arrays: tuple[jax.Array, ...], shared: int, sets: int
) -> tuple[list[jax.Array], list[jax.Array], tuple[int, ...]]:
    """The first `shared` arrays as [S, ...], the others as [S, R, ...], and the shape of [T, H] of
    all rows."""
    size = math.prod(arrays[0].shape[:sets])
    own = [one.reshape(size, *one.shape[sets:]) for one in arrays[:shared]]
    lead = arrays[-1].ndim - 2  # what comes last is [..., T, H] in both
    rows = [one.reshape(size, -1, *one.shape[lead:]) for one in arrays[shared:]]
    return own, rows, arrays[-1].shape


def _primitive(name: str, function: Callable[..., jax.Array], shared: int) -> Primitive:
    """A function of arrays of which the first `shared` are each set's and the others each row's: it
    keeps the rows of all `vmap`s together, and the sets."""

    def of_many(given: Any, axes: Any, *, sets: int, **others: Any) -> tuple[jax.Array, int]:
        apart = any(axis is not None for axis in axes[:shared])
        to = 0 if apart else sets  # only rows come many times: they are more rows
        size = next(
            one.shape[axis] for one, axis in zip(given, axes, strict=True) if axis is not None
        )

        def moved(one: jax.Array, axis: int | None, is_shared: bool) -> jax.Array:
            if is_shared and not apart:
                return one
            if axis is not None:
                return jnp.moveaxis(one, axis, to)
            return jnp.broadcast_to(
                jnp.expand_dims(one, to), (*one.shape[:to], size, *one.shape[to:])
            )

        each = zip(given, axes, strict=True)
        arrays = [moved(one, axis, number < shared) for number, (one, axis) in enumerate(each)]
        return primitive.bind(*arrays, sets=sets + apart, **others), to

    def shape(*given: Any, **_: Any) -> Any:
        return given[-1].update(weak_type=False)

    primitive = Primitive(name)
    how = [
        one.name for one in signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY
    ]
    primitive.def_impl(jax.jit(function, static_argnames=how))
    primitive.def_abstract_eval(shape)
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=False))
    batching.primitive_batchers[primitive] = of_many
    return primitive


def _turned_back(asked: Any, *arrays: Any, back: bool, **others: Any) -> list[Any]:
    """It is linear in what moves the memories."""
    known = arrays[:-1]
    if isinstance(asked, ad.Zero):
        return [*[None] * len(known), ad.Zero(arrays[-1].aval)]
    return [*[None] * len(known), _propagate.bind(*known, asked, back=not back, **others)]


def _slope(given: Any, changes: Any, *, kernel: GruKernel, **how: Any) -> tuple[Any, Any]:
    """Of slopes, as those need who learn by how others learn."""
    whole = [ad.instantiate_zeros(one) for one in changes]
    found = _propagate.bind(*given, kernel=kernel, **how)
    return found, jax.jvp(partial(_looped, **how), tuple(given), tuple(whole))[1]


_forward = _primitive("hopplus_gru", _forward_of, SHARED)
_propagate = _primitive("hopplus_gru_changes", _propagated, 1)
ad.primitive_transposes[_propagate] = _turned_back
ad.primitive_jvps[_propagate] = _slope
