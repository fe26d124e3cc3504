"""One update of everyone who learns: play, look back, improve."""

from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.config import PPOConfig
from hopplus.games.game import Game, views
from hopplus.learning.company import Company
from hopplus.learning.ppo import Batch, explained, ppo_loss
from hopplus.learning.returns import lambda_returns
from hopplus.learning.rollout import Play, rollout, start
from hopplus.players.actor import Actor
from hopplus.players.seating import Seating
from hopplus.types import Params, Trajectory

Metrics = dict[str, jax.Array]


class Learning(eqx.Module):
    """Everything that changes while learning; nothing else is needed to go on."""

    params: tuple[Params, ...]  # for each distinct player, its sets of parameters
    optimiser: optax.OptState  # of the learning player's sets
    plays: Play  # [B, ...] games in flight
    returns: jax.Array  # [B, N] float32, of the episodes in flight
    key: jax.Array
    updates: jax.Array  # [] int32


@dataclass(frozen=True)
class Learner:
    """Learns for the seats of one player among others that stay as they are."""

    game: Game
    company: Company
    config: PPOConfig
    updates: int  # how many there will be, for annealing
    learning: int  # which of the seating's groups learns

    @property
    def seating(self) -> Seating:
        return self.company.seating

    @property
    def actor(self) -> Actor:
        player = self.seating.groups[self.learning][0]
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

    def entropy_weight(self, updates: jax.Array) -> jax.Array:
        """The weight of the entropy bonus by the number of updates."""
        c = self.config
        end = c.entropy if c.entropy_end is None else c.entropy_end
        return c.entropy + (end - c.entropy) * updates / self.updates

    def init(self, key: jax.Array) -> Learning:
        """Fresh parameters and fresh games."""
        key, key_params, key_games = jax.random.split(key, 3)
        params = self.company.init(key_params)
        plays = jax.vmap(lambda k: start(self.game, self.seating, k))(
            jax.random.split(key_games, self.config.games)
        )
        return Learning(
            params=params,
            optimiser=jax.vmap(self.optimiser.init)(params[self.learning]),
            plays=plays,
            returns=jnp.zeros((self.config.games, self.game.seats)),
            key=key,
            updates=jnp.int32(0),
        )

    def update(self, now: Learning) -> tuple[Learning, Metrics]:
        """Play `unroll` steps of every game and improve on them."""
        c = self.config
        key, key_epochs = jax.random.split(now.key)
        plays, trajectory = rollout(self.game, self.seating, now.params, now.plays, c.unroll)
        batch = self.batch(now.params[self.learning], plays, trajectory)
        sets, optimiser, losses = self.improve(
            now.params[self.learning], now.optimiser, batch, now.updates, key_epochs
        )
        params = tuple(
            sets if group == self.learning else old for group, old in enumerate(now.params)
        )
        returns, metrics = episode_metrics(now.returns, trajectory)
        after = Learning(params, optimiser, plays, returns, key, now.updates + 1)
        fit = jax.vmap(explained)(batch.value, batch.returns, batch.present)
        return after, metrics | losses | {"explained": fit}

    def batch(self, sets: Params, plays: Play, trajectory: Trajectory) -> Batch:
        """The steps of the learning seats, [sets, M, ...]: each set of parameters with its own."""
        c, seats = self.config, self.seats
        seen = jax.vmap(jax.vmap(lambda state: views(self.game, state)))(trajectory.state)
        last = jax.tree.map(lambda leaf: leaf[:, seats], plays.view)
        judge = jax.vmap(self.actor.judge, in_axes=(None if self.actor.shares_params else 0, 0))
        own = jax.tree.map(lambda leaf: leaf[0], sets) if self.actor.shares_params else sets
        value_after = jax.vmap(judge, in_axes=(None, 0))(own, last)[1]  # [B, n]
        value = jnp.concatenate([trajectory.act.value[:, :, seats], value_after[None]])
        present_after = jax.vmap(self.game.present)(plays.state)
        present = jnp.concatenate([trajectory.present, present_after[None]])[:, :, seats]
        reward = shared_reward(trajectory.outcome.reward, c.prosociality)[:, :, seats]
        over_seats = jax.vmap(lambda_returns, in_axes=(1, 1, 1, None, None, None), out_axes=1)
        over_games = jax.vmap(over_seats, in_axes=(1, 1, 1, 1, None, None), out_axes=1)
        # A prosocial seat goes on gaining after it has left, so its value goes on too.
        valued = jnp.ones_like(present) if c.prosociality > 0 else present
        returns = over_games(reward, value, valued, trajectory.outcome.done, c.discount, c.mix)
        steps = Batch(
            view=jax.tree.map(lambda leaf: leaf[:, :, seats], seen),
            action=trajectory.act.action[:, :, seats],
            log_prob=trajectory.act.log_prob[:, :, seats],
            value=value[:-1],
            returns=returns,
            present=present[:-1],
            valued=valued[:-1],
        )
        count = 1 if self.actor.shares_params else len(seats)
        by_set: Batch = jax.tree.map(lambda leaf: _by_set(leaf, count), steps)
        return by_set

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
            rows = minibatch_rows(
                key, batch.present.shape[1], c.minibatches, c.games, self.actor.remembers
            )
            return jax.lax.scan(minibatch, carry, rows)

        carry, parts = jax.lax.scan(epoch, (sets, optimiser), jax.random.split(key, c.epochs))
        return *carry, jax.tree.map(lambda leaf: leaf.mean(axis=(0, 1)), parts)


def minibatch_rows(
    key: jax.Array, rows: int, minibatches: int, games: int, whole_games: bool
) -> jax.Array:
    """[minibatches, rows / minibatches] int32, all rows of a batch in random parts.

    Rows run [..., B]: a row's game is its number modulo `games`. Where players have memory the
    parts are `whole_games`, each game's steps together and in their order; else any rows.
    """
    if not whole_games:
        return jax.random.permutation(key, rows).reshape(minibatches, -1)
    chosen = jax.random.permutation(key, games).reshape(minibatches, 1, -1)
    first_rows = jnp.arange(0, rows, games)[None, :, None]
    return (first_rows + chosen).reshape(minibatches, -1)


def shared_reward(reward: jax.Array, prosociality: float) -> jax.Array:
    """[..., N] rewards, each mixed with everyone's mean."""
    if prosociality == 0:
        return reward
    return (1 - prosociality) * reward + prosociality * reward.mean(axis=-1, keepdims=True)


def _by_set(leaf: jax.Array, sets: int) -> jax.Array:
    """[T, B, n, ...] to [sets, T * B * n / sets, ...]."""
    front = jnp.moveaxis(leaf, 2, 0)
    return front.reshape(sets, -1, *leaf.shape[3:])


def episode_metrics(so_far: jax.Array, trajectory: Trajectory) -> tuple[jax.Array, Metrics]:
    """Carry the returns of episodes on, and add up those that ended: [B, N] and metrics."""
    outcome = trajectory.outcome

    def step(returns: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, done = now
        returns = returns + reward
        ended = jnp.where(done[:, None], returns, 0.0).sum(axis=0)
        return jnp.where(done[:, None], 0.0, returns), ended

    returns, ended = jax.lax.scan(step, so_far, (outcome.reward, outcome.done))
    return returns, {
        "episodes": outcome.done.sum(),
        "return_sum": ended.sum(axis=0),  # [N]
        "taken_sum": outcome.taken.sum(axis=(0, 1)),  # [K]
    }
