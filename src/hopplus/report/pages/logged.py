"""What a run has logged, thinned to what a curve can show."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hopplus.config import ConfigError
from hopplus.learning.auxiliary.table import gate_of
from hopplus.runs.folder import RunFolder


@dataclass(frozen=True)
class Logged:
    """Metrics of U updates by name, [U, S] or [U, S, N]; NaN where there is no number."""

    steps: np.ndarray  # [U] environment steps, or epochs where there are none
    by_epoch: bool
    values: dict[str, np.ndarray]
    spoilt: int  # updates of which a number is not finite
    left_out: Mapping[str, np.ndarray]  # the updates at which a metric was not logged, if any

    def thinned(self, points: int) -> "Thinned":
        """Means over at most so many bins of updates, as even as they can be."""
        count = min(points, len(self.steps))
        return Thinned(self, np.linspace(0, len(self.steps), count, endpoint=False).astype(int))

    @property
    def episodes(self) -> tuple[np.ndarray, np.ndarray] | None:
        """[U, S, N] returns of the episodes that ended, added up, and [U, S] how many they were, if
        both were logged so."""
        totals, counts = (self.values.get(name) for name in ("return_sum", "episodes"))
        if totals is None or counts is None or totals.ndim != 3 or counts.ndim != 2:
            return None
        return totals, counts

    def of(self, name: str) -> "Logged":
        """The metric alone, of those updates at which it was logged."""
        there = ~np.isin(np.arange(len(self.steps)), self.left_out.get(name, ()))
        alone = {name: self.values[name][there]}
        return Logged(self.steps[there], self.by_epoch, alone, self.spoilt, {})


@dataclass(frozen=True)
class Thinned:
    """The same in P bins of updates."""

    logged: Logged
    starts: np.ndarray  # [P] the first update of each bin

    @cached_property
    def steps(self) -> np.ndarray:
        """[P] means of the steps."""
        return np.asarray(np.rint(self._mean(self.logged.steps)), int)

    def get(self, name: str) -> np.ndarray | None:
        """[P, S, N] means of a metric, if it was logged so; N is 1 where seats are not apart."""
        values = self.logged.values.get(name)
        if values is None or values.ndim not in (2, 3):
            return None
        return self._mean(values.reshape(*values.shape[:2], -1))

    def ratio(self, above: np.ndarray, below: np.ndarray) -> np.ndarray:
        """[P, ...] of two counts [U, ...] that are added up in each bin; NaN for none."""
        totals, counts = (
            np.add.reduceat(np.nan_to_num(part), self.starts, axis=0) for part in (above, below)
        )
        return np.where(counts > 0, totals / np.maximum(counts, 1e-12), np.nan)

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return self.ratio(values, np.isfinite(values).astype(float))


def read_logged(run: RunFolder) -> Logged:
    """All that a run has logged; what is not of numbers is left out."""
    columns: dict[str, dict[int, np.ndarray]] = {}  # by the number of the record
    count = 0
    for record in run.records():
        for name, value in record.items():
            columns.setdefault(name, {})[count] = _array(value)
        count += 1
    by_epoch = "steps" not in columns
    steps = _column(columns.get("update" if by_epoch else "steps", {}), count)
    if count and (steps is None or steps.ndim != 1 or not np.isfinite(steps).all()):
        raise ConfigError(f"{run.metrics_file} is damaged: a line does not say its step")
    values, left_out, spoilt = {}, {}, np.zeros(count, bool)
    for name in [name for name in columns if name not in ("steps", "update")]:
        column = columns.pop(name)
        found = _column(column, count)
        if found is None or found.ndim < 2:
            continue
        there = np.isin(np.arange(count), list(column))
        finite = np.isfinite(found)
        spoilt |= there & ~finite.reshape(count, -1).all(axis=1)
        values[name] = np.where(finite, found, np.nan)
        if not there.all():
            left_out[name] = np.flatnonzero(~there)
    steps = np.zeros(0) if steps is None else steps
    return Logged(steps, by_epoch, _gated(values), int(spoilt.sum()), left_out)


def _array(value: Any) -> np.ndarray:
    """Numbers as an array; one of no shape that counts for what is not of numbers."""
    try:
        return np.array(value, float)
    except (TypeError, ValueError):  # texts, or lists of different lengths
        return np.zeros(0)


def _column(column: dict[int, np.ndarray], count: int) -> np.ndarray | None:
    """[U, ...] a metric, NaN where it was not logged; None if it is of no shape, or of several."""
    shapes = {array.shape for array in column.values()}
    if len(shapes) != 1 or (0,) in shapes:
        return None
    whole = np.full((count, *shapes.pop()), np.nan)
    for number, array in column.items():
        whole[number] = array
    return whole


def _gated(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Without the zeros that stand for nothing, where a gate is shut."""
    found = dict(values)
    for name, numbers in values.items():
        gate = values.get(gate_of(name) or "")
        if gate is not None and gate.shape == numbers.shape:
            found[name] = np.where(gate > 0, numbers, np.nan)
    return found
