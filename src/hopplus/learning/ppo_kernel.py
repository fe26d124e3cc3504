"""PPO's loss and its slope in one kernel, for policies of dense layers on a GPU.

XLA makes some forty kernels of a minibatch's loss and its slope, and most of the time of small
batches goes into starting them. Here it is one: rows are fetched and read once, and what is between
layers never leaves the chip. Where the first layer reads more than there is room for, or what hangs
on parameters itself, that layer and everything before it stay with XLA.

`ppo_loss` is what it is held to: both come to the same, but for rounding.
"""

from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from hopplus.config import NetConfig, PPOConfig
from hopplus.learning.ppo import Batch, normalised
from hopplus.models.nets import ActorCritic, dense_layers
from hopplus.models.part import Metrics

BLOCKS = (64, 32, 16, 8, 4, 2, 1)  # rows at a time: what is known of them stays in registers
PROGRAMS = 512  # side by side, at most; each adds up the slopes of its blocks
NARROWEST, WIDEST = 16, 128  # sides of matrices that are multiplied on the chip
MOST_ACTIONS = 23  # a bit each of a whole number that a float32 has room for
PRELOAD = True
FAR = -1e30  # in place of -inf, which would be no number where it meets itself
NAMES = ("policy_loss", "value_loss", "entropy", "kl", "clipped")


class Told(eqx.Module):
    """What the loss holds rows against; each [R] float32."""

    advantage: jax.Array  # normalised
    log_prob: jax.Array  # when it was played
    value: jax.Array  # when it was played
    returns: jax.Array
    weight: jax.Array  # in a mean over present rows of its kind
    value_weight: jax.Array  # in a mean over those that values learn from
    action: jax.Array
    legal: jax.Array  # a bit for each action
    imagined: jax.Array  # 1; 0 for what was played


class Targets(eqx.Module):
    """All of a minibatch's loss that does not hang on parameters."""

    told: jax.Array  # [9, R] float32, in the order of `Told`
    # [5] float32, of played and of imagined rows in the policy's loss, of both in the value's, and
    # of the bonus for entropy.
    weights: jax.Array


class Split(eqx.Module):
    """A policy as the kernel has it, or its slope."""

    outside: ActorCritic  # what is left to XLA; all else is None
    inside: jax.Array  # [K, H] float32, the rest, as `PPOKernel.places` says


