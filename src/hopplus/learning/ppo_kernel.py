"""PPO's loss and its slope in one kernel, for policies of dense layers on a GPU.

XLA makes some forty kernels of a minibatch's loss and its slope, and most of the time of small
batches goes into starting them. Here it is one: rows are fetched and read once, and what is between
layers never leaves the chip. Where the first layer reads more than there is room for, or what hangs
on parameters itself, that layer and everything before it stay with XLA.

`ppo_loss` is what it is held to: both come to the same, but for rounding.
"""

from dataclasses import dataclass, fields
from functools import cache, cached_property, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from hopplus.config import NetConfig, PPOConfig
from hopplus.kernels import has_room, triton_options
from hopplus.learning.ppo_records import Kind, Record
from hopplus.models.nets import ActorCritic, dense_layers
from hopplus.models.part import Metrics

BLOCKS = (128, 64, 32, 16, 8, 4, 2, 1)  # rows at a time; the most that the chip has room for
WARPS = 8  # that share the work on these
PROGRAMS = 128  # side by side, at most, each of which adds up the slopes of its blocks
NARROWEST, WIDEST = 16, 64  # layers; XLA's products are as fast where they are wider
MOST_INPUTS = 128  # of a first layer that is in the kernel
MOST_ACTIONS = 23  # a bit each of a whole number that a float32 has room for
FAR = -1e30  # in place of -inf, which would be no number where it meets itself
NAMES = ("policy_loss", "value_loss", "entropy", "kl", "clipped")


class Split(eqx.Module):
    """A policy as the kernel has it, or its slope."""

    outside: ActorCritic  # what is left to XLA; all else is None
    inside: jax.Array  # [K, H] float32, the rest, as `PPOKernel.places` says


