"""What a step was worth, seen from its end."""

from typing import Any

import jax
import jax.numpy as jnp

from hopplus.kernels import on_gpu
from hopplus.models.part import Metrics
from hopplus.types import Trajectory

AT_ONCE = 16  # steps that a GPU takes in one kernel


def unrolled(steps: int) -> int:
    """How many steps of a loop over so many are written out: on a GPU each turn of a loop costs as
    much as all of what is done in it here; on a CPU nothing."""
    return min(steps, AT_ONCE) if on_gpu() else 1


def apart(arrays: Any) -> Any:
    """The same, written down on a GPU: its kernel for steps that are written out would else have in
    it whatever comes before and behind, once for each of them, and compile for many seconds."""
    return jax.lax.optimization_barrier(arrays) if on_gpu() else arrays


def lambda_returns(
    reward: jax.Array,
    value: jax.Array,
    valued: jax.Array,
    discount: jax.Array,
    gae_lambda: float,
) -> jax.Array:
    """[T] returns of one seat in one stream of games, from [T] rewards.

    `value` and `valued` are [T + 1]: before each step, and after the last one. With V the values,

        G_t = r_t + discount_t * ((1 - lambda) V_{t+1} + lambda G_{t+1}),

    where `discount` [T] is what comes after a step is worth, 0 beyond an ending (`worth_later`), so
    that G - V is the generalised advantage estimate GAE(lambda) (Schulman et al. 2016) and lambda =
    1 the Monte-Carlo return. Where a step is not `valued`, because the seat has left and its value
    means nothing, the return is carried on whole.
    """
    mix_next = jnp.where(valued[1:], gae_lambda, 1.0)

    def step(later: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        reward, value_next, mix_next, discount = now
        gained = reward + discount * ((1 - mix_next) * value_next + mix_next * later)
        return gained, gained

    beyond = jnp.where(valued[-1], value[-1], 0.0)
    beyond, given = apart((beyond, (reward, value[1:], mix_next, discount)))
    unroll = unrolled(len(reward))
    return apart(jax.lax.scan(step, beyond, given, reverse=True, unroll=unroll)[1])


def game_returns(
    reward: jax.Array, value: jax.Array, valued: jax.Array, worth: jax.Array, gae_lambda: float
) -> jax.Array:
    """[T, B, n] the same of all seats and games, with rewards [T, B, n] and `worth` [T, B]."""
    over_seats = jax.vmap(lambda_returns, in_axes=(1, 1, 1, None, None), out_axes=1)
    over_games = jax.vmap(over_seats, in_axes=(1, 1, 1, 1, None), out_axes=1)
    return over_games(reward, value, valued, worth, gae_lambda)


def worth_later(
    done: jax.Array, discount: float, episode_next: jax.Array | None = None, between: float = 0.0
) -> jax.Array:
    """[...] what comes after each step is worth: nothing beyond the end of an episode; or, from one
    to the next of the same trial, so much `between` them, with the number of the episode [...] that
    the next step is of."""
    if between == 0 or episode_next is None:
        return jnp.where(done, 0.0, discount)
    return jnp.where(done, jnp.where(episode_next > 0, between, 0.0), discount)


def hangs_on_value(worth: jax.Array, goes_on: jax.Array) -> jax.Array:
    """[T, B, n] bool, the return of a step hangs on the value at the end of the unroll: what comes
    later was worth something [T, B] all the way, and the seat goes on gaining then [B, n]."""
    over = jnp.flip(jnp.cumsum(jnp.flip(worth == 0, axis=0), axis=0), axis=0) > 0
    return ~over[..., None] & goes_on


def episode_metrics(so_far: jax.Array, trajectory: Trajectory) -> tuple[jax.Array, Metrics]:
    """Carry the returns of episodes on, and add up those that ended: [B, N] and metrics."""
    outcome = trajectory.outcome

    def step(carry: tuple[jax.Array, jax.Array], now: tuple[jax.Array, jax.Array]) -> Any:
        (returns, ended), (reward, done) = carry, now
        returns = returns + reward
        ended = ended + jnp.where(done[:, None], returns, 0.0)
        return (jnp.where(done[:, None], 0.0, returns), ended), None

    given, begun = (outcome.reward, outcome.done), (so_far, jnp.zeros_like(so_far))
    unroll = unrolled(len(outcome.done))
    (returns, ended), _ = jax.lax.scan(step, begun, given, unroll=unroll)
    return returns, {
        "episodes": outcome.done.sum(),
        "return_sum": ended.sum(axis=0),  # [N]
        "taken_sum": outcome.taken.sum(axis=(0, 1)),  # [K]
    }
