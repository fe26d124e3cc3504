"""Figures of seats side by side."""

from typing import TYPE_CHECKING

import numpy as np

from hopplus.diagnosis.seats.checks import SeatsDiagnosis
from hopplus.diagnosis.seats.ordering import Ordering
from hopplus.report.figures.palette import colour, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_returns(diagnosis: SeatsDiagnosis, steps: int) -> "Figure":
    """Returns by seat over training, and over its last fifth; `steps` of an update."""
    figure, axes = panels(12, 4.2, columns=2)
    curves, late = axes[0]
    updates = len(diagnosis.curves)
    places = np.arange(1, updates + 1) * steps
    window = max(1, updates // 25)
    for seat in range(diagnosis.curves.shape[2]):
        runs = _smooth(diagnosis.curves[:, :, seat], window)  # [U, S]
        known = np.isfinite(runs).all(axis=1)
        runs, at = runs[known], places[known]
        curves.plot(at, runs.mean(axis=1), color=colour(seat), label=f"seat {seat}")
        if runs.shape[1] > 1:
            spread = runs.std(axis=1) / np.sqrt(runs.shape[1])
            mean = runs.mean(axis=1)
            curves.fill_between(
                at, mean - 2 * spread, mean + 2 * spread, color=colour(seat), alpha=0.2
            )
    curves.set(xlabel="environment steps", ylabel="return", title="Mean over runs, ± 2 errors")
    curves.legend()
    draw_seats(late, diagnosis.returns)
    late.set_title(f"Last fifth, each run a dot; p-value {diagnosis.returns.p_value:.3g}")
    return figure


def draw_ablation(diagnosis: SeatsDiagnosis) -> "Figure":
    """Seats with more and more taken away."""
    shown = {"as it is": diagnosis.returns, **diagnosis.ladder}
    figure, axes = panels(3.6 * len(shown), 3.8, columns=len(shown))
    for place, (name, found) in zip(axes[0], shown.items(), strict=True):
        draw_seats(place, found)
        place.set_title(f"{name}\ngap {found.gap:.2f}, p-value {found.p_value:.3g}", fontsize=10)
    return figure


def draw_agents(diagnosis: SeatsDiagnosis) -> "Figure":
    """Returns by agent of somebody else's game."""
    figure, axes = panels(7, 4)
    draw_seats(axes[0, 0], diagnosis.returns)
    return figure


def draw_seats(axes: "Axes", found: Ordering) -> None:
    """Each sample a dot, means with their intervals."""
    seats = range(found.samples.shape[1])
    for seat in seats:
        own = found.samples[:, seat]
        if len(own) <= 50:
            axes.plot([seat] * len(own), own, "o", color=colour(seat), alpha=0.4)
        known = found.seats[seat]
        width = known.half_width if np.isfinite(known.half_width) else 0.0
        axes.errorbar(seat, known.mean, width, fmt="s", color=colour(seat), capsize=6)
    axes.set_xticks(list(seats), [f"seat {seat}" for seat in seats])
    axes.set_ylabel("return")


def _smooth(curve: np.ndarray, window: int) -> np.ndarray:
    """[U, S] means over the updates before; NaN where nothing is known."""
    known = ~np.isnan(curve)
    # Sums over a window are differences of running sums, which begin with nothing.
    sums, counts = (
        np.cumsum(np.concatenate([np.zeros((1, curve.shape[1])), part]), axis=0)
        for part in (np.where(known, curve, 0.0), known)
    )
    last = np.arange(1, len(curve) + 1)
    first = np.maximum(last - window, 0)
    total, count = sums[last] - sums[first], counts[last] - counts[first]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
