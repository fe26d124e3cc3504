"""HOP+'s switches: what each rung has, and learners with parts left out or set otherwise."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.config import GoalConfig, TrainConfig, WorldConfig
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learning
from tiny_hop_plus import ALL, CONFIG, GOAL, IMAGINE, PPO, REAL, TINY, WORLD, begun, jit


@pytest.mark.parametrize("count", range(5))
def test_a_rung_has_what_it_names(count: int) -> None:
    parts = ALL[:count]
    learner = make_learner(replace(CONFIG, parts=parts), {})
    assert tuple(part.name for part in learner.auxiliary.parts) == tuple(
        name for name in parts if name != "imagination"
    )
    assert (learner.auxiliary.imagined_rollouts is not None) == ("imagination" in parts)
    player_params = jax.eval_shape(learner.actor.init, jax.random.key(0))
    assert (player_params.opponents is not None) == ("opponent" in parts)
    assert (player_params.prior is not None) == (player_params.context != ()) == ("goal" in parts)
    assert (player_params.world is not None) == ("world" in parts)
    # Whoever has goals is told; nobody else is.
    sizes = GOAL.prior.size * ("goal" in parts)
    body = 9 * 6 + 1
    assert player_params.policy.body.dense.layers[0].weight.shape == (body + sizes, 8)
    if player_params.opponents is not None:
        shape = player_params.opponents.body.dense.layers[0].weight.shape
        assert shape == (2, body + 3 * 7 + sizes, 8)


def two_updates(config: TrainConfig) -> tuple[Learning, Learning, dict[str, Any]]:
    learner = make_learner(config, {})
    before = now = begun(learner)
    update = jit(learner.update)
    returns = 0.0
    for _ in range(2):
        now, metrics = update(now)
        returns = returns + metrics["return_sum"]
    found: tuple[Learning, Learning, dict[str, Any]]
    found = jax.device_get((before, now, metrics | {"return_sum": returns}))
    return found


def test_parts_without_goals_or_imagination_leave_the_policy_alone() -> None:
    _, plain, metrics = two_updates(replace(CONFIG, parts=()))
    before, after, found = two_updates(replace(CONFIG, parts=("opponent", "world")))
    np.testing.assert_array_equal(metrics["return_sum"], found["return_sum"])
    assert metrics["return_sum"].sum() > 0
    np.testing.assert_allclose(metrics["value_loss"], found["value_loss"], rtol=1e-5)
    for one, two, first in zip(
        *(jax.tree.leaves(now.params[0].policy) for now in (plain, after, before)), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
        assert (two != first).any()
    for name in ("opponents", "world"):
        one, two = getattr(before.params[0], name), getattr(after.params[0], name)
        assert all((a != b).any() for a, b in zip(*map(jax.tree.leaves, (one, two)), strict=True))
    for value in found.values():
        assert np.isfinite(value).all()


def test_everything_the_other_way() -> None:
    """All options that are not the usual ones together: one set of parameters for two seats beside
    a scripted one, goals about each from a history of each and of a whole trial, discrete and of
    reconstruction, which foresee, a head per cell, parts that settle, and a policy that is given
    what everyone did last."""
    config = replace(
        CONFIG,
        last_actions=True,
        ppo=replace(PPO, parameters="shared"),
        seats="stag,learn,learn",
        trial=2,
        opponent=replace(CONFIG.opponent, anneal=True),
        goal=replace(
            GOAL,
            anneal=True,
            about="each",
            across=True,
            history="each",
            foresight=1.0,
            selector="conservative",
            prior=GoalConfig("discrete", 3, "reconstruction", net=TINY),
        ),
        world=replace(WORLD, anneal=True, model=WorldConfig("cells", hidden=8)),
        imagine=replace(
            IMAGINE,
            warm_up=0,
            gate=1.0,
            critic_on="both",
            critic_weight=0.5,
            reward="normalised",
            goals="zero",
            real_ratio=0.5,
            real_ratio_end=0.9,
        ),
    )
    before, after, metrics = two_updates(config)
    for name, value in metrics.items():
        assert np.isfinite(value).all(), name
    group = 1
    for one, two in zip(
        *(jax.tree.leaves(now.params[group]) for now in (before, after)), strict=True
    ):
        assert one.shape[0] == 1  # one set
        assert (one != two).any()
    assert jax.tree.leaves(after.params[0]) == []
    board, acted, goals = 9 * 6 + 1, 3 * 7, 2 * 3
    first, now = (one.params[group].policy.body.dense.layers[0].weight for one in (before, after))
    assert now.shape[1] == board + acted + goals
    assert (first != now)[0, board : board + acted].any(axis=1).sum() > 10  # some are never legal
    assert metrics["imagined/open"].tolist() == [1]
    assert metrics["imagined/value_loss"].shape == (1,)
    assert metrics["imagined/value_loss"][0] > 0
    assert metrics["imagined/goal_size"].tolist() == [0]
    assert metrics["real/goal_size"][0] > 0
    for figure in ("reward", "reward_variance"):  # as they were brought to
        np.testing.assert_allclose(
            metrics[f"imagined/{figure}"], metrics[f"real/{figure}"], rtol=1e-3
        )
    assert 0 < metrics["real/share"][0] < 1
    assert metrics["goal/loss/prior_reconstruction"][0] > 0
    assert 0 < metrics["goal/loss/foresight"][0] < 3
    assert metrics["world/loss/planes"][0] > 0
    inferred = after.auxiliary_state.parts["opponent"].buffer.inferred  # [R, n, J * G]
    assert inferred.shape[1:] == (2, 2 * 3)
    np.testing.assert_allclose(inferred.reshape(-1, 2, 3).sum(axis=-1)[: 2 * REAL], 1, rtol=1e-5)
