"""Rewards that a seat learns from besides the game's own: what it makes of the others' gains, and
of its influence on them. Returns that are logged,
evaluated and reported are the game's; what values learn from has these rewards in it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import PPOConfig
from hopplus.games.game import Game, repeat_step, views
from hopplus.learning.auxiliary.learner import by_set
from hopplus.learning.ppo import mean_of
from hopplus.models.opponent import OpponentModel, others_logits
from hopplus.models.part import Metrics
from hopplus.players.actor import Actor
from hopplus.players.context.context import suppose
from hopplus.players.parameters import PlayerParams
from hopplus.types import State, Trajectory


def shared_reward(reward: jax.Array, prosociality: float) -> jax.Array:
    """[..., N] rewards, each mixed with everyone's mean."""
    if prosociality == 0:
        return reward
    return (1 - prosociality) * reward + prosociality * reward.mean(axis=-1, keepdims=True)


def smooth_rewards(
    before: jax.Array, reward: jax.Array, done: jax.Array, decay: float
) -> tuple[jax.Array, jax.Array]:
    """e_t = decay * e_{t-1} + r_t [T, B, N], anew with every episode, from e [B, N] before; and e
    behind them, which the next steps go on from."""

    def step(before: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, done = now
        smoothed = decay * before + reward
        return jnp.where(done[:, None], 0.0, smoothed), smoothed

    after, smoothed = jax.lax.scan(step, before, (reward, done))
    return smoothed, after


def inequity(smoothed: jax.Array, alpha: float, beta: float) -> jax.Array:
    """[..., N] what unequal gains e cost each seat (Fehr and Schmidt 1999; Hughes et al. 2018):

    (alpha * sum_j max(e_j - e_i, 0) + beta * sum_j max(e_i - e_j, 0)) / (N - 1).
    """
    more = smoothed[..., None, :] - smoothed[..., :, None]  # [..., i, j] that j has than i
    cost = alpha * jnp.maximum(more, 0) + beta * jnp.maximum(-more, 0)
    return cost.sum(axis=-1) / max(1, smoothed.shape[-1] - 1)


def influence(predicted: jax.Array, action: jax.Array, chances: jax.Array) -> jax.Array:
    """[J] how far an action moved what J others do next (Jaques et al. 2019), in nats: the
    divergence of what is `predicted` [A, J, A] of them after it, from its mean over the actions
    that the seat might have taken, with these `chances` [A, J]."""
    mean = jnp.einsum("aj,ajb->jb", chances, predicted)
    found = predicted[action]
    # Where it is possible now it is so on average, unless rounding takes it away.
    apart = jnp.log(jnp.maximum(found, 1e-30)) - jnp.log(jnp.maximum(mean, 1e-30))
    return jnp.where(found > 0, found * apart, 0.0).sum(axis=-1)


@dataclass(frozen=True)
class SocialRewards:
    """What the learning seats gain or lose besides rewards and their share of the mean."""

    game: Game
    actor: Actor
    config: PPOConfig
    seats: np.ndarray  # [sets, k]
    discount: float

    def init(self) -> jax.Array | None:
        """[B, N] smoothed rewards of episodes that begin; None where nobody compares them."""
        averse = self.config.inequity.alpha > 0 or self.config.inequity.beta > 0
        return jnp.zeros((self.config.games, self.game.seats)) if averse else None

    def __call__(
        self,
        param_sets: PlayerParams,
        trajectory: Trajectory,
        smoothed: jax.Array | None,
        updates: jax.Array,
    ) -> tuple[jax.Array | None, jax.Array | None, Metrics]:
        """[T, B, n] of a trajectory, None where there is nothing; the smoothed rewards behind it;
        and means of both kinds for each set, as they are before they are weighed together."""
        c, outcome, seats = self.config, trajectory.outcome, self.seats.reshape(-1)
        parts, after, present = {}, None, trajectory.present[:, :, seats]
        if smoothed is not None:
            decay = self.discount * c.inequity.decay
            gains, after = smooth_rewards(smoothed, outcome.reward, outcome.done, decay)
            costs = inequity(gains, c.inequity.alpha, c.inequity.beta)
            parts["inequity"] = costs[:, :, seats], jnp.float32(-1), jnp.ones_like(present)
        if c.influence.weight:
            played = updates * float(c.steps)
            risen = jnp.minimum(1.0, played / c.influence.warm_up if c.influence.warm_up else 1.0)
            nats = self.influence(param_sets, trajectory)
            parts["influence"] = nats, c.influence.weight * risen, present
        if not parts:
            return None, None, {}
        total = sum(weight * values for values, weight, _ in parts.values())
        metrics = {
            f"social/{name}": jax.vmap(mean_of)(*by_set((values, counts), len(self.seats)))
            for name, (values, _, counts) in parts.items()
        }
        return jnp.asarray(total), after, metrics

    def influence(self, param_sets: PlayerParams, trajectory: Trajectory) -> jax.Array:
        """[T, B, n] of what each learning seat did on all others that go on, by its models of
        them."""
        shares, size = self.actor.shares_params, self.actor.context.size
        models, seats = param_sets.opponents, self.seats.reshape(-1)
        assert models is not None
        if shares:
            models = jax.tree.map(lambda leaf: leaf[0], models)
        act = trajectory.act
        step = (trajectory.state, act.action, trajectory.key)
        own = (act.logits[:, :, seats], act.inferred[:, :, seats, :size])
        over_seats = jax.vmap(self._of_seat, in_axes=(None if shares else 0, 0, 0, 0, None))
        over_games = jax.vmap(over_seats, in_axes=(None, None, 0, 0, 0))
        over_steps = jax.vmap(over_games, in_axes=(None, None, 0, 0, 0))
        found: jax.Array = over_steps(models, jnp.asarray(seats), *own, step)
        return jnp.where(trajectory.present[:, :, seats], found, 0.0)

    def _of_seat(
        self,
        models: OpponentModel,
        seat: jax.Array,
        logits: jax.Array,
        inferred: jax.Array,
        step: tuple[State, jax.Array, jax.Array],
    ) -> jax.Array:
        """[] of one step. What each action of the seat would have led to is found by the rules, all
        else being as it was; what the others would do there, by the models of them."""
        game, (state, joint, key) = self.game, step
        order = (seat + jnp.arange(game.seats)) % game.seats
        context = self.actor.context
        key_goals = jax.random.fold_in(jax.random.wrap_key_data(key), 1)
        goals = suppose(context, context.about_others(inferred), key_goals)

        def after(action: jax.Array) -> tuple[jax.Array, jax.Array]:
            state_after, outcome = repeat_step(game, state, joint.at[seat].set(action), key)
            legal = views(game, state_after).legal[order]
            predicted = others_logits(models, game.view(state_after, seat), legal, goals)
            return jnp.exp(predicted), game.present(state_after)[order[1:]] & ~outcome.done

        predicted, goes_on = jax.vmap(after)(jnp.arange(len(logits)))  # [A, N - 1, A], [A, N - 1]
        # Of an action with which the other would not go on, there is no telling what it does next.
        chances = jnp.where(goes_on, jnp.exp(logits)[:, None], 0.0)
        chances /= jnp.maximum(chances.sum(axis=0), 1e-30)
        action = joint[seat]
        moved = influence(predicted, action, chances)
        return jnp.where(goes_on[action], moved, 0.0).sum()
