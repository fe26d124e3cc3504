"""Evaluation: whole episodes, right sums, and intervals that mean what they say."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from hopplus.config import StagHuntConfig
from hopplus.evaluation.evaluate import Episodes, evaluate, first_episodes, measured, summarise
from hopplus.evaluation.replay.film import film
from hopplus.evaluation.statistics import estimate, seat_order_test, student_quantile
from hopplus.games.stag_hunt import StagHunt
from hopplus.play.rollout import begin, start
from hopplus.play.seating import seat_players
from hopplus.types import Outcome, Trajectory

GAME = StagHunt(StagHuntConfig())
SEATING = seat_players("stag,stag,hare,random", GAME)
PARAMS = SEATING.init(jax.random.key(0))
KEY = jax.random.key(11)
GAMES = 16  # one number side by side for all tests, compiled once


def test_the_number_side_by_side_does_not_matter() -> None:
    one = evaluate(GAME, SEATING, PARAMS, KEY, 50, games=64)
    two = evaluate(GAME, SEATING, PARAMS, KEY, 50, games=GAMES)
    assert one.returns.shape == (50, 4)
    jax.tree.map(np.testing.assert_array_equal, one, two)


def test_sums_agree_with_each_other() -> None:
    episodes = evaluate(GAME, SEATING, PARAMS, KEY, 512, GAMES)
    stags, hares = episodes.taken.T
    np.testing.assert_allclose(episodes.returns.sum(axis=1), 10 * stags + hares, rtol=1e-6)
    assert ((episodes.length >= 1) & (episodes.length <= 35)).all()
    assert (episodes.took.sum(axis=2) <= 1).all()  # nobody hunts after leaving
    assert not episodes.illegal.any()
    assert episodes.returns.sum(axis=1).max() <= GAME.best_joint_return


def test_film_is_the_same_episode() -> None:
    """Number 3 of an evaluation, looked at one by one."""
    episodes = evaluate(GAME, SEATING, PARAMS, KEY, 32, GAMES)
    play = jax.jit(lambda key: start(GAME, SEATING, jax.random.fold_in(key, 3)))(KEY)
    frames = film(GAME, SEATING, PARAMS, play)
    assert len(frames) == episodes.length[3] + 1
    np.testing.assert_allclose(frames[-1].returns, episodes.returns[3], rtol=1e-6)
    assert [frame.step for frame in frames] == list(range(len(frames)))


def test_film_by_hand() -> None:
    game = StagHunt(StagHuntConfig(size=3, seats=2, stags=1, hares=1, horizon=5))
    seating = seat_players("stag,hare", game)
    text = "0 S .\n. . .\n. h 1"
    play = jax.jit(lambda state: begin(game, seating, state, KEY))(game.parse(text))
    frames = film(game, seating, ((), ()), play)
    assert frames[0].layout == text
    assert frames[0].doing == ("", "")
    assert frames[1].layout == ".  0S .\n.  .  .\n.  1h ."
    assert frames[1].doing == ("right", "left")
    assert frames[1].returns == (0.0, 0.0)
    assert frames[2].layout == ".  0S .\n.  .  .\n.  .  ."
    assert frames[2].doing == ("hunt stag", "hunt hare")
    assert frames[2].returns == (0.0, 1.0)
    assert frames[3].doing == ("hunt stag", "")
    assert len(frames) == 6  # the lone hunter waits until the horizon


def test_summary_by_hand() -> None:
    """Three episodes of two seats, every figure worked out."""
    game = StagHunt(StagHuntConfig(size=3, seats=2, stags=1, hares=2))
    episodes = Episodes(
        returns=np.array([[5.0, 5.0], [1.0, 0.0], [0.0, 1.0]], np.float32),
        took=np.array([[[1, 0], [1, 0]], [[0, 1], [0, 0]], [[0, 0], [0, 1]]]),
        taken=np.array([[1, 0], [0, 1], [0, 1]]),
        illegal=np.array([[0, 3], [0, 0], [0, 0]]),
        length=np.array([4, 8, 6]),
    )
    found = summarise(game, seat_players("stag,hare", game), [episodes])
    assert [seat.episodes.mean for seat in found.returns] == [2.0, 2.0]
    # Means of the seats are 5, 0.5, 0.5: mean 2, deviation sqrt(6.75), t(2) = 4.3027.
    assert found.mean_return.episodes.mean == 2.0
    width = 4.302653 * np.sqrt(6.75 / 3)
    assert found.mean_return.episodes.half_width == pytest.approx(width, rel=1e-5)
    assert found.joint_return.episodes.mean == 4.0
    assert found.joint_return.episodes.half_width == pytest.approx(2 * width, rel=1e-5)
    np.testing.assert_allclose(found.took, [[1 / 3, 1 / 3], [1 / 3, 1 / 3]])
    np.testing.assert_allclose(found.taken, [1 / 3, 2 / 3])
    np.testing.assert_allclose(found.illegal, [0, 1])
    assert found.length.mean == 6.0
    data = found.as_json()
    assert data["seats"][1]["illegal"] == 1.0
    assert data["taken"] == {"stag": pytest.approx(1 / 3), "hare": pytest.approx(2 / 3)}


def test_first_episodes_by_hand() -> None:
    """Two games of four steps: one ends with its second step, the other with its last."""
    done = jnp.array([[0, 0], [1, 0], [0, 0], [1, 1]], bool)
    reward = jnp.array([[[1.0], [2.0]], [[4.0], [8.0]], [[16.0], [32.0]], [[64.0], [128.0]]])
    illegal = jnp.array([[[1], [1]], [[0], [1]], [[1], [0]], [[1], [0]]], bool)
    present = jnp.array([[[1], [1]], [[1], [0]], [[1], [0]], [[1], [0]]], bool)
    outcome = Outcome(
        reward=reward,
        left=illegal,
        done=done,
        illegal=illegal,
        took=reward[..., None].astype(jnp.int32),
        taken=reward.astype(jnp.int32),
    )
    acts: Any = None  # not looked at
    found = first_episodes(Trajectory((), present, (), acts, outcome, acts, done, done, done))
    np.testing.assert_array_equal(found.returns, [[5.0], [170.0]])
    np.testing.assert_array_equal(found.taken, [[5], [170]])
    np.testing.assert_array_equal(found.took, [[[5]], [[170]]])
    np.testing.assert_array_equal(found.length, [2, 4])
    np.testing.assert_array_equal(found.illegal, [[1], [1]])  # only while present


def test_two_certain_hare_hunters() -> None:
    """Two hare players on 3x3 with two hares: worked by hand, each gets half or a whole hare."""
    game = StagHunt(StagHuntConfig(size=3, seats=2, stags=1, hares=2))
    seating = seat_players("hare,hare", game)
    episodes = evaluate(game, seating, ((),), KEY, 256)
    assert set(np.unique(episodes.returns).tolist()) <= {0.5, 1.0}
    summary = summarise(game, seating, [episodes])
    assert summary.best_joint_return == 10.0
    assert summary.as_json()["taken"]["stag"] == 0.0
    assert summary.as_json()["seats"][1]["player"] == "hare"


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 10_000])
@pytest.mark.parametrize("probability", [0.9, 0.975, 0.995])
def test_student_quantile(freedom: int, probability: float) -> None:
    exact = stats.t.ppf(probability, freedom)
    tolerance = 0.02 if probability > 0.99 else 0.003
    assert student_quantile(probability, freedom) == pytest.approx(exact, rel=tolerance)


def test_interval_agrees_with_scipy() -> None:
    samples = np.random.default_rng(0).normal(2, 3, 12)
    found = estimate(samples)
    low, high = stats.t.interval(0.95, 11, samples.mean(), stats.sem(samples))
    assert found.mean - found.half_width == pytest.approx(low, rel=1e-4)
    assert found.mean + found.half_width == pytest.approx(high, rel=1e-4)
    assert estimate(samples[:1]).as_json()["low"] is None


def test_seat_order() -> None:
    rng = np.random.default_rng(1)
    fair = [seat_order_test(rng.normal(3, 0.1, (10, 4)), 500, seed) for seed in range(100)]
    assert stats.kstest(fair, "uniform").pvalue > 0.001  # as a p-value should be
    ordered = rng.normal(3, 0.1, (10, 4)) + np.array([0.3, 0.2, 0.1, 0.0])
    assert seat_order_test(ordered) < 0.001
    assert seat_order_test(np.array([[1.0, 2.0]])) == 1.0  # one run cannot tell


def test_intervals_over_episodes_and_over_seeds_by_hand() -> None:
    """Two seeds on the same three boards: boards differ much, seeds by 1."""
    samples = np.array([[0.0, 3.0, 6.0], [1.0, 4.0, 7.0]])
    found = measured(samples)
    assert found.episodes.mean == 3.5
    assert found.episodes.half_width == pytest.approx(4.302653 * 3 / np.sqrt(3), rel=1e-5)
    assert found.by_seed.tolist() == [3.0, 4.0]
    assert found.seeds is not None
    assert found.seeds.half_width == pytest.approx(12.7062 * np.sqrt(0.5) / np.sqrt(2), rel=1e-5)
    assert measured(samples[:1]).seeds is None
