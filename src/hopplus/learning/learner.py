"""One update of everyone who learns: play, look back, improve."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.config import PPOConfig, SearchConfig
from hopplus.games.game import Game, views
from hopplus.learning.beside import BesidePolicy, Kept
from hopplus.learning.company import Company
from hopplus.learning.imitation import imitation_loss
from hopplus.learning.moments import Moments, moments_of
from hopplus.learning.online import by_set
from hopplus.learning.ppo import Batch, explained, ppo_loss
from hopplus.learning.returns import episode_metrics, lambda_returns, shared_reward
from hopplus.learning.rollout import Play, rollout, start
from hopplus.learning.through_time import minibatch_rows, replay_games
from hopplus.models.nets import ActorCritic
from hopplus.models.part import Metrics
from hopplus.players.actor import Actor
from hopplus.players.mind import Mind
from hopplus.players.planner import Planner
from hopplus.players.seating import Seating
from hopplus.types import Memory, Params, Trajectory, View


class Lesson(eqx.Module):
    """What an update was made from, for whoever wants to look into it."""

    plays: Play  # [B, ...] the games after what was played
    trajectory: Trajectory  # [T, B, ...]
    batch: Batch  # [sets, M, ...] what the policy learned from


class Improved(eqx.Module):
    """What the policy's loss improves, [sets, ...]."""

    policy: ActorCritic
    context: Params | None  # None for one that learns by other means, or not at all


Step: TypeAlias = tuple[Improved, optax.OptState]  # what an update replaces by what is better


class Learning(eqx.Module):
    """Everything that changes while learning; nothing else is needed to go on."""

    params: tuple[Params, ...]  # for each distinct player, its sets of parameters
    optimiser: optax.OptState  # of the learning player's sets
    kept: Kept  # what the parts beside the policy need to go on
    plays: Play  # [B, ...] games in flight
    returns: jax.Array  # [B, N] float32, of the episodes in flight
    key: jax.Array
    updates: jax.Array  # [] int32; the same for all seeds


