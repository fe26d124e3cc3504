"""The losses: numbers worked by hand, and masks that hold."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import NetConfig, PPOConfig
from hopplus.learning.ppo import (
    Batch,
    explained,
    mean_of,
    normalised,
    ppo_loss,
    source_metrics,
)
from hopplus.models.nets import ActorCritic
from hopplus.types import View

CONFIG = PPOConfig(clip=0.2, value_clip=0.5, value_weight=0.5)


def make_view(count: int, actions: int = 2) -> View:
    return View(
        jnp.zeros((count, 1, 1, 1)),
        jnp.ones((count, actions), bool),
        jnp.zeros(count),
        jnp.zeros((count, 1), jnp.int32),
    )


def made(shape: tuple[int, int, int], actions: int, config: NetConfig, goal: int = 0) -> Any:
    """A network, by one program instead of one for every operation."""
    make = jax.jit(lambda key: ActorCritic(shape, actions, config, key, goal=goal))
    return make(jax.random.key(0))


def policy_and_value(
    params: jax.Array, view: View, inferred: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """A fixed policy (3/4, 1/4) and the value that is the parameter."""
    return jnp.log(jnp.array([0.75, 0.25])) + 0 * params, params


def test_by_hand() -> None:
    batch = Batch(
        view=make_view(3),
        inferred=jnp.zeros((3, 0)),
        action=jnp.array([0, 1, 0]),
        log_prob=jnp.log(jnp.array([0.5, 0.5, 0.5])),  # ratios 1.5, 0.5 and a step that is masked
        value=jnp.array([0.0, 2.0, 99.0]),
        reward=jnp.zeros(3),
        returns=jnp.array([2.0, 2.0, -99.0]),
        present=jnp.array([True, True, False]),
        valued=jnp.array([True, True, False]),
    )
    weight = jnp.array(0.1)

    @jax.jit
    def found(params: jax.Array) -> Any:
        over_rows = jax.vmap(policy_and_value, in_axes=(None, 0, 0))
        return ppo_loss(*over_rows(params, batch.view, batch.inferred), batch, CONFIG, weight)

    loss, parts = found(jnp.array(1.0))
    # Advantages 2 and 0 become 1 and -1. Policy: min(1.5, 1.2) = 1.2 and min(-0.5, -0.8) = -0.8.
    assert parts["policy_loss"] == pytest.approx(-(1.2 - 0.8) / 2, abs=1e-6)
    # Value 1: errors 1 and 1; clipped to 0.5 and 1.5: errors 2.25 and 0.25; the larger of each.
    assert parts["value_loss"] == pytest.approx((2.25 + 1.0) / 2, abs=1e-6)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert parts["entropy"] == pytest.approx(entropy, abs=1e-6)
    assert parts["clipped"] == 1.0
    kl = np.mean([1.5 - 1 - np.log(1.5), 0.5 - 1 - np.log(0.5)])
    assert parts["kl"] == pytest.approx(kl, abs=1e-6)
    assert loss == pytest.approx(-0.2 + 0.5 * 1.625 - 0.1 * entropy, abs=1e-6)


@pytest.mark.parametrize(
    ("valued", "weight", "mixed"),
    [
        # Values of real steps alone: their loss weighs as much as without imagination.
        ([True, True, False, False], 1.0, 1.625),
        # All four alike: 2.25 and 1 of the real ones, 0.25 and 9 of the imagined.
        ([True, True, True, True], 1.0, 12.5 / 4),
        # An imagined one half as much as a real one.
        ([True, True, True, True], 0.5, (3.25 + 0.5 * 9.25) / 3),
        ([True, True, True, True], 0.0, 1.625),
        # Of the imagined ones the last alone.
        ([True, True, False, True], 1.0, (3.25 + 9.0) / 3),
    ],
)
def test_the_weight_of_imagined_steps_by_hand(
    valued: list[bool], weight: float, mixed: float
) -> None:
    batch = Batch(
        view=make_view(4),
        inferred=jnp.zeros((4, 0)),
        action=jnp.array([0, 1, 0, 1]),
        log_prob=jnp.log(jnp.array([0.5, 0.5, 0.5, 0.5])),
        value=jnp.array([0.0, 2.0, 1.0, 1.0]),
        reward=jnp.zeros(4),
        returns=jnp.array([2.0, 2.0, 1.5, 4.0]),
        present=jnp.ones(4, bool),
        valued=jnp.array(valued),
        imagined=jnp.array([False, False, True, True]),
    )
    over_rows = jax.vmap(policy_and_value, in_axes=(None, 0, 0))
    given = over_rows(jnp.array(1.0), batch.view, batch.inferred)

    @jax.jit
    def found(logits: jax.Array, value: jax.Array) -> Any:
        return ppo_loss(logits, value, batch, CONFIG, jnp.array(0.1), weight)

    loss, parts = found(*given)
    assert parts["value_loss"] == pytest.approx(1.625, abs=1e-6)  # of real steps, as without
    assert parts["value_loss_mixed"] == pytest.approx(mixed, abs=1e-6)
    # Policy as above, -0.2; of the imagined steps, advantages -1 and 1: -max(1.5, 1.2) and 0.5.
    assert parts["imagined/policy_loss"] == pytest.approx((1.5 - 0.5) / 2, abs=1e-6)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    policy = (-0.2 + 0.5) / 2 - 0.1 * entropy
    assert loss == pytest.approx(policy + 0.5 * mixed, abs=1e-6)


def test_what_a_source_is_like_by_hand() -> None:
    batch = Batch(
        view=make_view(3),
        inferred=jnp.array([[3.0, 4.0], [0.0, 0.0], [9.0, 9.0]]),
        action=jnp.zeros(3, int),
        log_prob=jnp.zeros(3),
        value=jnp.array([1.0, 3.0, 99.0]),
        reward=jnp.array([0.0, 4.0, 99.0]),
        returns=jnp.array([5.0, 5.0, 7.0]),
        present=jnp.array([True, True, False]),
        valued=jnp.array([True, True, True]),
    )
    found = source_metrics("real", batch, batch.present, batch.valued)
    assert {name: round(float(value), 4) for name, value in found.items()} == {
        "real/reward": 2.0,
        "real/reward_variance": 4.0,
        "real/return": 5.6667,
        "real/return_variance": 0.8889,
        "real/value": 34.3333,
        "real/value_variance": 2091.5557,
        "real/goal_size": 2.5,  # the root of (9 + 16 + 0 + 0) / 4
        "real/steps": 2,
        "real/goals": 1,
    }


def test_absent_steps_never_count() -> None:
    net = made((2, 2, 3), 4, NetConfig(hidden=8), goal=2)
    rng = np.random.default_rng(1)
    present = jnp.asarray(rng.random(16) < 0.6)

    @jax.jit
    def slope(net: ActorCritic, batch: Batch) -> ActorCritic:
        def loss(net: ActorCritic) -> jax.Array:
            logits, value = jax.vmap(net)(batch.view, batch.inferred)
            return ppo_loss(logits, value, batch, CONFIG, jnp.array(0.01))[0]

        found: ActorCritic = jax.grad(loss)(net)
        return found

    def slopes(seed: int) -> ActorCritic:
        noise = np.random.default_rng(seed)

        def absent(values: np.ndarray) -> jax.Array:
            other = noise.normal(size=values.shape) * 100
            mask = np.asarray(present).reshape(-1, *[1] * (values.ndim - 1))
            return jnp.asarray(np.where(mask, values, other).astype(np.float32))

        fixed = np.random.default_rng(2)
        view = View(
            absent(fixed.normal(size=(16, 2, 2, 3))),
            jnp.asarray((fixed.random((16, 4)) < 0.8) | (np.arange(4) == 0)),
            absent(fixed.random(16)),
            jnp.zeros((16, 2), jnp.int32),
        )
        batch = Batch(
            view,
            absent(fixed.normal(size=(16, 2))),
            jnp.zeros(16, jnp.int32),
            absent(-fixed.random(16)),
            absent(fixed.normal(size=16)),
            absent(fixed.normal(size=16)),
            absent(fixed.normal(size=16)),
            present,
            present,
        )
        return slope(net, batch)

    jax.tree.map(np.testing.assert_array_equal, slopes(3), slopes(4))
    assert any(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(slopes(3)))


def test_masked_means() -> None:
    values, mask = jnp.array([1.0, 3.0, 1e30]), jnp.array([True, True, False])
    assert mean_of(values, mask) == 2.0
    np.testing.assert_allclose(normalised(values, mask)[:2], [-1, 1], rtol=1e-6)
    assert mean_of(values, jnp.zeros(3, bool)) == 0.0
    assert np.isfinite(normalised(values, jnp.zeros(3, bool))[:2]).all()


def test_explained_variance() -> None:
    returns, mask = jnp.array([1.0, 2.0, 3.0, 50.0]), jnp.array([True, True, True, False])
    assert explained(returns, returns, mask) == pytest.approx(1)
    assert explained(jnp.zeros(4), returns, mask) == pytest.approx(0, abs=1e-6)
    assert explained(-returns, returns, mask) < -1


@pytest.mark.parametrize("kind", ["mlp", "conv"])
def test_networks(kind: str) -> None:
    config = NetConfig(kind=kind, hidden=16, channels=4)  # type: ignore[arg-type]
    net = made((3, 4, 5), 7, config)
    planes = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4, 5)).astype(np.float32))
    legal = jnp.array([True, False, True, True, False, True, True])
    view = View(planes, legal, jnp.array(0.3), jnp.zeros(2, jnp.int32))
    told = jnp.zeros(0)
    logits, value = jax.jit(lambda net: net(view, told))(net)
    np.testing.assert_array_equal(np.isfinite(logits), legal)
    assert np.exp(logits).sum() == pytest.approx(1)
    assert value.shape == ()
    # Every input counts: planes and time reach both heads.

    def both(planes: jax.Array, time: jax.Array) -> jax.Array:
        logits, value = net(View(planes, legal, time, view.last_actions), told)
        return jnp.append(logits[np.asarray(legal)], value)

    slopes = jax.jit(jax.jacobian(both, argnums=(0, 1)))(planes, jnp.array(0.3))
    assert (np.abs(slopes[0]).sum(axis=(1, 2, 3)) > 0).all()
    assert (np.abs(slopes[1]) > 0).all()
