"""Do seats differ, or is it chance? Held against scipy's distributions and numbers by hand."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hopplus.diagnosis.ordering import Ordering, late_returns, of_episodes, of_runs, runs_for


def episodes(seed: int, count: int, gap: float = 0.0, seats: int = 3) -> np.ndarray:
    """[E, N] returns as of episodes: mostly zero, and good ones good for all; `gap` is the last
    seat's advantage."""
    dice = np.random.default_rng(seed)
    shared = dice.exponential(size=(count, 1))
    own = dice.exponential(size=(count, seats)) * (dice.uniform(size=(count, seats)) < 0.3)
    return shared + own + gap * (np.arange(seats) == seats - 1)


def hotelling(returns: np.ndarray) -> float:
    """T squared of equal means, by neighbours' differences: any contrasts give the same."""
    differences = np.diff(returns, axis=1)
    mean = differences.mean(axis=0)
    covariance = np.cov(differences, rowvar=False).reshape(len(mean), len(mean))
    return float(len(returns) * mean @ np.linalg.inv(covariance) @ mean)


# Episodes.


@pytest.mark.parametrize("seats", [2, 3, 5])
@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_episodes_are_tested_as_hotelling_does(seats: int, gap: float) -> None:
    """As chi-squared exactly, and for many episodes nearly as F, which is true of normal ones."""
    returns = episodes(seats, 2000, gap, seats)
    squared, freedom = hotelling(returns), seats - 1
    found = of_episodes(returns).chance
    assert found == pytest.approx(stats.chi2.sf(squared, freedom), rel=1e-3, abs=1e-6)
    scaled = squared * (2000 - freedom) / (freedom * 1999)
    assert found == pytest.approx(stats.f.sf(scaled, freedom, 2000 - freedom), abs=5e-3)


def test_two_seats_are_a_paired_test() -> None:
    returns = episodes(7, 3000, 0.02, 2)
    paired = stats.ttest_rel(returns[:, 0], returns[:, 1]).pvalue
    assert of_episodes(returns).chance == pytest.approx(paired, abs=2e-3)


def test_order_and_what_all_seats_share_do_not_matter() -> None:
    returns = episodes(8, 500, 0.05)
    found = of_episodes(returns).chance
    assert 0.001 < found < 0.999
    assert of_episodes(returns[:, ::-1]).chance == pytest.approx(found, rel=1e-3)
    luck = 100 * np.random.default_rng(0).normal(size=(500, 1))
    assert of_episodes(returns + luck).chance == pytest.approx(found, rel=1e-3)


def test_chances_are_even_where_seats_are_alike() -> None:
    found = np.array([of_episodes(episodes(seed, 400)).chance for seed in range(300)])
    assert 0.05 < (found < 0.1).mean() < 0.16
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_a_small_difference_is_seen_in_many_episodes() -> None:
    assert of_episodes(episodes(1, 10_000, 0.1)).chance < 1e-6
    assert of_episodes(episodes(1, 50, 0.1)).chance > 0.01


def test_differences_that_never_vary() -> None:
    dice = np.random.default_rng(0)
    luck = dice.integers(0, 9, size=(100, 1)).astype(float)
    assert of_episodes(luck + np.zeros(3)).chance == 1.0
    assert of_episodes(luck + np.array([0.0, 0.0, 1.0])).chance == 0.0


@pytest.mark.xfail(strict=True, reason="a difference that never varies is left out beside others")
def test_one_difference_that_never_varies_beside_one_that_does() -> None:
    dice = np.random.default_rng(0)
    returns = dice.integers(0, 9, size=(100, 3)).astype(float)
    returns[:, 1] = returns[:, 0] + 1
    assert of_episodes(returns).chance < 1e-6


@pytest.mark.xfail(strict=True, reason="the spread of one episode is no number")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_one_episode_tells_nothing() -> None:
    assert of_episodes(np.array([[1.0, 2.0, 3.0]])).chance == 1.0


# Runs.


def test_runs_are_tested_by_permutation() -> None:
    """Three runs in the same order: of 6 orders in each, 6 in 216 are as far apart."""
    returns = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [0.0, 1.0, 2.0]])
    assert of_runs(returns).chance == pytest.approx(1 / 36, abs=5e-3)
    turned = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])
    assert of_runs(turned).chance == 1.0
    assert of_runs(returns[:1]).chance == 1.0  # one run can never tell


def test_the_gap_and_the_means() -> None:
    found = of_runs(np.array([[1.0, 2.0, 6.0], [3.0, 2.0, 4.0]]))
    assert found.gap == pytest.approx(3.0)
    assert [seat.mean for seat in found.seats] == pytest.approx([2.0, 2.0, 5.0])
    told = found.as_json()
    assert told["samples"] == 2
    assert told["chance"] == found.chance
    assert told["enough"] == found.enough == runs_for(found.samples, 3.0)
    assert [seat["mean"] for seat in told["seats"]] == pytest.approx([2.0, 2.0, 5.0])


def test_how_many_runs_it_takes_by_hand() -> None:
    """Two seats whose difference is 0, 2, 4, 6: its variance is 20 / 3, that of one seat beside
    what both share half of that."""
    samples = np.array([[0.0, 0.0], [5.0, 7.0], [1.0, 5.0], [2.0, 8.0]])
    power = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2
    assert runs_for(samples, 1.0) == math.ceil(power * 20 / 3)
    assert runs_for(samples, 2.0) == math.ceil(power * 20 / 3 / 4)
    assert runs_for(samples, 1e3) == 2  # one run never tells
    assert runs_for(samples[:1], 1.0) is None
    assert runs_for(samples, 0.0) is None
    assert Ordering(np.ones((3, 2)), 1.0).enough is None


def test_as_many_runs_find_the_gap_in_four_cases_of_five() -> None:
    dice = np.random.default_rng(0)
    count = runs_for(dice.normal(size=(10_000, 2)), 0.5)
    assert count is not None
    samples = dice.normal(size=(1000, count, 2)) + np.array([0.0, 0.5])
    found = stats.ttest_rel(samples[..., 0], samples[..., 1], axis=1).pvalue
    assert (found < 0.05).mean() == pytest.approx(0.8, abs=0.05)


# What was logged.


def record(episodes: list[int], totals: list[list[float]]) -> dict[str, Any]:
    return {"episodes": episodes, "return_sum": totals}


def test_late_returns_are_of_the_last_fifth() -> None:
    early = record([9, 9], [[900.0, 0.0], [900.0, 0.0]])
    late = [record([1, 3], [[1.0, 2.0], [3.0, 6.0]]), record([3, 1], [[3.0, 2.0], [1.0, 2.0]])]
    found = late_returns([early] * 8 + late)
    np.testing.assert_allclose(found, [[1.0, 1.0], [1.0, 2.0]])  # every episode counts alike
    np.testing.assert_allclose(late_returns(late[:1]), [[1.0, 2.0], [1.0, 2.0]])


def test_seeds_without_episodes_are_told_apart() -> None:
    records = [record([2, 0], [[2.0, 4.0], [0.0, 0.0]])] * 5
    found = late_returns(records)
    np.testing.assert_allclose(found[0], [1.0, 2.0])
    assert np.isnan(found[1]).all()
