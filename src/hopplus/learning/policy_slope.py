"""How the slope of the policy's loss is found: by XLA, of any loss, or in one kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.learning.ppo import Batch, Improved
from hopplus.learning.ppo_kernel import PPOKernel, Split
from hopplus.learning.ppo_records import loss_weights, records
from hopplus.models.nets import ActorCritic, Inputs, first_layer, weighed
from hopplus.models.part import Metrics
from hopplus.types import Params

Other = tuple[Improved, Batch] | None  # the other seat's, where it is minded
Read = Callable[[ActorCritic, Params, Batch], Inputs]  # [M, ...] inputs of the first layer
Loss = Callable[[Improved, Batch, Other], tuple[jax.Array, Metrics]]


class Minibatch(eqx.Module):
    """A minibatch, for one set of parameters."""

    rows: jax.Array  # [R] int32, which of the batch's
    batch: Batch  # [R, ...] these
    read: Any  # what `PolicySlope.read` has made of all rows
    aim: Any  # what `PolicySlope.aim` has made of these
    other: Other = None


class PolicySlope(Protocol):
    """The slope of one set's loss, with parameters in a form of its own."""

    def enter(self, improved: Improved) -> Improved:
        """Parameters, or what an optimiser keeps of them, in that form."""

    def leave(self, improved: Improved, like: Improved) -> Improved:
        """The same in the form in which they came, which is that one's."""

    def read(self, policy: ActorCritic, batch: Batch) -> Any:
        """What can be made of all rows before anything is learned."""

    def aim(self, part: Batch) -> Any:
        """What can be known of a minibatch before anything is learned from the one before."""

    def find(self, improved: Improved, part: "Minibatch") -> tuple[Improved, Metrics]:
        """The slope, and the named parts of the loss."""


def in_form(change: Callable[[Improved], Improved], tree: Any) -> Any:
    """Whatever holds parameters, as an optimiser does, with all of them changed."""
    return jax.tree.map(
        lambda node: change(node) if isinstance(node, Improved) else node,
        tree,
        is_leaf=lambda node: isinstance(node, Improved),
    )


@dataclass(frozen=True)
class PlainSlope:
    """That of any loss."""

    loss: Loss

    def enter(self, improved: Improved) -> Improved:
        return improved

    def leave(self, improved: Improved, like: Improved) -> Improved:
        return improved

    def read(self, policy: ActorCritic, batch: Batch) -> None:
        return None

    def aim(self, part: Batch) -> None:
        return None

    def find(self, improved: Improved, part: Minibatch) -> tuple[Improved, Metrics]:
        slope_of = jax.value_and_grad(self.loss, has_aux=True)
        (_, parts), slope = slope_of(improved, part.batch, part.other)
        return slope, parts


@dataclass(frozen=True)
class FusedSlope:
    """That of PPO's loss, in one kernel, but for the first layer where that has no room in it."""

    kernel: PPOKernel
    block: int  # of rows at a time
    inputs: Read
    entropy_weight: jax.Array  # []
    imagined_value_weight: float

    def enter(self, improved: Improved) -> Improved:
        return Improved(self.kernel.split(improved.policy), improved.context)

    def leave(self, improved: Improved, like: Improved) -> Improved:
        return Improved(self.kernel.joined(improved.policy, like.policy), improved.context)

    def read(self, policy: ActorCritic, batch: Batch) -> tuple[jax.Array, jax.Array | None]:
        """What is known of all rows, and their inputs where these hang on no parameters."""
        if not self.kernel.inputs:
            return records(batch), None
        inputs = jnp.concatenate(self.inputs(policy, None, batch), axis=1)
        room = self.kernel.width - self.kernel.inputs
        return records(batch), jnp.pad(inputs, ((0, 0), (0, room)))

    def aim(self, part: Batch) -> jax.Array:
        return loss_weights(part, self.imagined_value_weight, self.entropy_weight)

    def find(self, improved: Improved, part: Minibatch) -> tuple[Improved, Metrics]:
        split, (known, inputs) = improved.policy, part.read
        behind = (split.inside, known, part.rows, part.aim)
        if inputs is not None:
            _, inside, parts = self.kernel.slope(inputs, *behind, self.block)
            return Improved(Split(split.outside, inside), improved.context), parts

        def first(outside: ActorCritic, context: Params) -> jax.Array:
            over_rows = jax.vmap(partial(weighed, apart=True), in_axes=(0, None))
            inputs = self.inputs(outside, context, part.batch)
            return over_rows(inputs, first_layer(outside.body).weight)

        made, pull = jax.vjp(first, split.outside, improved.context)
        slope, inside, parts = self.kernel.slope(made, *behind, self.block)
        outside, context = pull(slope)
        return Improved(Split(outside, inside), context), parts
