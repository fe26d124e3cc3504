"""What is learned from imagined play: rewards and the critic, the warm-up and the gate."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.learning.ppo import ppo_loss
from test_hop_plus import fitted_minds, huge, plainly_learned
from tiny_hop_plus import IMAGINE, PPO, REAL, TrueWorld, jit, of_seat, same, setup

# Imagined rewards and the critic.


def test_wild_imagined_rewards_do_not_reach_the_critic() -> None:
    s = setup()
    _, _, plain, metrics = plainly_learned()
    _, auxiliary_state, wild, wild_metrics = jax.device_get(s.learn(param_sets=huge(s.param_sets)))
    assert wild_metrics["imagined/predicted_least"].min() > 100
    assert abs(metrics["imagined/predicted_most"]).max() < 100
    assert wild.present[:, REAL:].all()
    np.testing.assert_array_equal(plain.valued, wild.valued)
    assert wild.valued.any()
    assert not wild.valued[:, REAL:].any()
    for name in ("returns", "value", "reward"):
        one, two = getattr(plain, name), getattr(wild, name)
        np.testing.assert_array_equal(one[plain.valued], two[wild.valued])
    np.testing.assert_array_equal(wild.returns[:, :REAL], s.batch.returns)
    # They are kept to the range of what was seen, and not the same as before.
    least, most = auxiliary_state.observed[:, :1], auxiliary_state.observed[:, 1:]
    assert most.max() < 10
    assert (wild.reward[:, REAL:] <= most).all()
    assert (wild.reward[:, REAL:] >= least).all()
    np.testing.assert_array_equal(
        wild.reward[:, REAL:], np.broadcast_to(most, (3, imagined_rows()))
    )
    assert (plain.reward[:, REAL:] != wild.reward[:, REAL:]).any()


def imagined_rows() -> int:
    imagined_rollouts = setup().learner.auxiliary.imagined_rollouts
    assert imagined_rollouts is not None
    return imagined_rollouts.rows


def test_the_value_learns_nothing_from_rows_that_are_not_valued() -> None:
    """Neither its loss nor the gradient of its head; but it does from rows that are."""
    s = setup()
    _, _, lessons, _ = plainly_learned()
    lessons = of_seat(lessons, 0)
    policy = of_seat(s.param_sets.policy, 0)

    @jit
    def found(returns: Any, valued: Any) -> Any:
        batch = replace(lessons, returns=jnp.asarray(returns), valued=valued)

        def loss(policy: Any) -> Any:
            over_rows = jax.vmap(s.learner.actor.policy_and_value, in_axes=(None, 0, 0))
            logits, value = over_rows(policy, batch.view, batch.inferred)
            return ppo_loss(logits, value, batch, PPO, jnp.float32(0.01))

        slope, parts = jax.grad(loss, has_aux=True)(policy)
        return slope.value, slope.policy, parts

    other = np.where(lessons.imagined, 1e3 * lessons.returns**2 + 7, lessons.returns)
    value, actions, parts = found(lessons.returns, lessons.valued)
    value_2, actions_2, parts_2 = found(other, lessons.valued)
    assert same(value, value_2)
    assert parts["value_loss"] == parts_2["value_loss"] > 0
    assert not same(actions, actions_2)  # the policy does learn from them
    both = lessons.valued | lessons.imagined
    assert not same(found(lessons.returns, both)[0], found(other, both)[0])
    assert not same(value, found(lessons.returns, both)[0])


def test_imagined_rows_are_those_behind_the_real_ones() -> None:
    s = setup()
    _, _, lessons, _ = plainly_learned()
    assert lessons.imagined.shape == (3, REAL + imagined_rows())
    assert not lessons.imagined[:, :REAL].any()
    assert lessons.imagined[:, REAL:].all()
    share = REAL / (REAL + imagined_rows())
    assert share == pytest.approx(IMAGINE.real_ratio, abs=0.01)
    for name in ("action", "reward", "returns", "present"):
        np.testing.assert_array_equal(getattr(lessons, name)[:, :REAL], getattr(s.batch, name))
    np.testing.assert_array_equal(lessons.view.planes[:, :REAL], s.batch.view.planes)


# Warm-up and gate.


def test_nothing_is_imagined_before_the_warm_up() -> None:
    s = setup()
    steps = np.arange(4) * PPO.steps
    for updates, ready in enumerate(steps >= IMAGINE.warm_up):
        _, _, lessons, _ = s.learn(updates=updates)
        assert bool(lessons.present[:, REAL:].any()) == ready
        assert bool(lessons.present[:, REAL:].all()) == ready
        assert lessons.imagined[:, REAL:].all()
        np.testing.assert_array_equal(lessons.present[:, :REAL], s.batch.present)


def test_the_gate_opens_for_seats_whose_world_is_right() -> None:
    s = setup()
    param_sets = huge(fitted_minds(), 1)
    for gate in (0.0, 0.5, 1.0):
        _, _, lessons, metrics = s.learn(param_sets=param_sets, gate=gate)
        error = np.asarray(metrics["world/error"])
        assert error[1] == 1  # wrong in every reward
        assert (error[[0, 2]] < 0.4).all()
        assert plainly_learned()[3]["world/error"].min() > 0.9  # of worlds that learned nothing
        opened = np.asarray(lessons.present[:, REAL:])
        assert opened.any(axis=1).tolist() == (error <= gate).tolist()
        assert opened.all(axis=1).tolist() == (error <= gate).tolist()
        np.testing.assert_array_equal(metrics["imagined/open"], error <= gate)


def test_the_true_world_has_no_error_and_an_unlearned_one_errs_always() -> None:
    s = setup()
    part: Any = next(part for part in s.learner.auxiliary.parts if part.name == "world")
    measure = jit(lambda param_sets: part.measure(param_sets, s.played, jax.random.key(0)))
    true = measure(replace(s.param_sets, world=TrueWorld()))
    for name, value in true.items():
        np.testing.assert_allclose(value, np.zeros(3), atol=1e-6, err_msg=name)
    wrong = {name.removeprefix("world/"): value for name, value in plainly_learned()[3].items()}
    assert wrong["error"].min() > 0.9
    for name in ("planes_wrong", "legal_wrong", "done_wrong", "gone_wrong", "reward_wrong"):
        assert (wrong[name] <= wrong["error"]).all()
