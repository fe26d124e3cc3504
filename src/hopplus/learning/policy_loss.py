"""What a set's policy is improved by: its loss on rows of play, and how its slope is found."""

import math
from dataclasses import dataclass

import jax

from hopplus.config import ConfigError, PPOConfig
from hopplus.devices import spread_by_xla
from hopplus.kernels import on_gpu
from hopplus.learning.auxiliary.learners import AuxiliaryLearners
from hopplus.learning.lola import lola_gain
from hopplus.learning.policy_slope import FusedSlope, Loss, Other, PlainSlope, PolicySlope
from hopplus.learning.ppo import Batch, Improved, ppo_loss
from hopplus.learning.ppo_kernel import MOST_INPUTS, PPOKernel, unfit
from hopplus.learning.search_distillation import distillation_loss
from hopplus.models.nets import ActorCritic, Inputs
from hopplus.models.part import Metrics
from hopplus.players.actor import Actor
from hopplus.types import Params


@dataclass(frozen=True)
class PolicyLoss:
    """Of one player that learns."""

    actor: Actor
    auxiliary: AuxiliaryLearners
    config: PPOConfig
    searches: bool  # it learns from its search, and not by PPO

    def rows_now(self, params: Improved, part: Batch) -> tuple[jax.Array, jax.Array]:
        """[M, A] log-probabilities and [M] values of a set's rows, as its parameters have them."""
        inputs = self.first_inputs(params.policy, params.context, part)
        return jax.vmap(params.policy.from_inputs)(inputs, part.view.legal)

    def first_inputs(self, policy: ActorCritic, context: Params | None, part: Batch) -> Inputs:
        """[M, ...] what the first layer reads of a set's rows, with the contexts that parameters as
        they are now would give."""
        if self.actor.context.learned_by_policy:
            part = self.auxiliary.replay(self.actor.context, context, part, self.config)
        over_rows = jax.vmap(self.actor.inputs, in_axes=(None, 0, 0))
        return over_rows(policy, part.view, part.inferred)

    @property
    def lacking(self) -> str | None:
        """What there would have to be for the loss to have one kernel; None where it can."""
        if self.searches:
            return "to learn by PPO, not from a search"
        if self.config.lola.step:
            return "--ppo.lola.step to be 0"
        return unfit(self.actor.net, self.actor.actions)

    @property
    def fused(self) -> bool:
        """Whether the gradient of the loss is found by one kernel."""
        wanted = self.config.gradient
        return wanted == "fused" or (wanted == "auto" and on_gpu() and self.lacking is None)

    def slopes(self, entropy_weight: jax.Array, rows: int) -> PolicySlope:
        """How the slope of a set's loss is found, for minibatches of so many rows."""
        c, rollouts = self.config, self.auxiliary.imagined_rollouts
        imagined_value_weight = rollouts.config.critic_weight if rollouts else 1.0

        def loss(params: Improved, part: Batch, other: Other) -> tuple[jax.Array, Metrics]:
            logits, value = self.rows_now(params, part)
            if self.searches:
                return distillation_loss(logits, value, part, c.value_weight)
            total, found = ppo_loss(logits, value, part, c, entropy_weight, imagined_value_weight)
            if other is not None:
                found["lola/gain"] = lola_gain(self.rows_now, (params, part), other, c.unroll)
                total -= c.lola.step * found["lola/gain"]
            return total, found

        if not self.fused:
            return PlainSlope(loss)
        if spread_by_xla():
            return self._left_to_xla("takes the games of a seed on one device", loss)
        if (block := self.kernel.block(rows)) is None:
            shared = self.kernel.shares(rows)
            why = "has no room on this machine" if shared else f"cannot share {rows:,} rows"
            return self._left_to_xla(why, loss)
        given = (self.first_inputs, entropy_weight, imagined_value_weight)
        return FusedSlope(self.kernel, block, *given)

    @property
    def kernel(self) -> PPOKernel:
        """That of such a policy. Its first layer is inside where all that it reads is known before
        anything is learned, and little enough."""
        actor, net = self.actor, self.actor.net
        inputs = math.prod(actor.shape) + 1 + actor.given_size
        if net.kind != "mlp" or inputs > MOST_INPUTS or actor.context.learned_by_policy:
            inputs = 0
        shape = (actor.actions, net.hidden, net.layers, self.config, inputs)
        imagines = self.auxiliary.imagined_rollouts is not None
        return PPOKernel(*shape, imagines=imagines, interpret=not on_gpu())

    def _left_to_xla(self, why: str, loss: Loss) -> PlainSlope:
        """Where the kernel cannot be, unless it was asked for."""
        if self.config.gradient == "fused":
            raise ConfigError(f"--ppo.gradient fused {why}: take plain")
        return PlainSlope(loss)
