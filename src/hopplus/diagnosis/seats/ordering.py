"""Do seats differ, and could that be chance?"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError
from hopplus.evaluation.statistics import Estimate, estimate, seat_order_test

ROUNDS = 10_000  # of a permutation test, so that no p-value below one of so many is ever seen
POWER = 0.8  # how often a difference should be found that is there
TRIED = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100, 200)  # runs
MOST_EPISODES = 1_000_000


@dataclass(frozen=True)
class Ordering:
    """Seats side by side: [S] runs or episodes, [N] seats."""

    samples: np.ndarray  # [S, N]
    p_value: float  # how likely seats that are alike differ as much as here
    least: float = 0.0  # the smallest p-value that so few samples can show

    @property
    def seats(self) -> list[Estimate]:
        if not len(self.samples):
            return [Estimate(math.nan, math.inf)] * self.samples.shape[1]
        return [estimate(seat) for seat in self.samples.T]

    @property
    def gap(self) -> float:
        """Between the best and the worst seat's mean."""
        return float(np.ptp(self.samples.mean(axis=0))) if len(self.samples) else math.nan

    def as_json(self) -> dict[str, Any]:
        return {
            "seats": self.seats,
            "p_value": self.p_value,
            "least_p_value": self.least,
            "gap": self.gap,
            "samples": len(self.samples),
        }


def least_p_value(runs: int, seats: int) -> float:
    """The smallest p-value that a permutation test of so many runs can show."""
    ways = math.factorial(seats)
    return max(1.0 / (1 + ROUNDS), float(ways) ** (1 - runs)) if runs > 1 else 1.0


def find_fewest_runs(seats: int, p_value: float) -> int:
    """The fewest runs that can show anything below that p-value, if all are ordered alike."""
    return next(runs for runs in range(2, 100) if least_p_value(runs, seats) < p_value)


def estimate_episodes(
    samples: np.ndarray, share: float, p_value: float, seed: int = 0
) -> int | None:
    """Episodes as noisy as these [E, N] of which four in five sets would show, below that p-value,
    that one seat is off by such a share of the spread of a seat's return; None if that cannot be
    told, or takes more than a million."""
    count, seats = samples.shape
    whole = float(samples.var(axis=0, ddof=1).mean()) if count > 1 else 0.0
    if whole == 0:
        return None
    noise, rng = max(_noise(samples), 1e-9 * whole), np.random.default_rng(seed)
    episodes = 3 * seats
    while episodes <= MOST_EPISODES:
        if find_power(episodes, seats, share**2 * whole / noise, p_value, rng) >= POWER:
            return int(episodes)
        episodes = math.ceil(1.1 * episodes)
    return None


def estimate_runs(samples: np.ndarray, gap: float, p_value: float, seed: int = 0) -> int | None:
    """Runs [S, N] as noisy as these of which four in five would show, below that p-value, that one
    seat is off by `gap`; None if that cannot be told, or takes more than can be tried."""
    count, seats = samples.shape
    if count < 2:
        return None
    # An analysis of variance with the runs as blocks, which the permutation test comes close to.
    ratio, rng = gap**2 / max(_noise(samples), 1e-9 * gap**2), np.random.default_rng(seed)
    for runs in TRIED:
        if least_p_value(runs, seats) >= p_value:  # so few cannot show it, however far it is off
            continue
        if find_power(runs, seats, ratio, p_value, rng) >= POWER:
            return runs
    return None


def _noise(samples: np.ndarray) -> float:
    """The variance of [S, N] samples of one seat; what all seats share is no difference."""
    seats = int(samples.shape[1])
    own = samples - samples.mean(axis=1, keepdims=True)
    return float(own.var(axis=0, ddof=1).mean() * seats / (seats - 1))


