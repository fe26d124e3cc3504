"""Do seats differ, or is it chance? Held against scipy's distributions and numbers by hand."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from hopplus.config import ConfigError
from hopplus.diagnosis.finding import to_json
from hopplus.diagnosis.seats.ordering import (
    ROUNDS,
    TRIED,
    compare_direction,
    compare_episodes,
    compare_runs,
    compare_strength,
    estimate_episodes,
    estimate_runs,
    find_fewest_runs,
    find_power,
    least_p_value,
)
from hopplus.diagnosis.subject import late_returns


def episodes(seed: int, count: int, gap: float = 0.0, seats: int = 3) -> np.ndarray:
    """[E, N] returns as of episodes: mostly zero, and good ones good for all; `gap` is the last
    seat's advantage."""
    dice = np.random.default_rng(seed)
    shared = dice.exponential(size=(count, 1))
    own = dice.exponential(size=(count, seats)) * (dice.uniform(size=(count, seats)) < 0.3)
    returns: np.ndarray = shared + own + gap * (np.arange(seats) == seats - 1)
    return returns


def hotelling(returns: np.ndarray) -> float:
    """T squared of equal means, by neighbours' differences: any contrasts give the same."""
    differences = np.diff(returns, axis=1)
    mean = differences.mean(axis=0)
    covariance = np.cov(differences, rowvar=False).reshape(len(mean), len(mean))
    return float(len(returns) * mean @ np.linalg.inv(covariance) @ mean)


# Episodes.


@pytest.mark.parametrize("seats", [2, 3, 5])
@pytest.mark.parametrize("gap", [0.0, 0.05])
@pytest.mark.parametrize("count", [20, 2000])
def test_episodes_are_tested_as_hotelling_does(seats: int, gap: float, count: int) -> None:
    returns = episodes(seats, count, gap, seats)
    squared, freedom = hotelling(returns), seats - 1
    scaled = squared * (count - freedom) / (freedom * (count - 1))
    found = compare_episodes(returns).p_value
    expected = stats.f.sf(scaled, freedom, count - freedom)
    assert found == pytest.approx(expected, rel=5e-3, abs=1e-6)
    if count > 1000:
        assert found == pytest.approx(stats.chi2.sf(squared, freedom), abs=5e-3)  # its limit


def test_two_seats_are_a_paired_test() -> None:
    returns = episodes(7, 30, 0.02, 2)
    paired = stats.ttest_rel(returns[:, 0], returns[:, 1]).pvalue
    assert compare_episodes(returns).p_value == pytest.approx(paired, rel=1e-3)


def test_order_and_what_all_seats_share_do_not_matter() -> None:
    returns = episodes(8, 500, 0.05)
    found = compare_episodes(returns).p_value
    assert 0.001 < found < 0.999
    assert compare_episodes(returns[:, ::-1]).p_value == pytest.approx(found, rel=1e-3)
    luck = 100 * np.random.default_rng(0).normal(size=(500, 1))
    assert compare_episodes(returns + luck).p_value == pytest.approx(found, rel=1e-3)


def test_chances_are_even_where_seats_are_alike() -> None:
    found = np.array([compare_episodes(episodes(seed, 400)).p_value for seed in range(300)])
    assert 0.05 < (found < 0.1).mean() < 0.16
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_a_small_difference_is_seen_in_many_episodes() -> None:
    assert compare_episodes(episodes(1, 10_000, 0.1)).p_value < 1e-6
    assert compare_episodes(episodes(1, 50, 0.1)).p_value > 0.01


def test_differences_that_never_vary() -> None:
    dice = np.random.default_rng(0)
    luck = dice.integers(0, 9, size=(100, 1)).astype(float)
    assert compare_episodes(luck + np.zeros(3)).p_value == 1.0
    assert compare_episodes(luck + np.array([0.0, 0.0, 1.0])).p_value == 0.0


def test_one_difference_that_never_varies_beside_one_that_does() -> None:
    dice = np.random.default_rng(0)
    returns = dice.integers(0, 9, size=(100, 3)).astype(float)
    returns[:, 1] = returns[:, 0] + 1
    assert compare_episodes(returns).p_value < 1e-6


def test_too_few_episodes_tell_nothing() -> None:
    for count in (1, 2, 8):
        with pytest.raises(ConfigError, match=f"{count} boards are too few to compare 3 seats"):
            compare_episodes(episodes(0, count))
    assert 0 <= compare_episodes(episodes(0, 9)).p_value <= 1


# Runs.


def test_runs_are_tested_by_permutation() -> None:
    """Three runs in the same order: of 6 orders in each, 6 in 216 are as far apart."""
    returns = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [0.0, 1.0, 2.0]])
    assert compare_runs(returns).p_value == pytest.approx(1 / 36, abs=5e-3)
    turned = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]])
    assert compare_runs(turned).p_value == 1.0
    assert compare_runs(returns).least == pytest.approx(1 / 36)  # no order could show less
    assert compare_runs(returns[:1]).p_value == compare_runs(returns[:1]).least == 1.0


def test_the_gap_and_the_means() -> None:
    found = compare_runs(np.array([[1.0, 2.0, 6.0], [3.0, 2.0, 4.0]]))
    assert found.gap == pytest.approx(3.0)
    assert [seat.mean for seat in found.seats] == pytest.approx([2.0, 2.0, 5.0])
    told = to_json(found)
    assert told["samples"] == 2
    assert told["p_value"] == found.p_value
    assert told["least_p_value"] == found.least == pytest.approx(1 / 6)
    assert [seat["mean"] for seat in told["seats"]] == pytest.approx([2.0, 2.0, 5.0])


