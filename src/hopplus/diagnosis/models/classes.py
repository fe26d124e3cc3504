"""How good are predictions of classes? The usual figures, on the host, in float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def score_top(log_probs: np.ndarray, truth: np.ndarray, k: int) -> float:
    """The share of [M] truths among the k likeliest classes of [M, A] log-probabilities.

    Impossible classes count for nothing, even where fewer than k are possible.
    """
    best = np.argsort(-log_probs, axis=1, kind="stable")[:, :k]
    found = (best == truth[:, None]) & np.isfinite(np.take_along_axis(log_probs, best, axis=1))
    return float(found.any(axis=1).mean())


def cross_entropy(log_probs: np.ndarray, truth: np.ndarray) -> float:
    """The mean of minus the log-probability of the truth."""
    return float(-np.take_along_axis(log_probs, truth[:, None], axis=1).mean(dtype=np.float64))


def count_confusions(truth: np.ndarray, predicted: np.ndarray, classes: int) -> np.ndarray:
    """[A, A] int64, how often each class (row) was predicted as each (column)."""
    pairs = truth.astype(np.int64) * classes + predicted
    return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


def describe_classes(table: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """The figures of each class [A] from a confusion matrix; 0 where there is nothing to divide
    by."""
    hits = np.diag(table).astype(np.float64)
    count, predicted = table.sum(axis=1), table.sum(axis=0)
    precision, recall = _ratio(hits, predicted), _ratio(hits, count)
    figures = {
        "count": count,
        "share": _ratio(count, np.full(len(count), table.sum())),
        "precision": precision,
        "recall": recall,
        "f1": _ratio(2 * precision * recall, precision + recall),
    }
    return [
        {"action": name, **{key: values[number].item() for key, values in figures.items()}}
        for number, name in enumerate(names)
    ]


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.where(below > 0, above / np.where(below > 0, below, 1), 0.0)


def bin_calibration(
    probability: np.ndarray, happened: np.ndarray, bins: int = 10
) -> list[dict[str, Any]]:
    """How often what was given a probability happened, by bins of it that hold anything."""
    place = np.clip((probability * bins).astype(int), 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    said = np.bincount(place, weights=probability, minlength=bins)
    true = np.bincount(place, weights=happened, minlength=bins)
    return describe_bins(count, true, said)


def describe_bins(count: np.ndarray, true: np.ndarray, said: np.ndarray) -> list[dict[str, Any]]:
    """Bins that hold anything, from how much is in each, how much of it happened, and the
    probabilities added up; [bins] each."""
    bins = len(count)
    return [
        {
            "from": number / bins,
            "to": (number + 1) / bins,
            "count": int(count[number]),
            "predicted": float(said[number] / count[number]),
            "happened": float(true[number] / count[number]),
        }
        for number in np.flatnonzero(count)
    ]


def calibration_error(table: list[dict[str, Any]]) -> float:
    """The mean distance between what was predicted and what happened (Naeini et al. 2015)."""
    total = sum(row["count"] for row in table)
    distance = sum(row["count"] * abs(row["predicted"] - row["happened"]) for row in table)
    return float(distance / total)


def area_under_curve(
    score: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """[R] how likely a positive has a higher score than a negative; ties count half. nan without
    any of either.

    The area under the receiver operating characteristic, which no base rate changes. Each row of
    `weights` [R, M] says how often each sample counts; once when not given.
    """
    weights = np.ones((1, len(score))) if weights is None else weights
    order = np.argsort(score, kind="stable")
    ties = np.flatnonzero(np.diff(score[order], prepend=-np.inf))  # where a new score begins
    groups = [
        np.add.reduceat(np.where(chosen[order], weights[:, order], 0.0), ties, axis=1)
        for chosen in (positive, ~positive)
    ]
    above, below = groups
    lower = np.cumsum(below, axis=1) - below / 2
    total = above.sum(axis=1) * below.sum(axis=1)
    area = (above * lower).sum(axis=1) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, area, np.nan)


def mean_area(
    scores: np.ndarray, truth: np.ndarray, strata: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """[R] the mean over classes of how likely one of the class has a higher score for it than one
    of another class in the same stratum [M]; from [M, K] log-probabilities, with `weights` as in
    `area_under_curve`."""
    by_class = []
    for number in np.unique(truth):
        others = np.logaddexp.reduce(np.delete(scores, number, axis=1), axis=1)  # log-probability
        score, positive = scores[:, number] - others, truth == number
        won, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for stratum in np.unique(strata):
            here = strata == stratum
            own = weights[:, here]
            count = (own * positive[here]).sum(axis=1) * (own * ~positive[here]).sum(axis=1)
            area = area_under_curve(score[here], positive[here], own)
            won += np.where(count > 0, area * count, 0.0)
            pairs += count
        by_class.append(np.where(pairs > 0, won / np.maximum(pairs, 1e-30), np.nan))
    return np.mean(by_class, axis=0) if by_class else np.full(len(weights), np.nan)
