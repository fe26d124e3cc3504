"""One update of everyone who learns: play, look back, improve."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

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
from hopplus.learning.moments import Moments, goals_taken, moments_of
from hopplus.learning.online import by_set
from hopplus.learning.ppo import Batch, explained, ppo_loss
from hopplus.learning.returns import episode_metrics, lambda_returns, shared_reward
from hopplus.learning.rollout import Play, rollout, start
from hopplus.models.history import recalled
from hopplus.models.memory import forgotten, state_of
from hopplus.models.part import Metrics
from hopplus.players.actor import Actor
from hopplus.players.mind import Mind
from hopplus.players.planner import Planner
from hopplus.players.seating import Seating
from hopplus.types import Memory, Params, Trajectory, View

Improved: TypeAlias = tuple[Params, optax.OptState]  # [sets, ...] the policy and its optimiser


class Lesson(eqx.Module):
    """What an update was made from, for whoever wants to look into it."""

    plays: Play  # [B, ...] the games after what was played
    trajectory: Trajectory  # [T, B, ...]
    batch: Batch  # [sets, M, ...] what the policy learned from


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
    commit: Callable[[Improved, Improved, jax.Array], Improved] = lambda old, new, updates: new
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
            optimiser=jax.vmap(self.optimiser.init)(minds.policy),
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

    def _play(self, params: tuple[Params, ...], plays: Play) -> tuple[Play, Trajectory, Moments]:
        plays, trajectory = rollout(self.game, self.seating, params, plays, self.config.unroll)
        size = self.actor.parts.goal_size
        played = moments_of(trajectory, self.learning, self.seats, size)
        if belief := self.actor.parts.belief:
            goals = goals_taken(trajectory.outcome, self.seats, belief.config.none)
            played = replace(played, inferred=goals)
        return plays, trajectory, played

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
        policy, optimiser, losses = self.improve(
            minds.policy, now.optimiser, lessons, now.updates, key_epochs
        )
        params = self.with_minds(now.params, replace(minds, policy=policy))
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
            inferred=trajectory.act.inferred[:, :, seats, : self.actor.parts.goal_size],
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

    def _remembered(self, trajectory: Trajectory) -> dict[str, jax.Array]:
        """[T, B, n, ...] the memories before each step, and where they began anew."""
        if not self.actor.remembers:
            return {}
        memory = trajectory.memory[self.learning]
        before = state_of(memory)
        over = jnp.pad(trajectory.outcome.done[:-1], ((1, 0), (0, 0)))[:, :, None]
        fresh = jnp.broadcast_to(forgotten(memory, over), before.shape[:3])
        return {"before": before, "fresh": fresh}

    def recalled(self, policy: Params, part: Batch) -> Batch:
        """Whole games [k * T * g] of a set with what the policy remembers now, from what it did
        remember before the first of them."""
        assert part.before is not None
        seats, steps = self.beside.seats.shape[1], self.config.unroll

        def games(leaf: jax.Array) -> jax.Array:  # [k * g, T, ...]
            rows = leaf.reshape(seats, steps, -1, *leaf.shape[1:])
            return jnp.moveaxis(rows, 1, 2).reshape(-1, steps, *leaf.shape[1:])

        def rows(leaf: jax.Array) -> jax.Array:
            split = leaf.reshape(seats, -1, steps, *leaf.shape[2:])
            return jnp.moveaxis(split, 2, 1).reshape(-1, *leaf.shape[2:])

        before, view, fresh = jax.tree.map(games, (part.before, part.view, part.fresh))
        over_games = jax.vmap(recalled, in_axes=(None, 0, 0, 0))
        _, after = over_games(policy.history, before[:, 0], view, fresh)
        return replace(part, inferred=rows(after))

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
        sets: Params,
        optimiser: optax.OptState,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[Params, optax.OptState, Metrics]:
        """Several passes over the batch in random minibatches, every set of parameters alike."""
        c = self.config
        entropy_weight = self.entropy_weight(updates)

        def loss(params: Params, part: Batch) -> tuple[jax.Array, Metrics]:
            if self.actor.remembers:
                part = self.recalled(params, part)
            if self.search:
                return imitation_loss(params, part, self.actor.judge, c.value_weight)
            return ppo_loss(params, part, self.actor.judge, c, entropy_weight)

        def step(
            params: Params, optimiser: optax.OptState, part: Batch
        ) -> tuple[Params, optax.OptState, Metrics]:
            (_, parts), slope = jax.value_and_grad(loss, has_aux=True)(params, part)
            change, optimiser = self.optimiser.update(slope, optimiser, params)
            parts["gradient_norm"] = optax.tree.norm(slope)
            return optax.apply_updates(params, change), optimiser, parts

        def minibatch(
            carry: tuple[Params, optax.OptState], rows: jax.Array
        ) -> tuple[tuple[Params, optax.OptState], Metrics]:
            part = jax.tree.map(lambda leaf: leaf[:, rows], batch)
            params, optimiser, parts = jax.vmap(step)(*carry, part)
            return (params, optimiser), parts

        def epoch(
            carry: tuple[Params, optax.OptState], key: jax.Array
        ) -> tuple[tuple[Params, optax.OptState], Metrics]:
            real = c.steps * self.beside.seats.shape[1]
            rows = minibatch_rows(key, real, c.minibatches, c.games, self.actor.remembers)
            if dreams := self.beside.dreams:  # every minibatch has its share of them
                key_dreams = jax.random.fold_in(key, 1)
                more = minibatch_rows(key_dreams, dreams.rows, c.minibatches, dreams.lanes, True)
                rows = jnp.concatenate([rows, real + more], axis=1)
            return jax.lax.scan(minibatch, carry, rows)

        carry, parts = jax.lax.scan(epoch, (sets, optimiser), jax.random.split(key, c.epochs))
        carry = self.commit((sets, optimiser), carry, updates)
        return *carry, jax.tree.map(lambda leaf: leaf.mean(axis=(0, 1)), parts)


def minibatch_rows(
    key: jax.Array, rows: int, minibatches: int, games: int, whole_games: bool
) -> jax.Array:
    """[minibatches, rows / minibatches] int32, the rows of a batch in random parts.

    Rows run [..., B]: a row's game is its number modulo `games`. Parts are any rows; or, for
    players with memory and where shuffling all of them is not worth its time, `whole_games`, each
    game's steps together and in their order. Games that do not divide are left out this time.
    """
    if not whole_games:
        return jax.random.permutation(key, rows).reshape(minibatches, -1)
    kept = games - games % minibatches
    chosen = jax.random.permutation(key, games)[:kept].reshape(minibatches, 1, -1)
    first_rows = jnp.arange(0, rows, games)[None, :, None]
    return (first_rows + chosen).reshape(minibatches, -1)