def find_power(
    samples: int, seats: int, ratio: float, p_value: float, rng: np.random.Generator
) -> float:
    """How often F of so many samples shows, below that p-value, that one seat is off by d, where
    `ratio` is d^2 by the variance of the noise; by draws of the noncentral F."""
    one, two = seats - 1, (samples - 1) * (seats - 1)
    # One seat of N that is off by d moves all means apart by d^2 (N - 1) / N in all.
    between = rng.noncentral_chisquare(one, samples * ratio * one / seats, 2_000) / one
    drawn = between / (rng.chisquare(two, 2_000) / two)
    return float((_tail(drawn, one, two) < p_value).mean())


def _tail(statistic: Any, one: int, two: int) -> np.ndarray:
    """How likely F of so many degrees of freedom is as large."""
    share = two / (two + one * np.asarray(statistic, np.float64))
    return np.asarray(jax.scipy.special.betainc(two / 2, one / 2, share))


def compare_runs(returns: np.ndarray) -> Ordering:
    """Of a few runs [S, N], by a permutation test within each; runs of which something is not known
    are left out."""
    known = returns[np.isfinite(returns).all(axis=1)]
    if len(known) == 0:
        return Ordering(known, 1.0, 1.0)  # nothing can be told
    return Ordering(known, seat_order_test(known, ROUNDS), least_p_value(*known.shape))


def compare_episodes(returns: np.ndarray) -> Ordering:
    """Of many episodes [E, N], by Hotelling's test of equal means."""
    count, seats = returns.shape
    if not np.isfinite(returns).all():
        raise ConfigError("some returns are not numbers: seats cannot be compared")
    if count < 3 * seats:
        raise ConfigError(f"{count} boards are too few to compare {seats} seats: more --episodes")
    contrasts = returns[:, 1:] - returns[:, :1]
    mean = contrasts.mean(axis=0)
    if not mean.any():
        return Ordering(returns, 1.0)
    spread = np.atleast_2d(np.cov(contrasts.T)) / count
    freedom = int(np.linalg.matrix_rank(spread, rtol=1e-9))
    if freedom == 0:  # the same difference every time
        return Ordering(returns, 0.0)
    inverse = np.linalg.pinv(spread, rcond=1e-9)
    fixed = mean - spread @ inverse @ mean  # of the differences that never vary
    if np.abs(fixed).max() > 1e-9 * np.abs(mean).max():
        return Ordering(returns, 0.0)
    statistic = float(mean @ inverse @ mean)
    scaled = statistic * (count - freedom) / (freedom * (count - 1))
    return Ordering(returns, float(_tail(scaled, freedom, count - freedom)))


def compare_direction(first: np.ndarray, again: np.ndarray, seed: int = 0) -> float:
    """The p-value of [R, N] runs being ordered as much the way that earlier runs [S, N] are: the
    signs of their orderings are drawn."""
    scores = _along(first, again)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (ROUNDS, len(scores)))
    return _share_beyond((signs * scores).mean(axis=1), scores.mean())


def compare_strength(first: np.ndarray, one: np.ndarray, two: np.ndarray, seed: int = 0) -> float:
    """The p-value of runs `two` [R, N] being so much less ordered than runs `one`, the way that
    earlier runs are: which is which is drawn."""
    scores = np.concatenate([_along(first, one), _along(first, two)])
    drawn = np.random.default_rng(seed).permuted(np.tile(scores, (ROUNDS, 1)), axis=1)

    def difference(scores: np.ndarray) -> np.ndarray:
        return np.asarray(scores[..., : len(one)].mean(axis=-1) - scores[..., len(one) :].mean(-1))

    return _share_beyond(difference(drawn), difference(scores))


def _share_beyond(drawn: np.ndarray, seen: Any) -> float:
    """The share of drawn figures that are as large as the one seen, which is counted as drawn too;
    with some room, as sums in another order differ in their last digits."""
    return float((1 + (drawn >= seen - 1e-12).sum()) / (1 + len(drawn)))


def _along(first: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """[R] how far the seats of each run are ordered the way that the earlier runs are."""
    way = first.mean(axis=0) - first.mean()
    own = runs - runs.mean(axis=1, keepdims=True)
    return np.asarray(own @ way / max(float(np.linalg.norm(way)), 1e-12))
