"""Numbers about samples, with how sure one may be of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

ENOUGH = 5  # seeds below which intervals say little


@dataclass(frozen=True)
class Estimate:
    """A mean and the half width of its 95% interval; infinite for a single sample."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        if math.isinf(self.half_width):  # of one sample, there is no more to say
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} ± {self.half_width:.3f}"

    def as_json(self) -> dict[str, float | None]:
        known = math.isfinite(self.half_width)
        low, high = self.mean - self.half_width, self.mean + self.half_width
        return {
            "mean": self.mean,
            "low": low if known else None,
            "high": high if known else None,
        }


@dataclass(frozen=True)
class Interval:
    """A figure and the ends of its 95% interval."""

    figure: float
    low: float
    high: float
    seeds: int

    @property
    def too_few(self) -> bool:
        """Whether there are too few seeds to trust the interval: drawn from a handful, it is too
        narrow."""
        return self.seeds < ENOUGH

    def __str__(self) -> str:
        return f"{self.figure:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "too_few": self.too_few}


def estimate(samples: np.ndarray) -> Estimate:
    """The mean of independent samples [E] with Student's 95% interval."""
    count = len(samples)
    if count < 2:
        return Estimate(float(np.mean(samples)), math.inf)
    spread = float(np.std(samples, ddof=1)) / math.sqrt(count)
    return Estimate(float(np.mean(samples)), student_quantile(0.975, count - 1) * spread)


def share_of_way(gain: np.ndarray, way: np.ndarray) -> list[Estimate] | None:
    """By column, the share of a way [S', C] that gains [S, C] are, over their seeds; None where
    there is no way to go that one can be sure of."""
    whole = estimate(way.mean(axis=1))
    if not whole.mean > 0 or whole.mean < whole.half_width < math.inf:
        return None
    # Who looks ahead may have less at first: there is no share of a way that leads down.
    along = way.mean(axis=0)
    return [estimate(column) for column in (gain / np.where(along > 0, along, np.nan)).T]


def apart(one: Estimate, other: Estimate) -> bool:
    """Whether two independent means differ by more than their intervals allow; of single samples
    nobody can tell."""
    return abs(one.mean - other.mean) > math.hypot(one.half_width, other.half_width)


def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t distribution.

    Exact for one and two degrees of freedom; beyond, the expansion around the normal quantile in
    powers of 1/freedom (Abramowitz and Stegun 26.7.5), whose error is largest for three: 0.12% at
    0.975 and 0.8% at 0.995.
    """
    if freedom == 1:
        return math.tan(math.pi * (probability - 0.5))
    if freedom == 2:
        odds = 4 * probability * (1 - probability)
        return 2 * (probability - 0.5) * math.sqrt(2 / odds)
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, 1))


def interquartile_mean(scores: np.ndarray) -> float:
    """The mean of the middle half of all scores (Agarwal et al. 2021)."""
    ordered = np.sort(scores, axis=None)
    cut = int(0.25 * ordered.size)
    return float(ordered[cut : ordered.size - cut].mean())


def bootstrap(
    scores: np.ndarray,
    figure: Callable[[np.ndarray], float] = interquartile_mean,
    rounds: int = 2_000,
) -> Interval:
    """A figure of scores [S, K] of S seeds in each of K tasks, with the 95% interval of drawing the
    seeds anew, for each task on its own."""
    return _resample(figure, rounds, scores)


def improvement(one: np.ndarray, two: np.ndarray, rounds: int = 2_000) -> Interval:
    """The chance that a run of the first does better than one of the second, ties counted half, on
    average over tasks (Agarwal et al. 2021); scores [S, K] and [R, K]."""

    def better(one: np.ndarray, two: np.ndarray) -> float:
        above = one[:, None] > two[None]
        level = one[:, None] == two[None]
        return float((above + 0.5 * level).mean())

    return _resample(better, rounds, one, two)


def _resample(figure: Callable[..., float], rounds: int, *tables: np.ndarray) -> Interval:
    """A figure of tables [S, K] with the 95% interval of drawing as many seeds as there are, with
    repetition, for each task on its own."""
    rng = np.random.default_rng(0)

    def redrawn(scores: np.ndarray) -> np.ndarray:
        rows = rng.integers(len(scores), size=scores.shape)
        return np.take_along_axis(scores, rows, axis=0)

    drawn = [figure(*map(redrawn, tables)) for _ in range(rounds)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Interval(figure(*tables), float(low), float(high), min(map(len, tables)))


def seat_order_test(returns: np.ndarray, rounds: int = 10_000, seed: int = 0) -> float:
    """The chance that seats differ as much as in [S, N] returns of S runs if seats did not matter.

    A permutation test: within each run the seats' returns change places at random, and the variance
    of the seats' means is compared with the one seen.
    """
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.broadcast_to(returns, (rounds, *returns.shape)), axis=2)
    spread = shuffled.mean(axis=1).var(axis=1)
    seen = returns.mean(axis=0).var()
    return float((1 + (spread >= seen - 1e-12).sum()) / (1 + rounds))


@dataclass(frozen=True)
class AcrossSeeds:
    """One of several contestants over its seeds, as Agarwal et al. (2021) report them."""

    iqm: Interval  # the interquartile mean with its bootstrap interval
    improvement: Interval | None  # the probability of improvement over the first; None for itself

    def as_json(self) -> dict[str, Any]:
        return {"iqm": self.iqm, "probability_of_improvement": self.improvement}


def seeds_json(found: AcrossSeeds | None) -> dict[str, Any]:
    """Its figures, or null for each of them where they are not known."""
    return found.as_json() if found else {"iqm": None, "probability_of_improvement": None}


def across_seeds(scores: Sequence[np.ndarray | None]) -> list[AcrossSeeds | None]:
    """For scores [S] or [S, K] of each contestant; None where there are not several seeds, or not
    all of them have a score."""
    tables = [_by_seed(one) for one in scores]
    first = tables[0] if tables else None
    return [
        None
        if table is None
        else AcrossSeeds(
            bootstrap(table), None if place == 0 or first is None else improvement(table, first)
        )
        for place, table in enumerate(tables)
    ]


def _by_seed(scores: np.ndarray | None) -> np.ndarray | None:
    """[S, K] of at least two seeds, if all is known."""
    if scores is None or len(scores) < 2 or not np.isfinite(scores).all():
        return None
    return scores.reshape(len(scores), -1)
