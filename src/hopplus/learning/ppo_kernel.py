"""PPO's loss and its slope in one kernel, for policies of dense layers on a GPU.

XLA makes some forty kernels of a minibatch's loss and its slope, and most of the time of small
batches goes into starting them. Here everything behind the first layer is one: rows are read once,
and what is between layers never leaves the chip. The first layer, which reads whatever there is to
be told, stays with XLA, and so does everything before it.

`ppo_loss` is what it is held to: both come to the same, but for rounding.
"""

from dataclasses import dataclass
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

ROWS = 64  # of a block, at most: what is known of them stays in registers
PROGRAMS = 512  # side by side, at most; each adds up the slopes of its blocks
NARROWEST, WIDEST = 16, 128  # sides of matrices that are multiplied on the chip
MOST_ACTIONS = 23  # a bit each of a whole number that a float32 has room for
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
    shares: jax.Array  # [2, 2] float32, of played and imagined rows in policy's and value's loss


class Split(eqx.Module):
    """A policy as the kernel has it, or its slope."""

    before: ActorCritic  # up to the first layer's weights; all else is None
    behind: jax.Array  # [K, H] float32, the rest, as `PPOKernel.places` says


def make_targets(batch: Batch, imagined_value_weight: float) -> Targets:
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
    return Targets(rows, jnp.array([[1 - share, share], [1 - value_share, value_share]]))


