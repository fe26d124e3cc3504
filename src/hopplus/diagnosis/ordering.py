"""Do seats differ, and could that be chance?"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.evaluation.statistics import Estimate, estimate, seat_order_test

POWER = 7.849  # (z of 0.975 + z of 0.8) squared: to find a difference in four runs of five


@dataclass(frozen=True)
class Ordering:
    """Seats side by side: [S] runs or episodes, [N] seats."""

    samples: np.ndarray  # [S, N]
    chance: float  # that seats differ as much as here if they are all alike

    @property
    def seats(self) -> list[Estimate]:
        return [estimate(seat) for seat in self.samples.T]

    @property
    def gap(self) -> float:
        """Between the best and the worst seat's mean."""
        means = self.samples.mean(axis=0)
        return float(means.max() - means.min())

    @property
    def enough(self) -> int | None:
        """How many runs it takes to be nearly sure to see a gap as wide as this one, if it is real;
        None where there is nothing to see."""
        return runs_for(self.samples, self.gap)

    def as_json(self) -> dict[str, Any]:
        return {
            "seats": [seat.as_json() for seat in self.seats],
            "chance": self.chance,
            "gap": self.gap,
            "samples": len(self.samples),
            "enough": self.enough,
        }


def runs_for(samples: np.ndarray, gap: float) -> int | None:
    """Runs that show a difference of `gap` between two seats in four cases of five, at 5%."""
    if len(samples) < 2 or gap <= 0:
        return None
    own = samples - samples.mean(axis=1, keepdims=True)  # what all seats share is no difference
    spread = own - own.mean(axis=0)
    seats = samples.shape[1]
    variance = float((spread**2).sum() / ((len(samples) - 1) * (seats - 1)))
    return max(2, math.ceil(POWER * 2 * variance / gap**2))


def of_runs(returns: np.ndarray) -> Ordering:
    """Of a few runs [S, N], by a permutation test within each."""
    return Ordering(returns, seat_order_test(returns))


def of_episodes(returns: np.ndarray) -> Ordering:
    """Of many episodes [E, N], by Hotelling's test of equal means, in its limit for many."""
    contrasts = returns[:, 1:] - returns[:, :1]
    spread = np.atleast_2d(np.cov(contrasts.T)) / len(returns)
    mean = contrasts.mean(axis=0)
    if not mean.any():
        return Ordering(returns, 1.0)
    statistic = float(mean @ np.linalg.pinv(spread) @ mean)
    freedom = int(np.linalg.matrix_rank(spread))
    if freedom == 0:  # the same difference every time
        return Ordering(returns, 0.0)
    tail = jax.scipy.special.gammaincc(freedom / 2, statistic / 2)
    return Ordering(returns, float(tail))


def late_returns(records: list[dict[str, Any]], share: float = 0.2) -> np.ndarray:
    """[S, N] mean returns over the last share of a run's updates; NaN without episodes."""
    late = records[-max(1, round(share * len(records))) :]
    episodes = np.sum([record["episodes"] for record in late], axis=0)[:, None]
    totals = np.sum([record["return_sum"] for record in late], axis=0)
    return np.where(episodes > 0, totals / np.maximum(episodes, 1), np.nan)
