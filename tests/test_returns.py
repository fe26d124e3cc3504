"""Returns: numbers worked by hand, and GAE as its definition has it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.learning.returns import hangs_on_value, lambda_returns, worth_later
from hopplus.learning.social_rewards import shared_reward


def test_by_hand() -> None:
    # Three steps, no ending: values 1, 2, 3 and 4 after the last.
    found = lambda_returns(
        jnp.array([1.0, 0.0, 2.0]),
        jnp.array([1.0, 2.0, 3.0, 4.0]),
        jnp.ones(4, bool),
        jnp.full(3, 0.5),
        0.5,
    )
    # G2 = 2 + .5*4 = 4; G1 = 0 + .5*(.5*3 + .5*4) = 1.75; G0 = 1 + .5*(.5*2 + .5*1.75) = 1.9375
    np.testing.assert_allclose(found, [1.9375, 1.75, 4.0])


def test_an_ending_cuts() -> None:
    found = lambda_returns(
        jnp.array([1.0, 5.0, 2.0]),
        jnp.array([1.0, 2.0, 3.0, 4.0]),
        jnp.ones(4, bool),
        worth_later(jnp.array([False, True, False]), 1.0),
        1.0,
    )
    np.testing.assert_allclose(found, [6.0, 5.0, 6.0])  # Monte-Carlo; the last episode goes on


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("backend", ["cpu", "gpu"])  # where steps are written out
def test_gae_by_its_definition(jitted: bool, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rng = np.random.default_rng(0)
    reward, value, done = rng.normal(size=20), rng.normal(size=21), rng.random(20) < 0.2
    function = jax.jit(lambda *given: lambda_returns(*given)) if jitted else lambda_returns
    worth = worth_later(jnp.asarray(done), 0.9)
    found = function(jnp.asarray(reward), jnp.asarray(value), jnp.ones(21, bool), worth, 0.7)
    for t in range(20):  # sum over k of (discount * mix)^k delta_{t+k}, up to the ending
        advantage, weight = 0.0, 1.0
        for k in range(t, 20):
            ahead = 0.0 if done[k] else 0.9 * value[k + 1]
            advantage += weight * (reward[k] + ahead - value[k])
            weight *= 0.0 if done[k] else 0.9 * 0.7
        np.testing.assert_allclose(found[t] - value[t], advantage, rtol=1e-4, atol=1e-5)


def test_values_of_a_seat_that_has_left_mean_nothing() -> None:
    """It leaves with step 1: what is gained later still counts, values of then do not."""

    def found(nonsense: float) -> jax.Array:
        return lambda_returns(
            jnp.array([0.0, 1.0, 0.0, 8.0]),
            jnp.array([1.0, 2.0, nonsense, nonsense, nonsense]),
            jnp.array([True, True, False, False, False]),
            worth_later(jnp.array([False, False, False, True]), 0.5),
            0.5,
        )

    # G3 = 8; G2 = 4; G1 = 1 + .5*4 = 3, whole; G0 = 0 + .5*(.5*2 + .5*3) = 1.25
    np.testing.assert_allclose(found(100.0), [1.25, 3.0, 4.0, 8.0])
    np.testing.assert_array_equal(found(100.0), found(-7.0))


def test_returns_that_hang_on_the_last_value() -> None:
    """[T, B] endings of two games, and [B, n] who goes on gaining after the last step."""
    done = jnp.array([[0, 0], [1, 0], [0, 0], [0, 1]], bool)
    goes_on = jnp.array([[True, False], [True, True]])
    hanging = hangs_on_value(worth_later(done, 1.0), goes_on).astype(int)
    # Of the first game only what followed its ending, of the seat that had not left; of the second,
    # which ended with the last step, nothing.
    assert hanging[:, 0].tolist() == [[0, 0], [0, 0], [1, 0], [1, 0]]
    assert not hanging[:, 1].any()


def test_prosociality() -> None:
    reward = jnp.array([[5.0, 5.0, 1.0, 1.0]])
    np.testing.assert_array_equal(shared_reward(reward, 0.0), reward)
    np.testing.assert_allclose(shared_reward(reward, 1.0), [[3.0] * 4])
    np.testing.assert_allclose(shared_reward(reward, 0.25), [[4.5, 4.5, 1.5, 1.5]])


def test_returns_over_a_trial_by_hand() -> None:
    """Two episodes of a trial, of two steps and of one, then another trial."""
    done = jnp.array([False, True, True, False])
    episode_next = jnp.array([0, 1, 0, 0])
    worth = worth_later(done, 0.9, episode_next, 0.5)
    np.testing.assert_allclose(worth, [0.9, 0.5, 0.0, 0.9])
    given = jnp.array([1.0, 2.0, 4.0, 8.0]), jnp.array([0.0, 1.0, 2.0, 3.0, 10.0])
    found = lambda_returns(*given, jnp.ones(5, bool), worth, 1.0)
    # G3 = 8 + .9*10; G2 = 4, the trial ends; G1 = 2 + .5*4; G0 = 1 + .9*4
    np.testing.assert_allclose(found, [4.6, 4.0, 4.0, 17.0])
    hanging = hangs_on_value(worth[:, None], jnp.ones((1, 1), bool))
    assert hanging[:, 0, 0].tolist() == [False, False, False, True]
    # Each episode for itself, unless it is said what a later one is worth.
    np.testing.assert_allclose(worth_later(done, 0.9, episode_next), [0.9, 0.0, 0.0, 0.9])
