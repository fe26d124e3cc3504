"""Every preset that learns from search trains, each seat by itself."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.ppo import Batch
from hopplus.play.trained import Trained
from hopplus.players.planner import Planner
from hopplus.types import Trajectory, View
from tiny_hop_plus import PPO, jit, same, zeros_like
from tiny_search import DISCOUNT, actor_of, begun_beside, mind_of, preset


@pytest.mark.parametrize("name", ["direct-om", "hop-plus-mcts", "one-step"])
def test_two_updates_of_every_preset(name: str) -> None:
    """Two seats learn, each by itself; one who has learned before stays as it is. The run in
    test_resume_search.py is of `hop`."""
    background_player = actor_of()
    background = {"guest": Trained(background_player, mind_of(background_player))}
    learner = make_learner(preset(name, seats="learn,guest,learn"), background)
    player, seats = learner.seating.groups[learner.learning]
    assert isinstance(player, Planner)
    assert learner.search == player.config
    assert seats.tolist() == [0, 2]
    before = now = begun_beside(learner)
    update = jit(learner.update)
    for _ in range(2):
        now, metrics = update(now)
    for label, value in jax.device_get(metrics).items():
        assert np.isfinite(value).all(), label
    assert metrics["policy_loss"].shape == metrics["kl"].shape == (2,)
    assert (metrics["kl"] > 0).all()
    assert "clipped" not in metrics  # which is PPO's
    own, others = learner.learning, 1 - learner.learning
    assert jax.tree.leaves(now.params[others])
    assert same(before.params[others], now.params[others])
    one, two = (jax.tree.leaves(jax.device_get(found.params[own])) for found in (before, now))
    for old, new in zip(one, two, strict=True):
        assert (old != new).reshape(2, -1).any(axis=1).all()
    if name == "direct-om":
        assert_values_learn_discounted_returns(learner, now)
        assert_no_seat_learns_from_another(learner, now)


def assert_values_learn_discounted_returns(learner: Learner, now: Learning) -> None:
    """All episodes end in the last of eight steps with a reward of 1; values are all 0."""
    _, shapes, _ = jax.eval_shape(learner._play, now.params, now.plays)
    zeros: Trajectory = zeros_like(shapes)
    outcome = replace(
        zeros.outcome,
        reward=zeros.outcome.reward.at[-1].set(1.0),
        done=zeros.outcome.done.at[-1].set(True),
    )
    played = replace(zeros, outcome=outcome, present=jnp.ones_like(zeros.present))
    batch = jit(learner.batch)(now.params[learner.learning], now.plays, played)
    steps = np.arange(PPO.unroll)[::-1]
    expected = np.tile(np.repeat((DISCOUNT * PPO.gae_lambda) ** steps, PPO.games), (2, 1))
    np.testing.assert_allclose(batch.returns, expected, rtol=1e-5)


def assert_no_seat_learns_from_another(learner: Learner, now: Learning) -> None:
    """What a search would do elsewhere changes nothing in the first seat."""
    steps = PPO.steps
    legal = jnp.ones((2, steps, 7), bool)
    view = View(
        planes=jnp.ones((2, steps, 3, 3, 6)),
        legal=legal,
        time=jnp.zeros((2, steps)),
        last_actions=jnp.zeros((2, steps, 3), jnp.int32),
    )
    zeros, there = jnp.zeros((2, steps)), jnp.ones((2, steps), bool)
    actions = jnp.zeros((2, steps), jnp.int32)
    told = jnp.zeros((2, steps, 0))
    given = Batch(view, told, actions, zeros, zeros, zeros, zeros, there, there)

    @jit
    def improved(aim: jax.Array) -> Any:
        param_sets, optimiser = now.params[learner.learning], now.optimiser
        lessons = replace(given, aim=jnp.log(jnp.broadcast_to(aim[:, None], legal.shape)))
        return learner.improve(
            learner.improved(param_sets), optimiser, lessons, now.updates, now.key
        )[0]

    even = jnp.full((2, 7), 1 / 7)
    one, two = (improved(aim) for aim in (even, even.at[1].set(jnp.arange(7.0) / 21)))
    for old, new in zip(*map(jax.tree.leaves, (one, two)), strict=True):
        np.testing.assert_array_equal(old[0], new[0])
    assert not same(one, two)
