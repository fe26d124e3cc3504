"""The ladder from PPO to HOP+, a part more on every rung: its runs, and what they say together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from hopplus.config import ConfigError, PartName, TrainConfig
from hopplus.evaluation.statistics import AcrossSeeds, Estimate, across_seeds, estimate, seeds_json
from hopplus.learning.from_run import learning_seats
from hopplus.learning.train import FINAL
from hopplus.presets import PRESETS
from hopplus.runs.folder import RunFolder

# What a return is taken over when it is compared with a level: so many environment steps of each
# seed, as small updates would else be above it by chance sooner than large ones; but no more than a
# tenth of the run, and updates enough that the first episodes to end are not alone.
SMOOTHED_STEPS, SMOOTHED = 12_288, 3


def _ppo_with(*parts: PartName) -> TrainConfig:
    return replace(PRESETS["ppo"], parts=parts)


@dataclass(frozen=True)
class Rung:
    """One of the runs that are compared."""

    title: str
    config: TrainConfig


# By the name of a rung's folder. The settings of PPO change together with the last part, hence the
# last row: those settings without any part.
TUNED = PRESETS["hop-plus"].without(*PRESETS["hop-plus"].parts)
LADDER: Mapping[str, Rung] = MappingProxyType(
    {
        "ppo": Rung("ppo", _ppo_with()),
        "opponent": Rung("+opponent", _ppo_with("opponent")),
        "goal": Rung("+goal", _ppo_with("opponent", "goal")),
        "world": Rung("+world", _ppo_with("opponent", "goal", "world")),
        "imagination": Rung("+imagination", PRESETS["hop-plus"]),
        "tuned-ppo": Rung("ppo as tuned for hop-plus", TUNED),
    }
)


def choose(names: Sequence[str]) -> dict[str, Rung]:
    """The rungs of those names, with a + before them or not, in the ladder's own order."""
    plain = {name.removeprefix("+") for name in names}
    for name in names:
        if name.removeprefix("+") not in LADDER:
            raise ConfigError(f"--rungs has {name!r} but there are only {', '.join(LADDER)}")
    if not plain:
        raise ConfigError(f"--rungs names none; there are {', '.join(LADDER)}")
    return {name: rung for name, rung in LADDER.items() if name in plain}


@dataclass(frozen=True)
class Trace:
    """What a rung has left behind: U updates, S seeds."""

    name: str
    title: str
    steps: int  # environment steps of an update, of each seed
    returns: np.ndarray  # [U, S] mean over learners, added up over the episodes that ended
    episodes: np.ndarray  # [U, S] that ended
    value_loss: np.ndarray  # [U, S] mean over seats
    seconds: float  # of an update of all seeds, without compilation

    @property
    def updates(self) -> int:
        return len(self.returns)

    def late(self, update: int) -> np.ndarray:
        """[S] mean return over the last tenth of the updates up to one; NaN without episodes."""
        tenth = slice(update - max(1, round(FINAL * update)), update)
        return _ratio(self.returns[tenth].sum(axis=0), self.episodes[tenth].sum(axis=0))

    def curve(self) -> np.ndarray:
        """[U, S] return over an update and the last ones before it; NaN without episodes, and at
        first.

        At first, because the episodes that end soonest are the short ones, which are no fair
        sample: a single first update may be above a level that later ones are far below.
        """

        wanted = math.ceil(SMOOTHED_STEPS / self.steps)
        size = max(SMOOTHED, min(wanted, round(FINAL * self.updates)))

        def windows(counts: np.ndarray) -> np.ndarray:
            sums = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
            return np.asarray(sums[size:] - sums[:-size])

        smooth = np.full(self.returns.shape, np.nan)
        if self.updates >= size:
            smooth[size - 1 :] = _ratio(windows(self.returns), windows(self.episodes))
        return smooth

    def steps_to(self, level: float) -> int | None:
        """Environment steps after which the mean over seeds is first at the level, if ever."""
        return _steps_to(self.curve().mean(axis=1), level, self.steps)


def _ratio(totals: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)


