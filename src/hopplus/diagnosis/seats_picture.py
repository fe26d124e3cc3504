"""Pictures of seats side by side. Needs matplotlib."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus.diagnosis.ordering import Ordering
from hopplus.diagnosis.pictures import COLOURS, panels
from hopplus.diagnosis.seats import SeatsDiagnosis


def returns_picture(diagnosis: SeatsDiagnosis, steps: int) -> Figure:
    """Returns by seat over training, and over its last fifth; `steps` of an update."""
    figure, axes = panels(12, 4.2, 1, 2)
    curves, late = axes[0]
    updates = len(diagnosis.curves)
    places = np.arange(1, updates + 1) * steps
    window = max(1, updates // 25)
    for seat in range(diagnosis.curves.shape[2]):
        runs = _smooth(diagnosis.curves[:, :, seat], window)  # [U, S]
        known = np.isfinite(runs).all(axis=1)
        runs, at = runs[known], places[known]
        colour = COLOURS[seat % len(COLOURS)]
        curves.plot(at, runs.mean(axis=1), color=colour, label=f"seat {seat}")
        if runs.shape[1] > 1:
            spread = runs.std(axis=1) / np.sqrt(runs.shape[1])
            mean = runs.mean(axis=1)
            curves.fill_between(at, mean - 2 * spread, mean + 2 * spread, color=colour, alpha=0.2)
    curves.set(xlabel="environment steps", ylabel="return", title="Mean over runs, ± 2 errors")
    curves.legend()
    draw_seats(late, diagnosis.returns)
    late.set_title(f"Last fifth, each run a dot; chance {diagnosis.returns.chance:.3g}")
    return figure


def ladder_picture(diagnosis: SeatsDiagnosis) -> Figure:
    """Seats with more and more taken away."""
    shown = {"as it is": diagnosis.returns, **diagnosis.ladder}
    figure, axes = panels(3.6 * len(shown), 3.8, 1, len(shown))
    for place, (name, found) in zip(axes[0], shown.items(), strict=True):
        draw_seats(place, found)
        place.set_title(f"{name}\ngap {found.gap:.2f}, chance {found.chance:.3g}", fontsize=10)
    return figure


def draw_seats(axes: Axes, found: Ordering) -> None:
    """Each sample a dot, means with their intervals."""
    seats = range(found.samples.shape[1])
    for seat in seats:
        colour = COLOURS[seat % len(COLOURS)]
        own = found.samples[:, seat]
        if len(own) <= 50:
            axes.plot([seat] * len(own), own, "o", color=colour, alpha=0.4)
        known = found.seats[seat]
        width = known.half_width if np.isfinite(known.half_width) else 0.0
        axes.errorbar(seat, known.mean, width, fmt="s", color=colour, capsize=6)
    axes.set_xticks(list(seats), [f"seat {seat}" for seat in seats])
    axes.set_ylabel("return")


def _smooth(curve: np.ndarray, window: int) -> np.ndarray:
    """[U, S] means over the updates before; NaN where nothing is known."""
    padded = np.where(np.isnan(curve), 0.0, curve)
    known = ~np.isnan(curve)
    sums = np.cumsum(np.concatenate([np.zeros((1, curve.shape[1])), padded]), axis=0)
    counts = np.cumsum(np.concatenate([np.zeros((1, curve.shape[1])), known]), axis=0)
    first = np.maximum(np.arange(1, len(curve) + 1) - window, 0)
    last = np.arange(1, len(curve) + 1)
    total, count = sums[last] - sums[first], counts[last] - counts[first]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
