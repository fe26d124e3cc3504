"""Faults do what they say: each mistake on numbers worked by hand."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError, GameConfig, StagHuntConfig
from hopplus.diagnosis import mistakes
from hopplus.diagnosis.faults import FAULTS, find_fault
from hopplus.learning.auxiliary.imagined_rollouts import ImaginedRollouts
from hopplus.learning.from_run import make_learner
from hopplus.learning.ppo import Batch
from tiny_diagnosis import CONFIG, MODELS


@dataclass(frozen=True)
class Rollout:
    """What mistakes read of an imagined one."""

    reward: jax.Array
    act: Any


def make_batch(*shape: int) -> Batch:
    """Returns 0, 1, 2, ... of values that are all 1."""
    returns = jnp.arange(float(np.prod(shape))).reshape(shape)
    ones, there = jnp.ones(shape), jnp.ones(shape, bool)
    rest: Any = None
    return Batch(
        rest, ones, ones, ones, ones, jnp.zeros(shape), returns, there, jnp.zeros_like(there)
    )


def test_returns_of_the_step_after() -> None:
    found = mistakes.assemble_next_returns(make_batch(3, 1, 2), 2)  # [T, B, n] as [sets, T * B]
    assert found.returns.tolist() == [[2, 4, 0], [3, 5, 1]]
    assert found.value.shape == (2, 3)


def test_steps_of_models() -> None:
    old, new = jnp.zeros((3, 1)), jnp.full((3, 1), 25.0)
    fading, state = mistakes.commit_fading((old, "old"), (new, "new"))
    np.testing.assert_allclose(fading[:, 0], [25, 5, 1], rtol=1e-6)
    assert state == "new"
    assert mistakes.commit_uphill((old, "old"), (new, "new"))[0].tolist() == [[-25]] * 3


def test_weights_of_one_seat_decay() -> None:
    weights: Any = jnp.ones((3, 2))
    found: Any
    found, state = mistakes.commit_decayed((weights, "old"), (weights, "new"), jnp.int32(0))
    np.testing.assert_allclose(found[:, 0], [1.0, 1.0, 0.9999])
    assert state == "new"


def test_one_seat_begins_with_zeros() -> None:
    learner = mistakes.start_at_zero(make_learner(CONFIG, {}))
    params: Any = jax.jit(learner.lineup.init)(jax.random.key(0))[learner.learning]
    whole = [
        any(bool(leaf[seat].any()) for leaf in jax.tree.leaves(params.policy)) for seat in range(3)
    ]
    assert whole == [True, True, False]


def test_a_scripted_player_is_left_in_the_last_seat() -> None:
    assert find_fault("scripted-seat", CONFIG).config(CONFIG).seats == "learn,learn,random"


def test_rewards_are_ten_times_as_large() -> None:
    game = StagHuntConfig(time_reward=-0.1).with_large_rewards()
    assert (game.stag_reward, game.hare_reward, game.time_reward) == (100, 10, -1)
    with pytest.raises(ConfigError, match="scale its rewards"):
        GameConfig("other", 2).with_large_rewards()


def test_what_is_imagined() -> None:
    """Of a rollout of two steps in two games, all of whose rewards are 0."""
    told: list[Any] = []

    def batch(rollout: Any, *given: Any) -> Batch:
        told.append(rollout)
        return make_batch(4)

    own: Any = SimpleNamespace(batch=batch)
    value = jnp.zeros((2, 2))
    rollout: Any = Rollout(reward=jnp.zeros((2, 2, 3)), act=SimpleNamespace(value=value))
    given = (own, rollout, jnp.zeros(4), jnp.bool_(True))
    assert mistakes.value_imagined(*given).valued.all()
    assert mistakes.multiply_returns(*given).returns.tolist() == [0, 2, 4, 6]
    assert not told[-1].reward.any()
    mistakes.reward_imagining(*given)
    assert (told[-1].reward == mistakes.BONUS).all()


def test_one_seat_learns_backwards_from_what_it_imagines(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner(MODELS, {})
    fault = FAULTS["backward-imagination"]
    backward = fault.learner(learner).auxiliary.imagined_rollouts
    assert backward is not None
    monkeypatch.setattr(ImaginedRollouts, "__call__", lambda *given: (make_batch(3, 2), {}))
    given: list[Any] = [None] * 5
    found, _ = replace(backward)(*given)  # as the laboratory's switch replaces it
    assert found.returns.tolist() == [[0, 1], [2, 3], [-2, -3]]  # 4 and 5, from the value 1 on
    without = replace(learner, auxiliary=replace(learner.auxiliary, imagined_rollouts=None))
    assert fault.learner(without) is without
