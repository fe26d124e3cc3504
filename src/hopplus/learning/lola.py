"""Learning with opponent-learning awareness (LOLA, Foerster et al. 2018a): a seat learns for the
other as that will be after its own next step, and so how to change what the other learns."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from hopplus.learning.ppo import Batch, normalised

Own = TypeVar("Own")
Other = TypeVar("Other")


def magic_box(log_prob: jax.Array) -> jax.Array:
    """1, whose derivatives of any order are those of the probability over itself (Foerster et al.
    2018b)."""
    return jnp.exp(log_prob - jax.lax.stop_gradient(log_prob))


def dice_objective(log_prob: jax.Array, advantage: jax.Array, begins: jax.Array) -> jax.Array:
    """[] the sum of [T, B] advantages, whose derivatives are those of what is to be gained.

    Loaded DiCE (Farquhar et al. 2019), with l_t the sum of both seats' `log_prob` [T, B] from the
    beginning of the episode to step t, and A_t the advantage of what both did in it:

        sum_t (box(l_t) - box(l_{t-1})) A_t.

    The value is 0. Its first derivative is the policy gradient; the second has in it how what one
    seat does changes what the other's acts are worth later. Advantages have their baseline in
    them, without which second derivatives are mostly noise.
    """

    def add(so_far: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        log_prob, begins = now
        before = jnp.where(begins, 0.0, so_far)
        return before + log_prob, magic_box(before + log_prob) - magic_box(before)

    _, boxes = jax.lax.scan(add, jnp.zeros_like(log_prob[0]), (log_prob, begins))
    return (boxes * advantage).sum()


def look_ahead(
    own_gain: Callable[[Own, Other], jax.Array],
    other_gain: Callable[[Own, Other], jax.Array],
    own: Own,
    other: Other,
) -> jax.Array:
    """[] what a small step of the other up its own gain brings: d/d step of

        V_i(theta_i, theta_j + step * grad_j V_j(theta_i, theta_j))

    at step 0. With `own` parameters theta_i both the gain and the step change, and it can be
    differentiated through either.
    """
    step = jax.grad(other_gain, argnums=1)(own, other)
    return jax.jvp(lambda moved: own_gain(own, moved), (other,), (step,))[1]


def lola_gain(
    policy_and_value: Callable[[Own, Batch], tuple[jax.Array, jax.Array]],
    own: tuple[Own, Batch],
    other: tuple[Own, Batch],
    steps: int,
) -> jax.Array:
    """[] what a small step of the other brings a seat, by one batch of play.

    Rows run [T, B] with `steps` T, of the same games in both batches; `policy_and_value` gives
    [M, A] and [M] of them by the parameters as they are now. Gains are as PPO has them: means over
    steps, of normalised advantages. The other's step is told by one half of the games and what it
    brings by the other half, and the other way round: in the same games the noise of both is alike,
    and what both gain by the same act would count for a gain by that step.
    """
    begins = own[1].begins
    assert begins is not None
    begins = begins.reshape(steps, -1)

    def log_prob(params: Own, batch: Batch) -> jax.Array:
        logits, _ = policy_and_value(params, batch)
        done = jnp.take_along_axis(logits, batch.action[:, None], axis=-1)[:, 0]
        return jnp.where(batch.present, done, 0.0).reshape(begins.shape)

    def gain_of(batch: Batch, half: int) -> Callable[[Own, Own], jax.Array]:
        advantage = normalised(batch.returns - batch.value, batch.valued).reshape(begins.shape)
        counts = batch.valued.reshape(begins.shape) & (jnp.arange(begins.shape[1]) % 2 == half)
        share = jnp.where(counts, advantage, 0.0) / jnp.maximum(counts.sum(), 1)

        def gain(own_params: Own, other_params: Own) -> jax.Array:
            joint = log_prob(own_params, own[1]) + log_prob(other_params, other[1])
            return dice_objective(joint, share, begins)

        return gain

    def by_halves(half: int) -> jax.Array:
        return look_ahead(gain_of(own[1], half), gain_of(other[1], 1 - half), own[0], other[0])

    return (by_halves(0) + by_halves(1)) / 2
