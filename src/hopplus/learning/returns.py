"""What a step was worth, seen from its end."""

import jax
import jax.numpy as jnp

from hopplus.models.part import Metrics
from hopplus.types import Trajectory


def lambda_returns(
    reward: jax.Array,
    value: jax.Array,
    valued: jax.Array,
    done: jax.Array,
    discount: float,
    gae_lambda: float,
) -> jax.Array:
    """[T] returns of one seat in one stream of games, from [T] rewards and endings.

    `value` and `valued` are [T + 1]: before each step, and after the last one. With V the values,

        G_t = r_t + discount * ((1 - lambda) V_{t+1} + lambda G_{t+1}),    0 beyond an ending,

    so that G - V is the generalised advantage estimate GAE(lambda) (Schulman et al. 2016) and
    lambda = 1 the Monte-Carlo return. Where a step is not `valued`, because the seat has left and
    its value means nothing, the return is carried on whole.
    """
    mix_next = jnp.where(valued[1:], gae_lambda, 1.0)

    def step(later: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        reward, value_next, mix_next, done = now
        ahead = (1 - mix_next) * value_next + mix_next * later
        gained = reward + discount * jnp.where(done, 0.0, ahead)
        return gained, gained

    beyond = jnp.where(valued[-1], value[-1], 0.0)
    return jax.lax.scan(step, beyond, (reward, value[1:], mix_next, done), reverse=True)[1]


def hangs_on_value(done: jax.Array, goes_on: jax.Array) -> jax.Array:
    """[T, B, n] bool, the return of a step hangs on the value at the end of the unroll: no episode
    ended [T, B] from there on, and the seat goes on gaining then [B, n]."""
    over = jnp.flip(jnp.cumsum(jnp.flip(done, axis=0), axis=0), axis=0) > 0
    return ~over[..., None] & goes_on


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