@dataclass(frozen=True)
class Learner:
    """Learns for the seats of one player among others that stay as they are."""

    game: Game
    company: Company
    config: PPOConfig
    updates: int  # how many there will be, for annealing
    learning: int  # which of the seating's groups learns
    beside: BesidePolicy
    # Functions by which it works, as fields: the diagnosis tries itself on learners in which one of
    # them makes a mistake, and wants them to be alike in everything else.
    assemble: Callable[[Batch, int], Batch] = by_set  # steps [T, B, n] for each set of parameters
    commit: Callable[[Step, Step, jax.Array], Step] = lambda old, new, updates: new
    log_episodes: Callable[[jax.Array, Trajectory], tuple[jax.Array, Metrics]] = episode_metrics

    @property
    def seating(self) -> Seating:
        return self.company.seating

    @property
    def search(self) -> SearchConfig | None:
        """The search that the policy learns from; None for PPO."""
        player = self.seating.groups[self.learning][0]
        return player.config if isinstance(player, Planner) else None

    @property
    def discount(self) -> float:
        """What a reward is worth a step later."""
        return self.search.worth if self.search else self.config.discount

    @property
    def actor(self) -> Actor:
        player = self.seating.groups[self.learning][0]
        if isinstance(player, Planner):
            return player.actor
        assert isinstance(player, Actor)
        return player

    @property
    def seats(self) -> np.ndarray:
        return self.seating.groups[self.learning][1]

    @cached_property
    def optimiser(self) -> optax.GradientTransformation:
        norm = self.config.gradient_norm
        return optax.chain(
            optax.clip_by_global_norm(norm), optax.adam(self.learning_rate, eps=1e-5)
        )

    @property
    def learning_rate(self) -> optax.Schedule:
        """The step size by the number of gradient steps."""
        c = self.config
        steps = self.updates * c.epochs * c.minibatches
        return optax.linear_schedule(c.learning_rate, 0.0 if c.anneal else c.learning_rate, steps)

    def learning_rate_at(self, update: int) -> float:
        """The step size that an update begins with; updates count from 1."""
        c = self.config
        return float(self.learning_rate((update - 1) * c.epochs * c.minibatches))

    def entropy_weight(self, updates: jax.Array) -> jax.Array:
        """The weight of the entropy bonus by the number of updates."""
        c = self.config
        end = c.entropy if c.entropy_end is None else c.entropy_end
        return c.entropy + (end - c.entropy) * updates / self.updates

    def init(self, key: jax.Array) -> Learning:
        """Fresh parameters and fresh games."""
        key, key_params, key_games = jax.random.split(key, 3)
        params = self.company.init(key_params)
        minds = self.beside.known(params[self.learning])
        params = self.with_minds(params, minds)
        plays = jax.vmap(lambda k: start(self.game, self.seating, k))(
            jax.random.split(key_games, self.config.games)
        )
        shapes = jax.eval_shape(self._play, params, plays)[2]
        played = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return Learning(
            params=params,
            optimiser=jax.vmap(self.optimiser.init)(self.improved(minds)),
            kept=self.beside.init(minds, played),
            plays=plays,
            returns=jnp.zeros((self.config.games, self.game.seats)),
            key=key,
            updates=jnp.int32(0),
        )

    def init_all(self, keys: jax.Array) -> Learning:
        """As `init` for the keys [S] of all seeds."""
        learning: Learning = jax.vmap(self.init, out_axes=self.axes)(keys)
        return learning

    def update_all(self, now: Learning) -> tuple[Learning, Metrics]:
        """As `update` for all seeds, [S, ...] but for the number of updates."""
        return jax.vmap(self.update, in_axes=(self.axes,), out_axes=(self.axes, 0))(now)

    @property
    def axes(self) -> Learning:
        """The number of updates is one for all seeds, so that what is not due costs nothing."""
        return Learning(0, 0, 0, 0, 0, 0, updates=None)  # type: ignore[arg-type]

    def with_minds(self, params: tuple[Params, ...], minds: Mind) -> tuple[Params, ...]:
        """The parameters of everyone with those of the learning player in place."""
        return tuple(minds if group == self.learning else old for group, old in enumerate(params))

    def improved(self, minds: Mind) -> Improved:
        """What the policy's loss is to improve of minds [sets, ...]."""
        context = minds.context if self.actor.context.learned_by_policy else None
        return Improved(minds.policy, context)

    def with_improved(self, minds: Mind, improved: Improved) -> Mind:
        """The minds with that in place."""
        context = minds.context if improved.context is None else improved.context
        return replace(minds, policy=improved.policy, context=context)

    def _play(self, params: tuple[Params, ...], plays: Play) -> tuple[Play, Trajectory, Moments]:
        plays, trajectory = rollout(self.game, self.seating, params, plays, self.config.unroll)
        context = self.actor.context
        played = moments_of(trajectory, self.learning, self.seats, context.size)
        assert played.inferred is not None
        known = context.known_later(played.inferred, trajectory.outcome, self.seats)
        return plays, trajectory, replace(played, inferred=known)

    def update(self, now: Learning) -> tuple[Learning, Metrics]:
        """Play `unroll` steps of every game and improve on them."""
        return self.update_shown(now)[:2]

    def update_shown(self, now: Learning) -> tuple[Learning, Metrics, Lesson]:
        """As `update`, and what it was made from."""
        key, key_epochs = jax.random.split(now.key)
        plays, trajectory, played = self._play(now.params, now.plays)
        minds: Mind = now.params[self.learning]
        batch = self.batch(minds, plays, trajectory)
        fit = jax.vmap(explained)(batch.value, batch.returns, batch.present)
        metrics = {"explained": fit}
        minds, kept, lessons, found = self.beside.learn(
            minds, now.kept, played, batch, now.updates, jax.random.fold_in(key_epochs, 1)
        )
        improved, optimiser, losses = self.improve(
            self.improved(minds), now.optimiser, lessons, now.updates, key_epochs
        )
        params = self.with_minds(now.params, self.with_improved(minds, improved))
        returns, episodes = self.log_episodes(now.returns, trajectory)
        after = Learning(params, optimiser, kept, plays, returns, key, now.updates + 1)
        shown = Lesson(plays, trajectory, lessons)
        return after, episodes | metrics | found | losses, shown

    def batch(self, minds: Mind, plays: Play, trajectory: Trajectory) -> Batch:
        """The steps of the learning seats, [sets, M, ...]: each set of parameters with its own."""
        c, seats = self.config, self.seats
        seen = jax.vmap(jax.vmap(lambda state: views(self.game, state)))(trajectory.state)
        last = jax.tree.map(lambda leaf: leaf[:, seats], plays.view)
        value_after = self.values(minds, plays.memory[self.learning], last)  # [B, n]
        value = jnp.concatenate([trajectory.act.value[:, :, seats], value_after[None]])
        present_after = jax.vmap(self.game.present)(plays.state)
        present = jnp.concatenate([trajectory.present, present_after[None]])[:, :, seats]
        reward = shared_reward(trajectory.outcome.reward, c.prosociality)[:, :, seats]
        over_seats = jax.vmap(lambda_returns, in_axes=(1, 1, 1, None, None, None), out_axes=1)
        over_games = jax.vmap(over_seats, in_axes=(1, 1, 1, 1, None, None), out_axes=1)
        # A prosocial seat goes on gaining after it has left, so its value goes on too.
        valued = jnp.ones_like(present) if c.prosociality > 0 else present
        done = trajectory.outcome.done
        returns = over_games(reward, value, valued, done, self.discount, c.mix)
        steps = Batch(
            view=jax.tree.map(lambda leaf: leaf[:, :, seats], seen),
            inferred=trajectory.act.inferred[:, :, seats, : self.actor.context.size],
            action=trajectory.act.action[:, :, seats],
            log_prob=trajectory.act.log_prob[:, :, seats],
            value=value[:-1],
            reward=reward,
            returns=returns,
            present=present[:-1],
            valued=valued[:-1],
            aim=trajectory.act.logits[:, :, seats] if self.search else None,
            **self._remembered(trajectory),
        )
        count = 1 if self.actor.shares_params else len(seats)
        return self.assemble(steps, count)

    def _remembered(self, trajectory: Trajectory) -> dict[str, Any]:
        """[T, B, n, ...] the memories before each step, and where episodes begin; only for a
        context that the policy's loss improves, which has to go through them again."""
        if not self.actor.context.learned_by_policy:
            return {}
        shape = (*trajectory.begins.shape, len(self.seats))
        return {
            "before": trajectory.memory[self.learning],
            "begins": jnp.broadcast_to(trajectory.begins[..., None], shape),
            "episode": jnp.broadcast_to(trajectory.episode[..., None], shape),
        }

    def replayed(self, context: Params, part: Batch) -> Batch:
        """Whole games of a set with the context as it would be now: rows [k * T * g] of real ones,
        then [H * l] of imagined ones."""
        lengths = [(self.beside.seats.shape[1], self.config.unroll)]
        imagined = 0
        if dreams := self.beside.dreams:
            imagined = dreams.config.horizon * (dreams.lanes // self.config.minibatches)
            lengths.append((1, dreams.config.horizon))
        return replay_games(self.actor.context, context, part, imagined, lengths)

    def values(self, minds: Mind, memory: Memory, seen: View) -> jax.Array:
        """[B, n] what the learning seats hope for, with their memories and views [B, n, ...]."""
        shares = self.actor.shares_params

        def value(mind: Mind, memory: Memory, view: View) -> jax.Array:
            _, inferred = self.actor.infer(mind, memory, view)
            return self.actor.judge(mind.policy, view, inferred)[1]

        own = jax.tree.map(lambda leaf: leaf[0], minds) if shares else minds
        over_seats = jax.vmap(value, in_axes=(None if shares else 0, 0, 0))
        return jax.vmap(over_seats, in_axes=(None, 0, 0))(own, memory, seen)

    def improve(
        self,
        sets: Improved,
        optimiser: optax.OptState,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[Improved, optax.OptState, Metrics]:
        """Several passes over the batch in random minibatches, every set of parameters alike."""
        c = self.config
        entropy_weight = self.entropy_weight(updates)

        through_time = self.actor.context.learned_by_policy

        def loss(params: Improved, part: Batch) -> tuple[jax.Array, Metrics]:
            if through_time:
                part = self.replayed(params.context, part)
            if self.search:
                return imitation_loss(params.policy, part, self.actor.judge, c.value_weight)
            return ppo_loss(params.policy, part, self.actor.judge, c, entropy_weight)

        def step(
            params: Improved, optimiser: optax.OptState, part: Batch
        ) -> tuple[Improved, optax.OptState, Metrics]:
            (_, parts), slope = jax.value_and_grad(loss, has_aux=True)(params, part)
            change, optimiser = self.optimiser.update(slope, optimiser, params)
            parts["gradient_norm"] = optax.tree.norm(slope)
            return optax.apply_updates(params, change), optimiser, parts

        def minibatch(
            carry: tuple[Improved, optax.OptState], rows: jax.Array
        ) -> tuple[tuple[Improved, optax.OptState], Metrics]:
            part = jax.tree.map(lambda leaf: leaf[:, rows], batch)
            params, optimiser, parts = jax.vmap(step)(*carry, part)
            return (params, optimiser), parts

        def epoch(
            carry: tuple[Improved, optax.OptState], key: jax.Array
        ) -> tuple[tuple[Improved, optax.OptState], Metrics]:
            real = c.steps * self.beside.seats.shape[1]
            rows = minibatch_rows(key, real, c.minibatches, c.games, through_time)
            if dreams := self.beside.dreams:  # every minibatch has its share of them
                key_dreams = jax.random.fold_in(key, 1)
                more = minibatch_rows(key_dreams, dreams.rows, c.minibatches, dreams.lanes, True)
                rows = jnp.concatenate([rows, real + more], axis=1)
            return jax.lax.scan(minibatch, carry, rows)

        carry, parts = jax.lax.scan(epoch, (sets, optimiser), jax.random.split(key, c.epochs))
        carry = self.commit((sets, optimiser), carry, updates)
        return *carry, jax.tree.map(lambda leaf: leaf.mean(axis=(0, 1)), parts)
