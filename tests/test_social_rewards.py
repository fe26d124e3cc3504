"""Rewards besides the game's own: inequity and influence, by hand and in the learner."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fake_runs import saved_arrays
from hopplus.cli import main
from hopplus.config import (
    InequityConfig,
    InfluenceConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.games.game import repeat_step, views
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner
from hopplus.learning.social_rewards import inequity, influence, smooth_rewards
from hopplus.learning.train import train
from hopplus.models.opponent import others_views
from hopplus.runs.folder import open_run
from hopplus.types import View
from tiny_hop_plus import begun, jit, of_seat

STAY, HUNT_HARE = 4, 6
PPO = PPOConfig(
    games=16,
    unroll=8,
    minibatches=2,
    epochs=1,
    discount=0.9,
    inequity=InequityConfig(alpha=5.0, beta=0.5, decay=0.8),
    influence=InfluenceConfig(weight=3.0, warm_up=512),
)
CONFIG = TrainConfig(
    game=StagHuntConfig(size=3, seats=3, hares=2, horizon=12),
    net=NetConfig(hidden=8),
    ppo=PPO,
    parts=("opponent",),
    opponent=OpponentLearnerConfig(buffer=200, fits=2, batch=32, net=NetConfig(hidden=8)),
    steps=PPO.steps * 4,
)


def test_rewards_are_smoothed_within_an_episode() -> None:
    reward = jnp.array([[[1.0, 0]], [[0, 0]], [[0, 2]], [[1, 1]]])  # [T, B, N]
    done = jnp.array([[False], [False], [True], [False]])
    smoothed, after = smooth_rewards(jnp.array([[0.0, 4.0]]), reward, done, 0.5)
    np.testing.assert_allclose(smoothed[:, 0], [[1.0, 2.0], [0.5, 1.0], [0.25, 2.5], [1.0, 1.0]])
    np.testing.assert_allclose(after, [[1, 1]])
    assert not smooth_rewards(after, reward[:3], done[:3], 0.5)[1].any()  # an episode ended there


def test_inequity_by_hand() -> None:
    """Seat 0 has 2 and 3 more than the others, seat 1 has 2 less and 1 more, seat 2 has 3 and 1
    less."""
    gains = jnp.array([3.0, 1.0, 0.0])
    np.testing.assert_allclose(inequity(gains, 5.0, 0.0), [0, 5, 10], rtol=1e-6)
    np.testing.assert_allclose(inequity(gains, 0.0, 0.05), [0.125, 0.025, 0], rtol=1e-6)
    np.testing.assert_allclose(inequity(gains, 5.0, 0.05), [0.125, 5.025, 10], rtol=1e-6)


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float(sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a > 0))


def test_influence_is_a_divergence_from_the_mean() -> None:
    chance = np.random.default_rng(0)
    predicted = chance.dirichlet(np.ones(4), size=(3, 2))  # after 3 actions, of 2 others
    predicted[1, 0] = [0.5, 0.5, 0, 0]  # what is not legal there
    chances = np.array([[0.2, 0.0], [0.3, 0.4], [0.5, 0.6]])
    found = influence(jnp.array(predicted), jnp.int32(1), jnp.array(chances))
    for other in range(2):
        mean = sum(chances[a, other] * predicted[a, other] for a in range(3))
        expected = divergence(predicted[1, other], mean)
        np.testing.assert_allclose(found[other], expected, rtol=1e-5)
    same = np.repeat(predicted[:1], 3, axis=0)  # who does the same anyway is not influenced
    np.testing.assert_allclose(
        influence(jnp.array(same), jnp.int32(1), jnp.array(chances)), 0, atol=1e-6
    )


@pytest.fixture(scope="module")
def played() -> tuple[Learner, list[Any]]:
    """Two updates: the parameters before each, its metrics, and what it was made from."""
    learner = make_learner(CONFIG, {})
    update, found, now = jit(learner.update_shown), [], begun(learner)
    now = replace(now, smoothed=jnp.zeros((PPO.games, 3)))
    for _ in range(2):
        after, metrics, lesson = update(now)
        found.append(jax.device_get((now.params[0], metrics, lesson)))
        now = after
    return learner, found


def plain_costs(found: list[Any]) -> np.ndarray:
    """[2T, B, N] what inequity costs, step by step."""
    rewards = np.concatenate([lesson.trajectory.outcome.reward for *_, lesson in found])
    done = np.concatenate([lesson.trajectory.outcome.done for *_, lesson in found])
    costs, gains = np.zeros(rewards.shape), np.zeros(rewards.shape[1:])
    for t, b in np.ndindex(done.shape):
        gains[b] = 0.9 * 0.8 * gains[b] + rewards[t, b]
        for i, j in np.ndindex(3, 3):
            more = float(gains[b, j] - gains[b, i])
            costs[t, b, i] += (5.0 * max(more, 0.0) + 0.5 * max(-more, 0.0)) / 2
        if done[t, b]:
            gains[b] = 0
    return costs


def test_what_is_learned_from_is_reward_less_inequity(played: tuple[Learner, list[Any]]) -> None:
    """Gains go on from update to update, and aversion after a seat has left. The influence has no
    weight in the first update."""
    _, found = played
    costs = plain_costs(found)
    (_, metrics, lesson), (_, _, second) = found
    assert (costs > 0).mean() > 0.1
    reward = lesson.trajectory.outcome.reward - costs[:8]
    learned = np.moveaxis(lesson.batch.reward.reshape(3, 8, 16), 0, 2)
    np.testing.assert_allclose(learned, reward, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(metrics["social/inequity"], costs[:8].mean(axis=(0, 1)), rtol=1e-4)
    assert lesson.batch.valued.all()
    assert not lesson.batch.present.all()
    # In the second, a quarter of three for a nat, which nobody has who has left.
    learned = np.moveaxis(second.batch.reward.reshape(3, 8, 16), 0, 2)
    rest = (learned - second.trajectory.outcome.reward + costs[8:]) / (3.0 * 0.25)
    here = second.trajectory.present
    np.testing.assert_allclose(rest[~here], 0, atol=1e-4)
    assert (rest[here] > 1e-3).mean() > 0.1
    assert rest.min() > -1e-4


def test_what_is_logged_is_the_games_reward(played: tuple[Learner, list[Any]]) -> None:
    total, ended = np.zeros((16, 3)), np.zeros(3)
    for *_, lesson in played[1]:
        outcome = lesson.trajectory.outcome
        for reward, done in zip(outcome.reward, outcome.done, strict=True):
            total += reward
            ended += total[done].sum(axis=0)
            total[done] = 0
    assert ended.sum() > 0
    logged = sum(metrics["return_sum"] for _, metrics, _ in played[1])
    np.testing.assert_allclose(logged, ended, rtol=1e-5)


def plain_influence(learner: Learner, opponents: Any, seat: int, logits: Any, step: Any) -> float:
    """Every action that the seat might have taken is played by the rules, and the models of the
    others are asked what they would do then, one by one."""
    game, (state, joint, key) = learner.game, step
    order = [(seat + place) % 3 for place in range(3)]
    predicted, goes_on = np.zeros((7, 2, 7)), np.zeros((7, 2), bool)

    @jit
    def play(state: Any, joint: jax.Array, key: jax.Array) -> tuple[View, jax.Array, jax.Array]:
        after, outcome = repeat_step(game, state, joint, key)
        return views(game, after), game.present(after), outcome.done

    for action in range(7):
        changed = np.array(joint)
        changed[seat] = action
        seen, there, ended = play(state, changed, key)
        turned = others_views(of_seat(seen, seat), seen.legal[jnp.array(order)])
        for place in range(2):
            model = jax.tree.map(lambda leaf: leaf[seat, place], opponents)  # noqa: B023
            predicted[action, place] = np.exp(model(of_seat(turned, place), jnp.zeros(0)))
            goes_on[action, place] = there[order[1 + place]] and not ended
    expected = 0.0
    for place in np.flatnonzero(goes_on[joint[seat]]).tolist():
        chances = np.exp(logits) * goes_on[:, place]
        mean = (chances / chances.sum()) @ predicted[:, place]
        expected += divergence(predicted[joint[seat], place], mean)
    return expected


def test_influence_of_real_steps(played: tuple[Learner, list[Any]]) -> None:
    learner, found = played
    params, _, lesson = found[1]
    trajectory, opponents = lesson.trajectory, params.opponents
    computed = jit(learner.social.influence)(params, trajectory)
    done = np.argwhere(trajectory.outcome.done)[0]
    going = np.argwhere(trajectory.present.all(axis=2) & ~trajectory.outcome.done)
    for (t, b), seat in ((done, 1), (going[0], 0), (going[-1], 2)):
        taken = (trajectory.state, trajectory.act.action, trajectory.key)
        step = jax.tree.map(lambda leaf: leaf[t, b], taken)  # noqa: B023
        logits = trajectory.act.logits[t, b, seat]
        expected = plain_influence(learner, opponents, seat, logits, step)
        np.testing.assert_allclose(computed[t, b, seat], expected, rtol=1e-3, atol=1e-5)
        assert (expected > 0) != trajectory.outcome.done[t, b]


def test_what_ends_the_game_is_no_influence(played: tuple[Learner, list[Any]]) -> None:
    """Seat 0 leaves the last hare alone: had it hunted, nobody would have done anything more."""
    learner, found = played
    opponents = found[1][0].opponents
    state = learner.game.parse("0h . .\n. 1 .\n. . 2")
    legal = np.asarray(learner.game.view(state, 0).legal)
    assert legal[HUNT_HARE]
    logits = np.where(legal, -np.log(legal.sum()), -np.inf)
    step = (state, jnp.full(3, STAY), jax.random.key_data(jax.random.key(0)))
    own = jax.tree.map(lambda leaf: leaf[0], opponents)
    computed = jit(learner.social._of_seat)(own, jnp.int32(0), logits, jnp.zeros(0), step)
    expected = plain_influence(learner, opponents, 0, logits, step)
    np.testing.assert_allclose(computed, expected, rtol=1e-3)
    assert expected > 0


@pytest.mark.usefixtures("shared_programs")
def test_it_goes_on_bit_for_bit(tmp_path: Path) -> None:
    """With gains in flight that are compared, in a run of four updates that is left after three."""
    words = "--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 10 --net.hidden 8"
    words += " --ppo.games 16 --ppo.unroll 8 --ppo.minibatches 1 --ppo.epochs 1"
    words += " --steps 512 --checkpoint-every 3"
    assert main(["train", "inequity", *words.split(), "--runs", str(tmp_path), "--name", "a"]) == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "b/checkpoints/4")
    (tmp_path / "b/result.json").unlink()
    train(open_run(tmp_path / "b"))
    one, two = (saved_arrays(tmp_path / name / "checkpoints/4") for name in "ab")
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
    kept = saved_arrays(tmp_path / "a/checkpoints/3")
    assert np.any([array for name, array in kept.items() if "smoothed" in name])
