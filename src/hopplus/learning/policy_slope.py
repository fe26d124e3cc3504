"""How the slope of the policy's loss is found: by XLA, of any loss, or in one kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax

from hopplus.learning.ppo import Batch, Improved
from hopplus.learning.ppo_kernel import PPOKernel, Split, Targets, make_targets
from hopplus.models.nets import ActorCritic, first_layer
from hopplus.models.part import Metrics
from hopplus.types import Params

Other = tuple[Improved, Batch] | None  # the other seat's, where it is minded
Loss = Callable[[Improved, Batch, Other], tuple[jax.Array, Metrics]]


class PolicySlope(Protocol):
    """The slope of one set's loss, with parameters in a form of its own."""

    def enter(self, improved: Improved) -> Improved:
        """Parameters, or what an optimiser keeps of them, in that form."""

    def leave(self, improved: Improved, like: Improved) -> Improved:
        """The same in the form in which they came, which is that one's."""

    def prepare(self, part: Batch) -> Any:
        """What can be known of a minibatch before anything is learned from the one before."""

    def find(
        self, improved: Improved, part: Batch, prepared: Any, other: Other
    ) -> tuple[Improved, Metrics]:
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

    def prepare(self, part: Batch) -> None:
        return None

    def find(
        self, improved: Improved, part: Batch, prepared: None, other: Other
    ) -> tuple[Improved, Metrics]:
        (_, parts), slope = jax.value_and_grad(self.loss, has_aux=True)(improved, part, other)
        return slope, parts


@dataclass(frozen=True)
class FusedSlope:
    """That of PPO's loss, in one kernel but for the first layer."""

    kernel: PPOKernel
    inputs: Callable[[ActorCritic, Params, Batch], jax.Array]  # [R, F] of the first layer
    entropy_weight: jax.Array  # []
    imagined_value_weight: float

    def enter(self, improved: Improved) -> Improved:
        return Improved(self.kernel.split(improved.policy), improved.context)

    def leave(self, improved: Improved, like: Improved) -> Improved:
        return Improved(self.kernel.joined(improved.policy, like.policy), improved.context)

    def prepare(self, part: Batch) -> Targets:
        return make_targets(part, self.imagined_value_weight)

    def find(
        self, improved: Improved, part: Batch, prepared: Targets, other: Other
    ) -> tuple[Improved, Metrics]:
        split = improved.policy

        def first(before: ActorCritic, context: Params) -> jax.Array:
            return self.inputs(before, context, part) @ first_layer(before.body).weight

        made, pull = jax.vjp(first, split.before, improved.context)
        slope, behind, parts = self.kernel.slope(made, split.behind, prepared, self.entropy_weight)
        before, context = pull(slope)
        return Improved(Split(before, behind), context), parts
