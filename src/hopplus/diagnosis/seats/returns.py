"""Returns by seat, from what a run has logged."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopplus.diagnosis.subject import last_fifth


def late_returns(records: Sequence[dict[str, Any]]) -> np.ndarray:
    """[S, N] mean returns over the last fifth of a run's updates; NaN without episodes."""
    episodes, totals = _sums(last_fifth(records))
    return _divide(totals.sum(axis=0), episodes.sum(axis=0))


def return_curves(records: Sequence[dict[str, Any]]) -> np.ndarray:
    """[U, S, N] mean returns of the episodes that ended in each update; NaN without any."""
    episodes, totals = _sums(records)
    return _divide(totals, episodes)


def _sums(records: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """[U, S] episodes that ended, and [U, S, N] their returns added up."""
    episodes = np.array([record["episodes"] for record in records])
    return episodes, np.array([record["return_sum"] for record in records])


def _divide(totals: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    count = episodes[..., None]
    return np.where(count > 0, totals / np.maximum(count, 1), np.nan)
