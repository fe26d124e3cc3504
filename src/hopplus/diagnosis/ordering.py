"""Do seats differ, and could that be chance?"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError
from hopplus.evaluation.statistics import Estimate, estimate, seat_order_test

ROUNDS = 10_000  # of the permutation test, so that no chance below one of so many is ever seen
POWER = 0.8  # how often a difference should be found that is there
TRIED = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100, 200)  # runs


@dataclass(frozen=True)
class Ordering:
    """Seats side by side: [S] runs or episodes, [N] seats."""

    samples: np.ndarray  # [S, N]
    chance: float  # that seats differ as much as here if they are all alike
    least: float = 0.0  # the smallest chance that so few samples can show

    @property
    def seats(self) -> list[Estimate]:
        if not len(self.samples):
            return [Estimate(math.nan, math.inf)] * self.samples.shape[1]
        return [estimate(seat) for seat in self.samples.T]

    @property
    def gap(self) -> float:
        """Between the best and the worst seat's mean."""
        if not len(self.samples):
            return math.nan
        means = self.samples.mean(axis=0)
        return float(means.max() - means.min())

    def as_json(self) -> dict[str, Any]:
        return {
            "seats": [seat.as_json() for seat in self.seats],
            "chance": self.chance,
            "least_chance": self.least,
            "gap": self.gap,
            "samples": len(self.samples),
        }


def least_chance(runs: int, seats: int) -> float:
    """The smallest chance that a permutation test of so many runs can show."""
    ways = math.factorial(seats)
    return max(1.0 / (1 + ROUNDS), float(ways) ** (1 - runs)) if runs > 1 else 1.0


def fewest_runs(seats: int, chance: float) -> int:
    """The fewest runs that can show anything below that chance, if all are ordered alike."""
    return next(runs for runs in range(2, 100) if least_chance(runs, seats) < chance)


def episodes_for(samples: np.ndarray, share: float, chance: float, seed: int = 0) -> int | None:
    """Episodes as noisy as these [E, N] of which four in five sets would show, below that chance,
    that one seat is off by such a share of the spread of a seat's return; None if that cannot be
    told, or takes more than a million."""
    count, seats = samples.shape
    whole = float(samples.var(axis=0, ddof=1).mean()) if count > 1 else 0.0
    if whole == 0:
        return None
    own = samples - samples.mean(axis=1, keepdims=True)
    within = float(own.var(axis=0, ddof=1).mean()) * seats / (seats - 1)
    rng = np.random.default_rng(seed)
    one, episodes = int(seats - 1), int(3 * seats)
    while episodes <= 1_000_000:
        # One seat of N that is off by d moves all means apart by d^2 (N - 1) / N in all.
        moved = share**2 * whole * one / seats
        two = (episodes - 1) * one
        offset = episodes * moved / max(within, 1e-9 * whole)
        drawn = (
            rng.noncentral_chisquare(one, offset, 2_000) / one / (rng.chisquare(two, 2_000) / two)
        )
        if float((_tail(drawn, one, two) < chance).mean()) >= POWER:
            return episodes
        episodes = math.ceil(1.1 * episodes)
    return None


def runs_for(samples: np.ndarray, gap: float, chance: float, seed: int = 0) -> int | None:
    """Runs [S, N] as noisy as these of which four in five would show, below that chance, that one
    seat is off by `gap`; None if that cannot be told, or takes more than can be tried."""
    count, seats = samples.shape
    if count < 2:
        return None
    own = samples - samples.mean(axis=1, keepdims=True)  # what all seats share is no difference
    spread = own - own.mean(axis=0)
    deviation = math.sqrt(float((spread**2).sum()) / ((count - 1) * (seats - 1)))
    rng = np.random.default_rng(seed)
    for runs in TRIED:
        if least_chance(runs, seats) >= chance:
            continue
        drawn = rng.normal(0.0, deviation, (400, runs, seats))
        drawn[:, :, 0] += gap
        if float((_same_chance(drawn) < chance).mean()) >= POWER:
            return runs
    return None


def _same_chance(runs: np.ndarray) -> np.ndarray:
    """[D] the chance of such differences among alike seats, of [D, S, N] runs with normal noise: an
    analysis of variance with the runs as blocks, which the permutation test comes close to."""
    _, count, seats = runs.shape
    means = runs.mean(axis=1, keepdims=True)
    whole = runs.mean(axis=(1, 2), keepdims=True)
    between = count * ((means - whole) ** 2).sum(axis=(1, 2)) / (seats - 1)
    rest = runs - means - runs.mean(axis=2, keepdims=True) + whole
    freedom = (count - 1) * (seats - 1)
    within = (rest**2).sum(axis=(1, 2)) / freedom
    return _tail(between / np.maximum(within, 1e-30), seats - 1, freedom)


def _tail(statistic: Any, one: int, two: int) -> np.ndarray:
    """The chance that F of so many degrees of freedom is as large."""
    share = two / (two + one * np.asarray(statistic, np.float64))
    return np.asarray(jax.scipy.special.betainc(two / 2, one / 2, share))


def of_runs(returns: np.ndarray) -> Ordering:
    """Of a few runs [S, N], by a permutation test within each; runs of which something is not known
    are left out."""
    known = returns[np.isfinite(returns).all(axis=1)]
    if len(known) == 0:
        return Ordering(known, 1.0, 1.0)  # nothing can be told
    least = least_chance(*known.shape)
    return Ordering(known, seat_order_test(known, ROUNDS), least)


def of_episodes(returns: np.ndarray) -> Ordering:
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


def late_returns(records: list[dict[str, Any]], share: float = 0.2) -> np.ndarray:
    """[S, N] mean returns over the last share of a run's updates; NaN without episodes."""
    late = records[-max(1, round(share * len(records))) :]
    episodes = np.sum([record["episodes"] for record in late], axis=0)[:, None]
    totals = np.sum([record["return_sum"] for record in late], axis=0)
    return np.where(episodes > 0, totals / np.maximum(episodes, 1), np.nan)


def repeats(first: np.ndarray, again: np.ndarray, rounds: int = 10_000, seed: int = 0) -> float:
    """The chance that [R, N] runs are ordered as much the way that earlier runs [S, N] are, if the
    signs of their orderings were drawn."""
    scores = _along(first, again)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (rounds, len(scores)))
    seen = scores.mean()
    return float((1 + ((signs * scores).mean(axis=1) >= seen - 1e-12).sum()) / (1 + rounds))


def falls(
    first: np.ndarray, one: np.ndarray, two: np.ndarray, rounds: int = 10_000, seed: int = 0
) -> float:
    """The chance that runs `two` [R, N] are so much less ordered than runs `one`, the way that
    earlier runs are, if which is which were drawn."""
    scores = np.concatenate([_along(first, one), _along(first, two)])
    drawn = np.random.default_rng(seed).permuted(np.tile(scores, (rounds, 1)), axis=1)

    def difference(scores: np.ndarray) -> np.ndarray:
        return np.asarray(scores[..., : len(one)].mean(axis=-1) - scores[..., len(one) :].mean(-1))

    return float((1 + (difference(drawn) >= difference(scores) - 1e-12).sum()) / (1 + rounds))


def _along(first: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """[R] how far the seats of each run are ordered the way that the earlier runs are."""
    way = first.mean(axis=0) - first.mean()
    own = runs - runs.mean(axis=1, keepdims=True)
    return np.asarray(own @ way / max(float(np.linalg.norm(way)), 1e-12))
