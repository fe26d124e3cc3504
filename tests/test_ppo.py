"""The losses: numbers worked by hand, and masks that hold."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import NetConfig, PPOConfig
from hopplus.learning.ppo import Batch, explained, mean_of, normalised, ppo_loss
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