@dataclass(frozen=True)
class PPOKernel:
    """Loss and slope of policies of one shape."""

    actions: int
    hidden: int
    layers: int
    config: PPOConfig
    imagines: bool  # some rows are imagined, whose metrics are told apart
    interpret: bool = False  # by plain operations of JAX, slowly, wherever there is no GPU

    @property
    def columns(self) -> int:
        """Of the heads: the actions, the value, and as many as make a power of two."""
        return columns_for(self.actions)

    @cached_property
    def places(self) -> dict[str, int]:
        """The first row of each thing that is behind the first layer's weights; the weights of the
        other layers begin at 0."""
        heads = (self.layers - 1) * self.hidden
        biases = heads + self.columns
        return {"heads": heads, "biases": biases, "head bias": biases + self.layers}

    def split(self, policy: ActorCritic) -> Split:
        """A policy as the kernel has it."""
        first, *others = dense_layers(policy.body)
        heads = jnp.concatenate([policy.policy.weight, policy.value.weight], axis=1).T
        bias = jnp.concatenate([policy.policy.bias, policy.value.bias])
        rows = [one.weight for one in others]
        rows += [jnp.pad(heads, ((0, self.columns - len(heads)), (0, 0)))]
        rows += [one.bias[None] for one in (first, *others)]
        rows += [jnp.pad(bias, (0, self.hidden - len(bias)))[None]]
        before = eqx.tree_at(_behind, policy, replace=[None] * len(_behind(policy)))
        return Split(before, jnp.concatenate(rows))

    def joined(self, split: Split, like: ActorCritic) -> ActorCritic:
        """What was split from a policy like that one, in its form again."""
        h, at, rows, actions = self.hidden, self.places, split.behind, self.actions
        heads = rows[at["heads"] : at["heads"] + actions + 1].T
        bias = rows[at["head bias"]]
        found = [rows[at["biases"]]]
        for number in range(1, self.layers):
            found += [rows[(number - 1) * h : number * h], rows[at["biases"] + number]]
        found += [heads[:, :actions], bias[:actions], heads[:, actions:]]
        found += [bias[actions : actions + 1]]
        joined: ActorCritic = eqx.combine(split.before, eqx.tree_at(_behind, like, replace=found))
        return joined

    def slope(
        self, first: jax.Array, behind: jax.Array, targets: Targets, entropy_weight: jax.Array
    ) -> tuple[jax.Array, jax.Array, Metrics]:
        """The slopes of the loss by what the first layer's weights make of rows [R, H] and by what
        is behind them [K, H], and its named parts."""
        rows, hidden = first.shape
        block = next(size for size in (64, 32, 16, 8, 4, 2, 1) if rows % size == 0)
        blocks = rows // block
        each = next(n for n in range(-(-blocks // PROGRAMS), blocks + 1) if blocks % n == 0)
        kinds = 2 if self.imagines else 1
        size = len(behind) + kinds * len(NAMES)
        weights = jnp.concatenate([targets.shares.reshape(-1), entropy_weight.reshape(1)])
        slope, found = pl.pallas_call(
            partial(self._kernel, block=block, blocks=each),
            grid=(blocks // each,),
            out_shape=(
                jax.ShapeDtypeStruct(first.shape, jnp.float32),
                jax.ShapeDtypeStruct((blocks // each, size, hidden), jnp.float32),
            ),
            interpret=self.interpret,
            name="ppo_slope",
            **({} if self.interpret else _options(hidden)),
        )(first, behind, targets.told, weights)
        total = found.sum(axis=0)
        means = total[len(behind) :, 0].reshape(kinds, len(NAMES))
        metrics = dict(zip(NAMES, means[0], strict=True))
        if self.imagines:
            named = zip(NAMES, means[1], strict=True)
            metrics |= {f"imagined/{name}": mean for name, mean in named}
            metrics["value_loss_mixed"] = targets.shares[1] @ means[:, NAMES.index("value_loss")]
        return slope, total[: len(behind)], metrics

    def _kernel(
        self,
        first_ref: Any,
        behind_ref: Any,
        told_ref: Any,
        weights_ref: Any,
        slope_ref: Any,
        found_ref: Any,
        *,
        block: int,
        blocks: int,
    ) -> None:
        """One program: `blocks` blocks of rows, one after the other."""
        at, h, program = self.places, self.hidden, pl.program_id(0)
        weights = [behind_ref[pl.ds(n * h, h), :] for n in range(self.layers - 1)]
        biases = [behind_ref[at["biases"] + n, :] for n in range(self.layers)]
        heads = behind_ref[pl.ds(at["heads"], self.columns), :]  # [C, H]
        head_bias = behind_ref[at["head bias"], pl.ds(0, self.columns)]
        shares = [weights_ref[n] for n in range(5)]

        def body(number: jax.Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            rows = pl.ds((program * blocks + number) * block, block)
            told = Told(*(told_ref[n, rows] for n in range(9)))
            each = [first_ref[rows, :] + biases[0]]  # what goes into each rectifier
            for weight, bias in zip(weights, biases[1:], strict=True):
                each.append(jnp.dot(jax.nn.relu(each[-1]), weight) + bias)
            out = jnp.dot(jax.nn.relu(each[-1]), heads.T) + head_bias
            slope, parts = self._row_slopes(out, told, shares)
            found = [jnp.dot(slope.T, jax.nn.relu(each[-1])), slope.sum(axis=0)]
            back = jnp.dot(slope, heads)
            for n in reversed(range(self.layers)):
                back = jnp.where(each[n] > 0, back, 0.0)
                found.append(back.sum(axis=0))
                if n:
                    found.append(jnp.dot(jax.nn.relu(each[n - 1]).T, back))
                    back = jnp.dot(back, weights[n - 1].T)
            slope_ref[rows, :] = back
            return tuple(a + b for a, b in zip(carry, (*found, *parts), strict=True))

        kinds = 2 if self.imagines else 1
        shapes = [(self.columns, h), (self.columns,)]
        for n in reversed(range(self.layers)):
            shapes += [(h,), (h, h)] if n else [(h,)]
        shapes += [(block,)] * kinds * len(NAMES)
        found = jax.lax.fori_loop(0, blocks, body, tuple(jnp.zeros(one) for one in shapes))
        found_ref[program, pl.ds(at["heads"], self.columns), :] = found[0]
        found_ref[program, at["head bias"], :] = jnp.zeros(h)
        found_ref[program, at["head bias"], pl.ds(0, self.columns)] = found[1]
        rest = list(found[2:])
        for n in reversed(range(self.layers)):
            found_ref[program, at["biases"] + n, :] = rest.pop(0)
            if n:
                found_ref[program, pl.ds((n - 1) * h, h), :] = rest.pop(0)
        for n, part in enumerate(rest):
            found_ref[program, at["head bias"] + 1 + n, :] = jnp.zeros(h) + part.sum()

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


def _behind(policy: ActorCritic) -> list[jax.Array]:
    """Everything behind the first layer's weights."""
    first, *others = dense_layers(policy.body)
    linears = (*others, policy.policy, policy.value)
    return [first.bias, *(leaf for one in linears for leaf in (one.weight, one.bias))]


def _options(hidden: int) -> dict[str, Any]:
    from jax.experimental.pallas import triton  # of a GPU; others need not have it

    warps = 4 if hidden <= 64 else 8
    return {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=1)}