@dataclass(frozen=True)
class PPOKernel:
    """Loss and slope of policies of one shape."""

    actions: int
    hidden: int
    layers: int
    config: PPOConfig
    inputs: int = 0  # of a first layer that is in the kernel, too
    imagines: bool = False  # some rows are imagined, whose metrics are told apart
    interpret: bool = False  # by plain operations of JAX, slowly, wherever there is no GPU

    @property
    def columns(self) -> int:
        """Of the heads: the actions, the value, and as many as make a power of two."""
        return columns_for(self.actions)

    @property
    def width(self) -> int:
        """What a row of inputs is made up to: a power of two, as all sides are."""
        return 1 << (self.inputs - 1).bit_length() if self.inputs else 0

    @cached_property
    def places(self) -> dict[str, int]:
        """The first row of each thing that is inside; those of the layers' weights begin at 0."""
        heads = self.width + (self.layers - 1) * self.hidden
        biases = heads + self.columns
        bias = biases + self.layers
        return {"heads": heads, "biases": biases, "head bias": bias, "end": bias + 1}

    def split(self, policy: ActorCritic) -> Split:
        """A policy as the kernel has it."""
        first, *others = dense_layers(policy.body)
        heads = jnp.concatenate([policy.policy.weight, policy.value.weight], axis=1).T
        bias = jnp.concatenate([policy.policy.bias, policy.value.bias])
        rows = [jnp.pad(first.weight, ((0, self.width - self.inputs), (0, 0)))]
        rows = [*(rows if self.inputs else []), *(one.weight for one in others)]
        rows += [jnp.pad(heads, ((0, self.columns - len(heads)), (0, 0)))]
        rows += [one.bias[None] for one in (first, *others)]
        rows += [jnp.pad(bias, (0, self.hidden - len(bias)))[None]]
        outside = eqx.tree_at(self._inside, policy, replace=[None] * len(self._inside(policy)))
        return Split(outside, jnp.concatenate(rows))

    def joined(self, split: Split, like: ActorCritic) -> ActorCritic:
        """What was split from a policy like that one, in its form again."""
        h, at, rows, actions = self.hidden, self.places, split.inside, self.actions
        heads = rows[at["heads"] : at["heads"] + actions + 1].T
        bias = rows[at["head bias"]]
        found = [rows[: self.inputs]] if self.inputs else []
        found += [rows[at["biases"]]]
        for number in range(1, self.layers):
            begin = self.width + (number - 1) * h
            found += [rows[begin : begin + h], rows[at["biases"] + number]]
        found += [heads[:, :actions], bias[:actions], heads[:, actions:]]
        found += [bias[actions : actions + 1]]
        changed = eqx.tree_at(self._inside, like, replace=found)
        joined: ActorCritic = eqx.combine(split.outside, changed)
        return joined

    def _inside(self, policy: ActorCritic) -> list[jax.Array]:
        """What of a policy is inside, in order."""
        first, *others = dense_layers(policy.body)
        linears = (*others, policy.policy, policy.value)
        weights = [leaf for one in linears for leaf in (one.weight, one.bias)]
        return [*([first.weight] if self.inputs else []), first.bias, *weights]

    def block(self, rows: int) -> int | None:
        """How many of a minibatch's rows are taken at a time; None where the chip has no room, or
        they do not come in sixteens, or in numbers that leave most of the chip idle."""
        return next(
            (size for size in self.shares(rows) if self.interpret or _fits(self, size)), None
        )

    def shares(self, rows: int) -> list[int]:
        """As how many at a time rows can be taken, if there is room: all that is asked of a number
        of rows, the most first."""
        sizes = [size for size in BLOCKS if rows % size == 0]
        if self.interpret:
            return sizes
        return [size for size in sizes if size >= NARROWEST and not _idle(rows // size)]

    def slope(
        self,
        given: jax.Array,
        inside: jax.Array,
        known: jax.Array,
        rows: jax.Array,
        weights: jax.Array,
        block: int,
    ) -> tuple[jax.Array | None, jax.Array, Metrics]:
        """The slopes of the loss of a minibatch and its named parts, `block` rows at a time.

        `rows` [R] are its rows of what is `known` of all [M, 8] and, with the first layer inside,
        of their inputs, which are `given` [M, width]; else it is what the first layer's weights
        have made of these rows [R, H], by which there is a slope then, too. That by what is inside
        is [K, H].
        """
        count, hidden = len(rows), self.hidden
        blocks = count // block
        each = _for_each(blocks)
        kinds, end = 2 if self.imagines else 1, self.places["end"]
        shape = (blocks // each, end + kinds * len(NAMES), hidden)
        shapes = [jax.ShapeDtypeStruct(shape, jnp.float32)]
        if not self.inputs:
            shapes.append(jax.ShapeDtypeStruct(given.shape, jnp.float32))
        found, *slope = pl.pallas_call(
            partial(self._kernel, block=block, blocks=each),
            grid=(blocks // each,),
            out_shape=shapes,
            interpret=self.interpret,
            name="ppo_slope",
            **({} if self.interpret else triton_options(WARPS)),
        )(given, inside, known, rows, weights)
        total = found.sum(axis=0).at[self.places["head bias"], self.columns :].set(0.0)
        means = total[end:, 0].reshape(kinds, len(NAMES))
        metrics = dict(zip(NAMES, means[0], strict=True))
        if self.imagines:
            named = zip(NAMES, means[1], strict=True)
            metrics |= {f"imagined/{name}": mean for name, mean in named}
            shares = jnp.stack([kind.value_share for kind in _kinds(weights)])
            metrics["value_loss_mixed"] = shares @ means[:, NAMES.index("value_loss")]
        return (slope[0] if slope else None), total[:end], metrics

    def _kernel(
        self,
        given: Any,
        inside: Any,
        known: Any,
        rows_of: Any,
        weights: Any,
        found: Any,
        *slopes: Any,
        block: int,
        blocks: int,
    ) -> None:
        """One program: `blocks` blocks of rows, one after the other."""
        at, h, program = self.places, self.hidden, pl.program_id(0)
        begins = [self.width + n * h for n in range(self.layers - 1)]
        layers = [inside[pl.ds(begin, h), :] for begin in begins]
        biases = [inside[at["biases"] + n, :] for n in range(self.layers)]
        heads = inside[pl.ds(at["heads"], self.columns), :]  # [C, H]
        head_bias = inside[at["head bias"], pl.ds(0, self.columns)]
        kinds, entropy_weight = _kinds(weights), weights[2 * len(fields(Kind))]

        def body(number: jax.Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            places = pl.ds((program * blocks + number) * block, block)
            rows = rows_of[places]
            record = Record(*(known[rows, n] for n in range(len(fields(Record)))))
            if self.inputs:
                inputs = given[rows, :]
                made = jnp.dot(inputs, inside[pl.ds(0, self.width), :])
            else:
                made = given[places, :]
            each = [made + biases[0]]  # what goes into each rectifier
            for layer, bias in zip(layers, biases[1:], strict=True):
                each.append(jnp.dot(jax.nn.relu(each[-1]), layer) + bias)
            out = jnp.dot(jax.nn.relu(each[-1]), heads.T) + head_bias
            slope, parts = self._row_slopes(out, record, kinds, entropy_weight)
            more = [jnp.dot(slope.T, jax.nn.relu(each[-1])), slope.sum(axis=0)]
            back = jnp.dot(slope, heads)
            for n in reversed(range(self.layers)):
                back = jnp.where(each[n] > 0, back, 0.0)
                more.append(back.sum(axis=0))
                if n:
                    more.append(jnp.dot(jax.nn.relu(each[n - 1]).T, back))
                    back = jnp.dot(back, layers[n - 1].T)
            if self.inputs:
                more.append(jnp.dot(inputs.T, back))
            else:
                slopes[0][places, :] = back
            return tuple(a + b for a, b in zip(carry, (*more, *parts), strict=True))

        shapes = [(self.columns, h), (self.columns,)]
        for n in reversed(range(self.layers)):
            shapes += [(h,), (h, h)] if n else [(h,)]
        shapes += [(self.width, h)] if self.inputs else []
        shapes += [(block,)] * (2 if self.imagines else 1) * len(NAMES)
        total = jax.lax.fori_loop(0, blocks, body, tuple(jnp.zeros(one) for one in shapes))
        self._write(found, program, list(total))

    def _write(self, found: Any, program: jax.Array, total: list[jax.Array]) -> None:
        """What a program has added up, where `places` says."""
        at, h = self.places, self.hidden
        # Of the heads' bias, what is behind it is not written (two writes of one place come in any
        # order on a GPU).
        found[program, pl.ds(at["heads"], self.columns), :] = total.pop(0)
        found[program, at["head bias"], pl.ds(0, self.columns)] = total.pop(0)
        for n in reversed(range(self.layers)):
            found[program, at["biases"] + n, :] = total.pop(0)
            if n:
                found[program, pl.ds(self.width + (n - 1) * h, h), :] = total.pop(0)
        if self.inputs:
            found[program, pl.ds(0, self.width), :] = total.pop(0)
        for n, part in enumerate(total):
            found[program, at["end"] + n, :] = jnp.zeros(h) + part.sum()

    def _row_slopes(
        self, out: jax.Array, record: Record, kinds: list[Kind], entropy_weight: jax.Array
    ) -> tuple[jax.Array, list[jax.Array]]:
        """The slopes by what the heads say of rows [R, C], and what each row [R] adds to the means
        of NAMES, of played and, if there are any, of imagined rows."""
        c, actions = self.config, self.actions
        imagined = record.imagined > 0
        kind: Kind = jax.tree.map(lambda a, b: jnp.where(imagined, b, a), *kinds)
        column = jax.lax.broadcasted_iota(jnp.int32, out.shape, 1)
        legal = (record.legal.astype(jnp.int32)[:, None] >> column) & 1 == 1
        chosen = column == record.action.astype(jnp.int32)[:, None]
        logits = jnp.where(legal, out, FAR)
        logits = logits - logits.max(axis=1)[:, None]
        powers = jnp.where(legal, jnp.exp(logits), 0.0)
        total = powers.sum(axis=1)[:, None]
        logits, chances = logits - jnp.log(total), powers / total
        present, valued = record.present > 0, record.valued > 0
        log_prob = jnp.where(chosen, logits, 0.0).sum(axis=1)
        change = jnp.where(present, log_prob - record.log_prob, 0.0)
        ratio = jnp.exp(change)
        advantage = (record.returns - record.value - kind.mean) * kind.scale
        gain = ratio * advantage
        clipped = jnp.clip(ratio, 1 - c.clip, 1 + c.clip) * advantage
        entropy = -jnp.where(legal, chances * logits, 0.0).sum(axis=1)

        value = jnp.where(column == actions, out, 0.0).sum(axis=1)
        moved = value - record.value
        error = value - record.returns
        near = record.value + jnp.clip(moved, -c.value_clip, c.value_clip) - record.returns
        errors = jnp.maximum(error**2, near**2)
        free = jnp.abs(moved) < c.value_clip
        by_value = 2 * jnp.where(error**2 >= near**2, error, jnp.where(free, near, 0.0))

        weight = jnp.where(present, kind.weight, 0.0)
        value_weight = jnp.where(valued, kind.value_weight, 0.0)
        by_log_prob = jnp.where(gain <= clipped, -kind.share * weight * gain, 0.0)
        slope = by_log_prob[:, None] * (chosen - chances)
        bonus = chances * (logits + entropy[:, None])
        slope += (entropy_weight * kind.share * weight)[:, None] * jnp.where(legal, bonus, 0.0)
        slope = jnp.where(legal, slope, 0.0)
        by_value = c.value_weight * kind.value_share * value_weight * by_value
        slope = jnp.where(column == actions, by_value[:, None], slope)

        outside = (jnp.abs(ratio - 1) > c.clip).astype(jnp.float32)
        means = [-jnp.minimum(gain, clipped), errors, entropy, ratio - 1 - change, outside]
        used = [weight, value_weight, *[weight] * 3]
        parts = [jnp.where(one > 0, mean * one, 0.0) for mean, one in zip(means, used, strict=True)]
        if not self.imagines:
            return slope, parts
        played = [jnp.where(imagined, 0.0, part) for part in parts]
        return slope, played + [jnp.where(imagined, part, 0.0) for part in parts]


def _kinds(weights: Any) -> list[Kind]:
    """Those of played and of imagined rows."""
    size = len(fields(Kind))
    return [Kind(*(weights[first + n] for n in range(size))) for first in (0, size)]


def columns_for(actions: int) -> int:
    """[..., C] the actions, the value, and as many as make a power of two."""
    return max(NARROWEST, 1 << actions.bit_length())


def unfit(net: NetConfig, actions: int) -> str | None:
    """What a policy lacks for the kernel; None where it fits."""
    columns = columns_for(actions)
    least = max(NARROWEST, columns)
    if net.hidden & (net.hidden - 1) or not least <= net.hidden <= WIDEST:
        return f"--net.hidden to be a power of two from {least} to {WIDEST}"
    return f"at most {MOST_ACTIONS} actions" if actions > MOST_ACTIONS else None


def _for_each(blocks: int) -> int:
    """How many of so many blocks a program takes, all as many."""
    return next(n for n in range(-(-blocks // PROGRAMS), blocks + 1) if blocks % n == 0)


def _idle(blocks: int) -> bool:
    """Whether so many can only be shared among few programs, as a prime number can."""
    return 4 * (blocks // _for_each(blocks)) < min(blocks, PROGRAMS)


@cache
def _fits(kernel: PPOKernel, block: int) -> bool:
    """Whether there is room for the kernel with so many rows at a time."""
    count = 2 * PROGRAMS * block  # so that there is a loop, which takes room, too
    shapes = [(count, kernel.width or kernel.hidden), (kernel.places["end"], kernel.hidden)]
    shapes += [(count, len(fields(Record)))]
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    rows = jax.ShapeDtypeStruct((count,), jnp.int32)
    weights = jax.ShapeDtypeStruct((2 * len(fields(Kind)) + 1,), jnp.float32)
    slope = partial(kernel.slope, block=block)
    return has_room(slope, *given, rows, weights)
