"""What networks are given of a board."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import NetConfig, PPOConfig, TrainConfig, make_config
from hopplus.learning.from_run import make_learner
from hopplus.models.nets import ActorCritic, Walking, centred, convolved, first_layer, make_body
from hopplus.types import View

WALKS = NetConfig(kind="walking", hidden=16)


def test_centred_planes_by_hand() -> None:
    """The seat's cell is in the middle, the rest keeps its distance, off the board is a wall."""
    planes = np.zeros((2, 3, 4), np.float32)  # two seats, walls, things
    planes[1, 2, 0] = planes[0, 2, 1] = planes[1, 0, 3] = planes[0, 0, 2] = 1
    around = np.asarray(centred(jnp.asarray(planes), 2))
    assert around.shape == (3, 5, 3)
    assert np.argwhere(around[..., 0]).tolist() == [[0, 2]]  # the other, a cell above
    assert np.argwhere(around[..., 2]).tolist() == [[1, 0]]  # the thing, two to the left
    on_board = np.zeros((3, 5), bool)
    on_board[0:2, 0:3] = True
    np.testing.assert_array_equal(around[..., 1], ~on_board | (np.arange(15).reshape(3, 5) == 0))


def test_convolutions_are_those_of_jax() -> None:
    key_planes, key_kernel = jax.random.split(jax.random.key(0))
    planes = jax.random.normal(key_planes, (4, 5, 3))
    kernel = jax.random.normal(key_kernel, (3, 3, 3, 6))
    theirs = jax.lax.conv_general_dilated(
        planes[None], kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )[0]
    np.testing.assert_allclose(convolved(planes, kernel), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["mlp", "conv", "centred", "walking"])
@pytest.mark.parametrize("recalls", [False, True])
def test_one_view_with_many_goals_is_as_with_each(kind: Any, recalls: bool) -> None:
    """Whatever else the network is given of the view."""
    key_net, key_planes, key_goals = jax.random.split(jax.random.key(0), 3)
    config = NetConfig(kind=kind, hidden=16)
    net = ActorCritic((3, 3, 5), 6, config, key_net, goal=4, recalled_seats=2 * recalls)
    planes = jax.random.bernoulli(key_planes, 0.3, (3, 3, 5)).at[..., 0].set(False)
    planes = planes.at[1, 2, 0].set(True).astype(jnp.float32)
    legal = jnp.array([True, False, True, True, True, False])
    view = View(planes, legal, jnp.float32(0.3), jnp.array([3, -1]))
    goals = jax.random.normal(key_goals, (5, 4))
    logits, values = jax.jit(lambda: net.of_many_goals(view, goals))()
    for number, goal in enumerate(goals):
        of_one = net(view, goal)
        np.testing.assert_allclose(logits[number], of_one[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(values[number], of_one[1], rtol=1e-4, atol=1e-5)
    assert len(np.unique(values)) == 5


def body_that_walks() -> Walking:
    """Of a 3x3 board with two seats and two kinds of things; what it sees from its cell does not
    count."""
    body = make_body((3, 3, 5), WALKS, jax.random.key(0), extra=1)
    assert isinstance(body, Walking)
    weight = first_layer(body).weight
    assert len(weight) == 5 * 5 * 4 + 1 + 6 * 4 * 3 + 1  # cells, time, steps, and the number given
    nothing = weight.at[:100].set(0.0)
    blind: Walking = eqx.tree_at(lambda body: first_layer(body).weight, body, nothing)
    return blind


def features(body: Walking, text: str, given: float = 0.0) -> np.ndarray:
    """Of a board with itself (0), the other (1), walls (#) and things of a kind (a) and another."""
    cells = np.array([row.split() for row in text.split("/")])
    planes = np.stack([cells == kind for kind in "01#ab"], axis=-1)
    view = View(jnp.asarray(planes), jnp.ones(5, bool), jnp.array(0.5), jnp.zeros(2, jnp.int32))
    return np.asarray(jax.jit(lambda view, more: body(view, more))(view, jnp.array([given])))


def test_walking_is_told_ways_around_obstacles() -> None:
    body = body_that_walks()
    open_board = features(body, "0 . . / . . . / a . 1")
    off_the_way = features(body, "0 . # / . . . / a . 1")
    detour = features(body, "0 . . / # . . / a . 1")
    np.testing.assert_allclose(open_board, off_the_way, rtol=1e-6)
    assert not np.allclose(open_board, detour)
    for other in ("0 . . / . . . / b . 1", "0 . . / . . a / . . 1", "0 . . / . . 1 / a . ."):
        assert not np.allclose(open_board, features(body, other))  # a kind, its place, the other's
    assert not np.allclose(open_board, features(body, "0 . . / . . . / a . 1", given=1.0))


@pytest.mark.parametrize("name", ["stag-hunt-v1", "snowdrift-v1", "coin-v1"])
def test_walking_learns_in_every_game(name: str) -> None:
    game = make_config(name, size=4, seats=2, obstacles=1)
    ppo = PPOConfig(games=4, unroll=4, epochs=1, minibatches=2)
    config = TrainConfig(game=game, net=replace(WALKS, hidden=8), ppo=ppo)
    learner = make_learner(config, {})
    before = jax.jit(learner.init)(jax.random.key(0))
    after, metrics, *_ = jax.jit(learner.update)(before)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(metrics))
    first = [first_layer(now.params[0].policy.body).weight for now in (before, after)]
    height, width, planes = learner.game.shape
    seen = (2 * height - 1) * (2 * width - 1) * (planes - 1) + 1
    assert np.asarray(first[0] != first[1])[:, seen:].any()  # it learns of the steps