def make_targets(batch: Batch, imagined_value_weight: float, entropy_weight: jax.Array) -> Targets:
    """Those of a minibatch [R, ...], so that the loss is the one of `ppo_loss`."""
    gains = batch.returns - batch.value
    imagined = jnp.zeros_like(batch.present) if batch.imagined is None else batch.imagined

    def kind(chosen: jax.Array) -> tuple[jax.Array, ...]:
        present, valued = batch.present & chosen, batch.valued & chosen
        advantage = jnp.where(chosen, normalised(gains, present), 0.0)
        return advantage, *(mask / jnp.maximum(mask.sum(), 1) for mask in (present, valued))

    kinds = [kind(~imagined)] if batch.imagined is None else [kind(~imagined), kind(imagined)]
    advantage, weight, value_weight = (sum(parts) for parts in zip(*kinds, strict=True))
    counted = batch.valued * jnp.where(imagined, imagined_value_weight, 1.0)
    share = (batch.present & imagined).sum() / jnp.maximum(batch.present.sum(), 1)
    value_share = (counted * imagined).sum() / jnp.maximum(counted.sum(), 1e-8)
    bits = (batch.view.legal * (1 << jnp.arange(batch.view.legal.shape[-1]))).sum(axis=-1)
    told = Told(
        advantage,
        batch.log_prob,
        batch.value,
        batch.returns,
        weight,
        value_weight,
        batch.action,
        bits,
        imagined,
    )
    rows = jnp.stack([leaf.astype(jnp.float32) for leaf in jax.tree.leaves(told)])
    weights = [1 - share, share, 1 - value_share, value_share, entropy_weight]
    return Targets(rows, jnp.stack([jnp.asarray(one, jnp.float32) for one in weights]))


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

    def slope(
        self,
        given: jax.Array,
        rows: jax.Array | None,
        inside: jax.Array,
        targets: Targets,
    ) -> tuple[jax.Array | None, jax.Array, Metrics]:
        """The slopes of the loss and its named parts.

        With the first layer inside, `given` are the inputs of all rows [M, width] there are, of
        which `rows` [R] count; else what the first layer's weights have made of these [R, H], by
        which there is a slope then, too. That by what is inside is [K, H].
        """
        count, hidden = targets.told.shape[1], self.hidden
        block = next(size for size in BLOCKS if count % size == 0)
        blocks = count // block
        each = next(n for n in range(-(-blocks // PROGRAMS), blocks + 1) if blocks % n == 0)
        kinds, end = 2 if self.imagines else 1, self.places["end"]
        shape = (blocks // each, end + kinds * len(NAMES), hidden)
        shapes = [jax.ShapeDtypeStruct(shape, jnp.float32)]
        if rows is None:
            shapes.append(jax.ShapeDtypeStruct(given.shape, jnp.float32))
        own = (given,) if rows is None else (rows, given)
        found, *slope = pl.pallas_call(
            partial(self._kernel, block=block, blocks=each),
            grid=(blocks // each,),
            out_shape=shapes,
            interpret=self.interpret,
            name="ppo_slope",
            **({} if self.interpret else _options(hidden)),
        )(inside, targets.told, targets.weights, *own)
        total = found.sum(axis=0)
        means = total[end:, 0].reshape(kinds, len(NAMES))
        metrics = dict(zip(NAMES, means[0], strict=True))
        if self.imagines:
            named = zip(NAMES, means[1], strict=True)
            metrics |= {f"imagined/{name}": mean for name, mean in named}
            metrics["value_loss_mixed"] = targets.weights[2:4] @ means[:, NAMES.index("value_loss")]
        return (slope[0] if slope else None), total[:end], metrics

    def _kernel(
        self, inside: Any, told_of: Any, loss_weights: Any, *refs: Any, block: int, blocks: int
    ) -> None:
        """One program: `blocks` blocks of rows, one after the other."""
        at, h, program = self.places, self.hidden, pl.program_id(0)
        begins = [self.width + n * h for n in range(self.layers - 1)]
        # Read anew for every block: there are registers for the slopes or for the weights.
        kept = [inside[pl.ds(begin, h), :] for begin in begins] if PRELOAD else None
        weight_of = lambda n: kept[n] if kept else inside[pl.ds(begins[n], h), :]
        biases = [inside[at["biases"] + n, :] for n in range(self.layers)]
        heads = inside[pl.ds(at["heads"], self.columns), :]  # [C, H]
        head_bias = inside[at["head bias"], pl.ds(0, self.columns)]
        shares = [loss_weights[n] for n in range(5)]

        def body(number: jax.Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            rows = pl.ds((program * blocks + number) * block, block)
            told = Told(*(told_of[n, rows] for n in range(len(fields(Told)))))
            if self.inputs:
                rows_of, inputs_of, _ = refs
                inputs = inputs_of[rows_of[rows], :]
                made = jnp.dot(inputs, inside[pl.ds(0, self.width), :])
            else:
                made = refs[0][rows, :]
            each = [made + biases[0]]  # what goes into each rectifier
            for n, bias in enumerate(biases[1:]):
                each.append(jnp.dot(jax.nn.relu(each[-1]), weight_of(n)) + bias)
            out = jnp.dot(jax.nn.relu(each[-1]), heads.T) + head_bias
            slope, parts = self._row_slopes(out, told, shares)
            found = [jnp.dot(slope.T, jax.nn.relu(each[-1])), slope.sum(axis=0)]
            back = jnp.dot(slope, heads)
            for n in reversed(range(self.layers)):
                back = jnp.where(each[n] > 0, back, 0.0)
                found.append(back.sum(axis=0))
                if n:
                    found.append(jnp.dot(jax.nn.relu(each[n - 1]).T, back))
                    back = jnp.dot(back, weight_of(n - 1).T)
            if self.inputs:
                found.append(jnp.dot(inputs.T, back))
            else:
                refs[2][rows, :] = back
            return tuple(a + b for a, b in zip(carry, (*found, *parts), strict=True))

        shapes = [(self.columns, h), (self.columns,)]
        for n in reversed(range(self.layers)):
            shapes += [(h,), (h, h)] if n else [(h,)]
        shapes += [(self.width, h)] if self.inputs else []
        shapes += [(block,)] * (2 if self.imagines else 1) * len(NAMES)
        total = jax.lax.fori_loop(0, blocks, body, tuple(jnp.zeros(one) for one in shapes))
        self._write(refs[2 if self.inputs else 1], program, list(total))

    def _write(self, found: Any, program: jax.Array, total: list[jax.Array]) -> None:
        """What a program has added up, where `places` says."""
        at, h = self.places, self.hidden
        found[program, pl.ds(at["heads"], self.columns), :] = total.pop(0)
        found[program, at["head bias"], :] = jnp.zeros(h)
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
        self, out: jax.Array, told: Told, shares: list[jax.Array]
    ) -> tuple[jax.Array, list[jax.Array]]:
        """The slopes by what the heads say of rows [R, C], and what each row [R] adds to the means
        of NAMES, of played and, if there are any, of imagined rows."""
        c, actions = self.config, self.actions
        column = jax.lax.broadcasted_iota(jnp.int32, out.shape, 1)
        legal = (told.legal.astype(jnp.int32)[:, None] >> column) & 1 == 1
        chosen = column == told.action.astype(jnp.int32)[:, None]
        logits = jnp.where(legal, out, FAR)
        logits = logits - logits.max(axis=1)[:, None]
        powers = jnp.where(legal, jnp.exp(logits), 0.0)
        total = powers.sum(axis=1)[:, None]
        logits, chances = logits - jnp.log(total), powers / total
        present = told.weight > 0
        log_prob = jnp.where(chosen, logits, 0.0).sum(axis=1)
        change = jnp.where(present, log_prob - told.log_prob, 0.0)
        ratio = jnp.exp(change)
        gain = ratio * told.advantage
        clipped = jnp.clip(ratio, 1 - c.clip, 1 + c.clip) * told.advantage
        entropy = -jnp.where(legal, chances * logits, 0.0).sum(axis=1)

        value = jnp.where(column == actions, out, 0.0).sum(axis=1)
        moved = value - told.value
        error = value - told.returns
        near = told.value + jnp.clip(moved, -c.value_clip, c.value_clip) - told.returns
        errors = jnp.maximum(error**2, near**2)
        inside = jnp.abs(moved) < c.value_clip
        by_value = 2 * jnp.where(error**2 >= near**2, error, jnp.where(inside, near, 0.0))

        imagined = told.imagined > 0
        share = jnp.where(imagined, shares[1], shares[0]) * told.weight
        value_share = jnp.where(imagined, shares[3], shares[2]) * told.value_weight
        by_log_prob = jnp.where(present & (gain <= clipped), -share * gain, 0.0)
        slope = by_log_prob[:, None] * (chosen - chances)
        bonus = chances * (logits + entropy[:, None])
        slope += (shares[4] * share)[:, None] * jnp.where(legal, bonus, 0.0)
        slope = jnp.where(legal, slope, 0.0)
        by_value = c.value_weight * value_share * by_value
        slope = jnp.where(column == actions, by_value[:, None], slope)

        outside = (jnp.abs(ratio - 1) > c.clip).astype(jnp.float32)
        means = [-jnp.minimum(gain, clipped), errors, entropy, ratio - 1 - change, outside]
        used = [told.weight, told.value_weight, *[told.weight] * 3]
        parts = [mean * weight for mean, weight in zip(means, used, strict=True)]
        if not self.imagines:
            return slope, parts
        played = [jnp.where(imagined, 0.0, part) for part in parts]
        return slope, played + [jnp.where(imagined, part, 0.0) for part in parts]


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


def _options(hidden: int) -> dict[str, Any]:
    from jax.experimental.pallas import triton  # of a GPU; others need not have it

    warps = 4 if hidden <= 64 else 8
    return {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=1)}