def read_trace(name: str, title: str, run: RunFolder, updates: int | None = None) -> Trace:
    """The metrics of a finished rung; or up to an update, of a run that may since have gone on."""
    config, result = run.config(), run.result()
    records = run.metrics() if updates is None else run.log_until(updates)
    if updates is None and (result is None or len(records) != config.updates):
        raise ConfigError(f"{run.path} is not finished, or its metrics are damaged")
    seats = learning_seats(config)
    return Trace(
        name,
        title,
        config.ppo.steps,
        np.array([np.asarray(r["return_sum"])[:, seats].mean(axis=-1) for r in records]),
        np.array([record["episodes"] for record in records]),
        np.array([np.mean(record["value_loss"], axis=-1) for record in records]),
        seconds_per_update(result, config) if result else math.nan,
    )


def seconds_per_update(result: dict[str, Any], config: TrainConfig) -> float:
    """Seconds of an update of all seeds, without the first, which waits for compilation.

    By the run's own rate, which is that of its last sitting: of a run that was stopped, `seconds`
    has every sitting's compilation in it.
    """
    if rate := result["steps_per_second"]:
        return float(config.ppo.steps * config.seeds / rate)
    return float(result["seconds"] - result["first_update_seconds"]) / config.updates


@dataclass(frozen=True)
class Row:
    """A rung in figures; differences and ratios are to the first rung. None: it cannot be told."""

    name: str
    title: str
    mean_return: Estimate | None  # over the last tenth
    difference: Estimate | None  # of the same seeds
    by_seed: list[float]  # [S] mean_return of each
    steps_to_level: int | None  # of the mean over seeds
    steps_ratio: float | None
    steps_to_level_by_seed: list[int | None]  # [S]
    value_loss: float  # over the last tenth
    seconds_per_update: float
    seconds_ratio: float
    updates: int
    timed_updates: int  # of those, how many there was time for
    timed_return: Estimate | None  # over the last tenth of these
    timed_difference: Estimate | None
    timed_by_seed: list[float]
    across_seeds: AcrossSeeds | None  # at equal steps

    def as_json(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name != "across_seeds"}
        return {**own, **seeds_json(self.across_seeds)}


def measure(traces: Sequence[Trace], level: float, seconds: float | None = None) -> list[Row]:
    """The ladder's table: every rung next to the first, at equal steps and at equal wall time.

    Equal wall time: each rung counts as far as it had come when the first was finished, or after so
    many seconds, by the mean seconds of its updates. Two things that one should know: compilation
    is left out, which takes longer with more parts; and a rung that is cut off there had its step
    size and its entropy bonus fall towards the end of its whole run, so that a run of its own of
    just that time would probably do better. A rung that is faster counts with its whole run, and
    had time to spare.
    Seconds are comparable only if the machine had nothing else to do.
    """
    first = traces[0]
    budget = seconds or first.seconds * first.updates
    first_late = first.late(first.updates)
    first_steps = first.steps_to(level)
    rows = []
    by_seeds = across_seeds([trace.late(trace.updates) for trace in traces])
    for trace, seeds in zip(traces, by_seeds, strict=True):
        late, curve = trace.late(trace.updates), trace.curve()
        affordable = math.floor(budget / trace.seconds + 1e-6)
        timed = min(max(affordable, 1), trace.updates)
        timed_late = trace.late(timed)
        steps = trace.steps_to(level)
        tenth = max(1, round(FINAL * trace.updates))
        rows.append(
            Row(
                trace.name,
                trace.title,
                _estimate(late),
                _estimate(late - first_late),
                late.tolist(),
                steps,
                steps / first_steps if steps and first_steps else None,
                [_steps_to(seed, level, trace.steps) for seed in curve.T],
                float(trace.value_loss[-tenth:].mean()),
                trace.seconds,
                trace.seconds / first.seconds,
                trace.updates,
                timed,
                _estimate(timed_late),
                _estimate(timed_late - first_late),
                timed_late.tolist(),
                seeds,
            )
        )
    return rows


def _steps_to(curve: np.ndarray, level: float, steps: int) -> int | None:
    """Environment steps after which a curve [U] is first at the level, if ever."""
    there = np.flatnonzero(curve >= level)  # never where it is NaN
    return int(there[0] + 1) * steps if len(there) else None


def _estimate(samples: np.ndarray) -> Estimate | None:
    return estimate(samples) if np.isfinite(samples).all() else None