def test_the_least_that_runs_can_show() -> None:
    assert least_p_value(1, 4) == 1.0
    assert least_p_value(2, 4) == pytest.approx(1 / 24)
    assert least_p_value(3, 2) == pytest.approx(1 / 4)
    assert least_p_value(50, 4) == pytest.approx(1 / (1 + ROUNDS))


def test_runs_of_which_something_is_not_known_are_left_out() -> None:
    returns = np.array([[1.0, 2.0, 3.0], [np.nan] * 3, [2.0, 3.0, 4.0], [0.0, 1.0, 2.0]])
    found = compare_runs(returns)
    assert found.samples.shape == (3, 3)
    assert found.p_value == compare_runs(returns[[0, 2, 3]]).p_value
    nothing = compare_runs(returns[1:2])
    assert (nothing.p_value, nothing.least, len(nothing.samples)) == (1.0, 1.0, 0)
    assert to_json(nothing)["gap"] is None


def test_the_fewest_runs_that_can_tell() -> None:
    assert [find_fewest_runs(seats, 0.01) for seats in (2, 3, 4)] == [8, 4, 3]


def test_as_many_episodes_as_show_a_small_difference() -> None:
    """Four in five of such sets do; a third of the episodes are not enough."""
    dice = np.random.default_rng(0)
    samples = dice.normal(size=(500, 3))
    needed = estimate_episodes(samples, 0.2, 0.001)
    assert needed is not None
    shown = []
    for count in (needed, needed // 3):
        drawn = dice.normal(size=(300, count, 3))
        drawn[:, :, 0] += 0.2
        shown.append(np.mean([compare_episodes(one).p_value < 0.001 for one in drawn]))
    assert 0.7 < shown[0] < 0.93
    assert shown[1] < 0.4
    luck = dice.normal(size=(500, 1))
    assert (estimate_episodes(samples + 9 * luck, 0.2, 0.001) or 0) < needed  # shared by all
    assert estimate_episodes(np.zeros((9, 3)), 0.2, 0.001) is None
    assert estimate_episodes(samples[:1], 0.2, 0.001) is None


def test_returns_that_are_not_numbers_are_not_compared() -> None:
    returns = episodes(0, 50)
    returns[7, 1] = np.nan
    with pytest.raises(ConfigError, match="not numbers"):
        compare_episodes(returns)


def test_the_power_of_a_test_is_that_of_the_noncentral_f() -> None:
    """Of 6 runs of 4 seats, of which one is off by 1.2 times the noise: by blocks, 3 and 15 degrees
    of freedom, and all means apart by 6 (3 / 4) 1.44 in all."""
    rng = np.random.default_rng(0)
    limit = stats.f.isf(0.05, 3, 15)
    expected = stats.ncf.sf(limit, 3, 15, 6 * 0.75 * 1.44)
    found = np.mean([find_power(6, 4, 1.44, 0.05, rng) for _ in range(20)])
    assert found == pytest.approx(expected, abs=0.01)


def test_how_many_runs_it_takes() -> None:
    """So many find a seat that is off in four cases of five, by the test that is used; the next
    fewer do not."""
    dice = np.random.default_rng(0)
    samples = dice.normal(size=(2000, 3))
    count = estimate_runs(samples, 1.5, 0.01)
    assert count is not None

    def power(runs: int) -> float:
        drawn = dice.normal(size=(80, runs, 3)) + np.array([1.5, 0.0, 0.0])
        return float(np.mean([compare_runs(one).p_value < 0.01 for one in drawn]))

    assert power(count) > 0.7
    assert power(TRIED[TRIED.index(count) - 2]) < 0.8
    luck = 50 * dice.normal(size=(2000, 1))
    assert estimate_runs(samples + luck, 1.5, 0.01) == count  # what all seats share is no noise
    less, more = estimate_runs(samples, 3.0, 0.01), estimate_runs(samples, 0.75, 0.01)
    assert less is not None
    assert more is not None
    assert less < count < more
    assert estimate_runs(samples, 1e-3, 0.01) is None  # more than are tried
    assert estimate_runs(samples[:1], 1.5, 0.01) is None
    # However large it is, fewer runs can never show such a chance.
    assert estimate_runs(samples, 1e3, 0.01) == 4
    assert least_p_value(3, 3) > 0.01 > least_p_value(4, 3)


def test_an_ordering_that_comes_again() -> None:
    dice = np.random.default_rng(0)
    noise = 0.1 * dice.normal(size=(3, 8, 3))
    first, again, none = noise[0] + np.arange(3), noise[1] + np.arange(3), noise[2]
    assert compare_direction(first, again) == pytest.approx(2**-8, abs=2e-3)
    assert compare_direction(first, again[:, ::-1]) > 0.95
    assert 0.05 < compare_direction(first, none) < 0.95
    assert compare_direction(first, again + 100 * dice.normal(size=(8, 1))) < 0.01
    assert compare_strength(first, again, none) < 0.01
    assert compare_strength(first, again, again) > 0.3
    assert compare_strength(first, none, again) > 0.95


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
