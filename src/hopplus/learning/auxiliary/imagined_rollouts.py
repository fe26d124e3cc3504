"""Imagined play as something the policy learns from."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ImagineConfig, PPOConfig
from hopplus.games.game import Game, views
from hopplus.learning.auxiliary.learner import flat, number_among
from hopplus.learning.auxiliary.transitions import (
    Transitions,
    draw_places,
    empty_buffer,
    push,
)
from hopplus.learning.ppo import Batch, source_metrics
from hopplus.learning.returns import lambda_returns, worth_later
from hopplus.learning.shares import own_share
from hopplus.learning.social_rewards import shared_reward
from hopplus.lookup import at
from hopplus.models.part import Metrics
from hopplus.models.sampling import draw
from hopplus.models.world import World
from hopplus.planning.dynamics import LearnedDynamics, Observation, observe
from hopplus.planning.imagined_rollouts import Imagination, ImaginedRollout
from hopplus.players.actor import Actor
from hopplus.players.context.context import suppose
from hopplus.players.parameters import PlayerParams
from hopplus.players.player import act_from
from hopplus.types import Act, Memory, View


@dataclass(frozen=True)
class ImaginedRollouts:
    """Imagines for each set of parameters, from states that its own seats have been in."""

    game: Game
    actor: Actor
    config: ImagineConfig
    ppo: PPOConfig
    seats: np.ndarray  # [sets, k]
    updates: int  # how many there will be, for the schedule of the real ratio
    # Functions, as fields: the diagnosis puts others in their place.
    dynamics: Callable[[World, int, bool], LearnedDynamics] = LearnedDynamics
    act: Callable[..., tuple[Memory, Act]] = lambda seat, actor, *given: actor.act(*given)
    make_batch: Callable[..., Batch] = lambda own, *given: own.batch(*given)

    @property
    def replicas(self) -> int:
        """Imagined games side by side, of a set."""
        wanted = self._wanted(self.config.least_real_ratio)
        return max(self.ppo.minibatches, round(wanted))

    def _wanted(self, real_ratio: float | jax.Array) -> Any:
        """How many of them are as many steps as that ratio asks for."""
        real = self.ppo.steps * int(self.seats.shape[1])
        return real * (1 - real_ratio) / real_ratio / self.config.horizon

    def used(self, updates: jax.Array) -> Any:
        """How many of the replicas are learned from by now: as many as the ratio asks for, though
        there is one for every minibatch."""
        c = self.config
        if c.real_ratio_end is None:
            return min(round(self._wanted(c.real_ratio)), self.replicas)
        gone = jnp.minimum(updates / self.updates, 1.0)  # a diagnosis may go on from there
        return jnp.round(self._wanted(c.real_ratio + (c.real_ratio_end - c.real_ratio) * gone))

    def scheduled(self, batch: Batch, found: Metrics, used: Any) -> tuple[Batch, Metrics]:
        """So many of the replicas of a batch [sets, rows, ...]; without any, what is found of them
        means nothing, as behind a closed gate."""
        if isinstance(used, int) and used == self.replicas:
            return batch, found
        held = jnp.arange(self.rows) % self.replicas < used
        found = found | {"imagined/open": jnp.where(used > 0, found["imagined/open"], 0.0)}
        return replace(batch, present=batch.present & held, valued=batch.valued & held), found

    @property
    def rows(self) -> int:
        """Imagined steps of an update, of a set."""
        return self.replicas * self.config.horizon

    def init(self, played: Transitions) -> Transitions:
        """An empty buffer of steps to begin from, for play shaped as that [T, B, ...]."""
        return empty_buffer(_kept(played), self.config.buffer)

    def keep(self, buffer: Transitions, played: Transitions, updates: jax.Array) -> Transitions:
        return push(buffer, _kept(played), updates)

    def imagine(
        self,
        param_sets: PlayerParams,
        buffer: Transitions,
        observed: jax.Array,
        open_: jax.Array,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[Batch, Metrics]:
        """[sets, rows, ...] steps to learn from, and what they are like; blank ones while it is too
        early for any."""
        given = (param_sets, buffer, observed, open_, key)
        imagine = jax.jit(self.__call__)  # traced once: for the shapes, and to imagine
        shapes = jax.eval_shape(imagine, *given)

        def blank(*_: object) -> tuple[Batch, Metrics]:
            batch, found = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
            return replace(batch, imagined=jnp.ones_like(batch.imagined)), found

        ready = updates >= -(-self.config.warm_up // self.ppo.steps)
        batch, found = jax.lax.cond(ready, imagine, blank, *given)
        return self.scheduled(batch, found, self.used(updates))

    def __call__(
        self,
        param_sets: PlayerParams,
        buffer: Transitions,
        observed: jax.Array,
        open_: jax.Array,
        key: jax.Array,
    ) -> tuple[Batch, Metrics]:
        """[sets, rows, ...] steps to learn from, and what they are like.

        Real rewards are `observed` [sets, 4]: the least and the largest so far, mean and standard
        deviation of late. Where the gate is not open [sets], nobody is present in them.
        """
        key_rows, key_imagined = jax.random.split(key)
        starts = self.starts(buffer, key_rows)
        keys = own_share(jax.random.split(key_imagined, (len(self.seats), self.replicas)))

        def of_set(
            player_params: PlayerParams,
            seat: jax.Array,
            starts: Any,
            keys: jax.Array,
            *known: jax.Array,
        ) -> tuple[Batch, Metrics]:
            imagination = self.imagination(player_params, seat)
            over_replicas = jax.vmap(imagination, in_axes=(1, 1, 0), out_axes=1)
            observations, memories = starts
            rollout = over_replicas(observations, memories, keys)  # [H, replicas, ...]
            batch = self.make_batch(self, rollout, *known)
            return batch, imagined_metrics(rollout, batch, known[1])

        over_sets = jax.vmap(of_set, in_axes=(0, 0, 1, 0, 0, 0))
        first = own_share(jnp.asarray(self.seats[:, 0]))  # whose number stands for the set
        return over_sets(param_sets, first, starts, keys, observed, open_)

    def imagination(self, player_params: PlayerParams, seat: int | jax.Array) -> Imagination:
        """A player's own imagination; it acts there as it does in play. Which seat it is must not
        matter: a fault may ask."""
        assert player_params.opponents is not None
        assert player_params.world is not None

        def decide(memory: Any, view: Any, key: jax.Array) -> Any:
            return self.act(seat, self.actor, player_params, memory, view, key)

        def supposed(inferred: jax.Array, key: jax.Array) -> jax.Array:
            return suppose(context, context.about_others(inferred), key)

        context = self.actor.context
        dynamics = self.dynamics(player_params.world, self.game.horizon, self.game.sees_all)
        later = self.ppo.gains_after_leaving
        return Imagination(decide, player_params.opponents, dynamics, supposed, later)

    def starts(self, buffer: Transitions, key: jax.Array) -> tuple[Observation, Any]:
        """[H, sets, replicas] real steps at which seats of the set were present, and their memories
        before them."""

        def start(row: jax.Array, seat: jax.Array) -> tuple[Observation, Any]:
            transition = jax.tree.map(lambda leaf: at(leaf, row), buffer)
            own = number_among(self.seats, seat)
            view = self.game.view(transition.state, seat)
            memory = jax.tree.map(lambda leaf: at(leaf, own), transition.memory)
            if not self.game.sees_all:
                return observe(self.game, view), memory
            order = (seat + jnp.arange(self.game.seats)) % self.game.seats
            legal = at(views(self.game, transition.state).legal, order)
            return Observation(view, legal), memory

        def of_set(seats: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            row, seat = draw_places(self.game, buffer, seats, key, self.rows)
            shape = (self.config.horizon, self.replicas)
            return row.reshape(shape), seat.reshape(shape)

        keys = jax.random.split(key, len(self.seats))
        drawn = jax.vmap(of_set, out_axes=1)(*own_share((jnp.asarray(self.seats), keys)))
        # Read in the order of steps, in which imagination goes through them: to turn what was read
        # takes longer than to read it.
        over_all = jax.vmap(jax.vmap(jax.vmap(start)))
        return over_all(*drawn)

    def batch(self, rollout: ImaginedRollout, observed: jax.Array, open_: jax.Array) -> Batch:
        """[rows, ...] the steps of an imagined rollout [H, replicas, ...] of one set."""
        c, ppo = self.config, self.ppo
        reward = shared_reward(rollout.reward, ppo.prosociality)[..., 0]
        match c.reward:
            case "clipped":
                reward = jnp.clip(reward, observed[0], observed[1])
            case "normalised":
                spread = reward.std()
                # Where they are all alike there is nothing to scale but rounding.
                scale = jnp.where(spread > 1e-4, observed[3] / jnp.maximum(spread, 1e-4), 0.0)
                reward = observed[2] + (reward - reward.mean()) * scale
            case "zero":
                reward = jnp.zeros_like(reward)
        value = jnp.append(rollout.act.value, rollout.last, axis=0)
        valued = jnp.ones(value.shape, bool)
        over_replicas = jax.vmap(lambda_returns, in_axes=(1, 1, 1, 1, None), out_axes=1)
        worth = worth_later(rollout.ended, ppo.discount)
        gained = reward
        if rollout.behind is not None:  # what the others are still to gain counts when it is gone
            gained = reward + ppo.discount * rollout.behind
        returns = over_replicas(gained, value, valued, worth, ppo.gae_lambda)
        present = jnp.broadcast_to(open_, returns.shape)
        steps = Batch(
            view=rollout.view,
            inferred=rollout.act.inferred,
            action=rollout.act.action,
            log_prob=rollout.act.log_prob,
            value=rollout.act.value,
            reward=reward,
            returns=returns,
            present=present,
            valued=present if c.critic_on == "both" else jnp.zeros_like(present),
            imagined=jnp.ones_like(present),
        )
        if self.actor.context.learned_by_policy:
            # Each real step comes with its memory, so that nothing before it matters.
            number = jnp.zeros_like(rollout.begins, jnp.int32)
            steps = replace(steps, before=rollout.memory, begins=rollout.begins, episode=number)
        return flat(steps)


def imagined_metrics(rollout: ImaginedRollout, batch: Batch, open_: jax.Array) -> Metrics:
    """What an imagined rollout [H, replicas, ...] of one set is like, to hold against real play."""
    predicted = rollout.reward[..., 0]
    everything = jnp.ones_like(batch.present)
    found = {
        "predicted_most": predicted.max(),
        "predicted_least": predicted.min(),
        "ended": rollout.ended.mean(),
        "open": open_.astype(jnp.float32),
    }
    named = {f"imagined/{name}": value for name, value in found.items()}
    return named | source_metrics("imagined", batch, everything, everything)


def act_without_goals(
    seat: int | jax.Array,
    actor: Actor,
    params: PlayerParams,
    memory: Memory,
    view: View,
    key: jax.Array,
) -> tuple[Memory, Act]:
    """As `Actor.act`, but the others are taken to be after nothing at all."""
    memory, inferred = actor.infer(params, memory, view)
    nothing = jnp.zeros_like(inferred)
    logits, value = actor.policy_and_value(params.policy, view, nothing)
    action = draw(key, jnp.exp(logits))
    return memory, act_from(logits, action, value, jnp.zeros(actor.goal_size), nothing)


def _kept(played: Transitions) -> Transitions:
    return flat(Transitions(played.state, played.joint, memory=played.memory))
