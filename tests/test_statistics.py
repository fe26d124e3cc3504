"""Figures about seeds, held against rliable's on the same data."""

import numpy as np
import pytest

from hopplus.evaluation.statistics import (
    Interval,
    across_seeds,
    bootstrap,
    estimate,
    improvement,
    interquartile_mean,
    seeds_json,
)
from hopplus.report.numbers import doubt_seeds

# Scores of seeds (rows) in five tasks, and what rliable 1.2 says of them; its intervals are of
# 20,000 and 5,000 draws.
ONE = np.array(
    [
        [2.58, 2.42, 2.88, 2.56, 2.18],
        [2.72, 3.28, 3.07, 2.08, 1.74],
        [2.13, 2.52, 1.1, 2.37, 1.75],
        [2.06, 2.17, 2.31, 2.75, 3.13],
        [2.42, 3.32, 2.1, 2.71, 3.04],
        [2.56, 2.05, 1.95, 2.23, 2.63],
        [1.89, 2.37, 2.4, 2.82, 2.63],
    ]
)
TWO = np.array(
    [
        [2.98, 2.47, 2.74, 3.19, 3.55],
        [2.17, 3.56, 3.47, 3.19, 2.93],
        [2.64, 3.53, 3.78, 3.7, 3.46],
        [2.98, 2.2, 2.8, 3.13, 2.16],
        [3.0, 3.01, 3.15, 2.21, 2.47],
        [2.58, 2.22, 3.67, 2.55, 2.96],
    ]
)


def test_interquartile_mean() -> None:
    assert interquartile_mean(ONE) == pytest.approx(2.4215789473684213)
    assert interquartile_mean(TWO) == pytest.approx(2.955625)


def test_intervals_are_those_of_rliable() -> None:
    one, two = bootstrap(ONE, rounds=5_000), bootstrap(TWO, rounds=5_000)
    assert [one.low, one.high] == pytest.approx([2.26947, 2.57947], abs=0.01)
    assert [two.low, two.high] == pytest.approx([2.73936, 3.17563], abs=0.015)
    mean = bootstrap(ONE, lambda scores: float(scores.mean()), rounds=5_000)
    assert mean.figure == pytest.approx(2.426285714285714)
    assert [mean.low, mean.high] == pytest.approx([2.27457, 2.57258], abs=0.01)


def test_chance_of_improvement_is_that_of_rliable() -> None:
    found = improvement(TWO, ONE, rounds=5_000)
    assert found.figure == pytest.approx(0.769047619047619)
    assert [found.low, found.high] == pytest.approx([0.64286, 0.88095], abs=0.01)
    assert improvement(ONE, ONE, rounds=2).figure == pytest.approx(0.5)  # ties count half


def test_too_few_seeds_are_said_to_be() -> None:
    assert Interval(1.0, 0.9, 1.1, seeds=4).too_few
    assert Interval(1.0, 0.9, 1.1, seeds=4).as_json()["too_few"]
    assert "4 are too few" in str(doubt_seeds(4))  # as pages say it
    assert not bootstrap(ONE, rounds=10).too_few
    assert doubt_seeds(5) is None
    assert str(Interval(1.0, 0.9, 1.1, seeds=5)) == "1.000 [0.900, 1.100]"


def test_one_sample_is_shown_alone() -> None:
    """There is no interval, so nothing stands in its place."""
    assert str(estimate(np.array([2.874]))) == "2.874"
    assert str(estimate(np.array([1.0, 1.0]))) == "1.000 ± 0.000"


def test_contestants_over_their_seeds() -> None:
    """The first is what the others are held against; who has no several seeds is left out."""
    low, high = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 4.0, 5.0, 6.0])
    one, none, two = across_seeds([low, low[:1], high])
    assert none is None
    assert one is not None
    assert two is not None
    assert one.iqm.figure == 2.5
    assert one.improvement is None
    assert two.improvement is not None
    # Of sixteen pairs, thirteen are better, two even and one is worse.
    assert two.improvement.figure == pytest.approx((13 + 2 / 2) / 16)
    assert two.improvement == improvement(high[:, None], low[:, None])
    assert across_seeds([np.array([1.0, np.nan])]) == [None]
    assert seeds_json(None) == {"iqm": None, "probability_of_improvement": None}
    assert seeds_json(one) == {"iqm": one.iqm, "probability_of_improvement": None}
