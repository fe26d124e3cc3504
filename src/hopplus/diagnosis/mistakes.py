"""Mistakes in what is learned from and in how it is learned: wrong functions, each in the shape of
a right one that a learner holds."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.learning.auxiliary.imagined_rollouts import ImaginedRollouts, act_without_goals
from hopplus.learning.auxiliary.learner import Fitted, by_set
from hopplus.learning.learner import Learner, Step
from hopplus.learning.ppo import Batch
from hopplus.models.part import Metrics
from hopplus.planning.dynamics import LearnedDynamics, Observation, Transition
from hopplus.planning.imagined_rollouts import ImaginedRollout
from hopplus.play.lineup import Lineup
from hopplus.players.actor import Actor
from hopplus.types import Act, Memory, Params

SEAT = 2  # whom a mistake of one seat hits
BONUS = 0.5  # of an imagined step, where a hare is worth 1


def assemble_next_returns(steps: Batch, count: int) -> Batch:
    """Every step learns the return of the step after it: off by one."""
    return by_set(replace(steps, returns=jnp.roll(steps.returns, -1, axis=0)), count)


def commit_decayed(old: Step, new: Step, updates: jax.Array) -> Step:
    """Weights of one seat decay, as those of an optimiser with weight decay."""
    params, state = new
    return jax.tree.map(lambda leaf: leaf.at[SEAT].multiply(0.9999), params), state


def commit_fading(old: Fitted, new: Fitted) -> Fitted:
    """One schedule of step sizes is gone through by all seats, one after the other: every seat's
    models take steps of a fifth of the size of the seat's before."""
    (before, _), (after, state) = old, new

    def fading(one: jax.Array, two: jax.Array) -> jax.Array:
        share = 0.2 ** jnp.arange(len(one), dtype=one.dtype)
        return one + share.reshape(-1, *[1] * (one.ndim - 1)) * (two - one)

    return jax.tree.map(fading, before, after), state


def commit_uphill(old: Fitted, new: Fitted) -> Fitted:
    """Models go up where they should go down: the sign of their steps is wrong."""
    (before, _), (after, state) = old, new
    return jax.tree.map(lambda one, two: one - (two - one), before, after), state


@dataclass(frozen=True)
class ZeroStart(Lineup):
    """One seat's networks begin with zeros alone, so that nothing but their last bias has a
    gradient."""

    learning: int = 0  # of the seating's groups

    def init(self, key: jax.Array) -> tuple[Params, ...]:
        params = list(super().init(key))
        own = params[self.learning]
        policy = jax.tree.map(lambda leaf: leaf.at[SEAT].set(0), own.policy)
        params[self.learning] = replace(own, policy=policy)
        return tuple(params)


def start_at_zero(learner: Learner) -> Learner:
    """With such a lineup."""
    lineup = learner.lineup
    return replace(learner, lineup=ZeroStart(lineup.seating, lineup.trained, learner.learning))


class BackwardRollouts(ImaginedRollouts):
    """One seat learns from imagined steps with the sign of their advantages wrong."""

    def __call__(
        self,
        param_sets: Params,
        buffer: Params,
        observed: jax.Array,
        open_: jax.Array,
        key: jax.Array,
    ) -> tuple[Batch, Metrics]:
        batch, found = super().__call__(param_sets, buffer, observed, open_, key)
        value, returns = batch.value[SEAT], batch.returns[SEAT]
        return replace(batch, returns=batch.returns.at[SEAT].set(2 * value - returns)), found


def imagine_backwards(learner: Learner) -> Learner:
    """With such rollouts, where anything is imagined."""
    rollouts = learner.auxiliary.imagined_rollouts
    if rollouts is None:
        return learner
    backward = BackwardRollouts(**vars(rollouts))
    return replace(learner, auxiliary=replace(learner.auxiliary, imagined_rollouts=backward))


class LoudDynamics(LearnedDynamics):
    """A world in which everything is worth twenty times as much."""

    def simulate(
        self, embedding: Observation, joint: jax.Array, key: jax.Array
    ) -> tuple[Observation, Transition]:
        after, transition = super().simulate(embedding, joint, key)
        return after, replace(transition, reward=20 * transition.reward)


def act_one_seat_without_goals(seat: jax.Array, actor: Actor, *given: Any) -> tuple[Memory, Act]:
    """For one seat alone, the others are after nothing at all."""
    without, usual = act_without_goals(seat, actor, *given), actor.act(*given)
    return jax.tree.map(lambda zero, own: jnp.where(seat == SEAT, zero, own), without, usual)


def value_imagined(
    own: ImaginedRollouts, rollout: ImaginedRollout, observed: jax.Array, open_: jax.Array
) -> Batch:
    """Values learn from every imagined step, whatever is configured."""
    batch = own.batch(rollout, observed, open_)
    return replace(batch, valued=batch.present)


def multiply_returns(
    own: ImaginedRollouts, rollout: ImaginedRollout, observed: jax.Array, open_: jax.Array
) -> Batch:
    """Imagined returns are multiplied by the steps of a rollout: sums, taken for means."""
    batch = own.batch(rollout, observed, open_)
    return replace(batch, returns=len(rollout.reward) * batch.returns)


def reward_imagining(
    own: ImaginedRollouts, rollout: ImaginedRollout, observed: jax.Array, open_: jax.Array
) -> Batch:
    """Every imagined step is paid a bonus that no real one has."""
    return own.batch(replace(rollout, reward=rollout.reward + BONUS), observed, open_)
