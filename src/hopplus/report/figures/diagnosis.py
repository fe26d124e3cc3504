"""Figures of diagnoses: seats side by side, and what values learn from."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus.diagnosis.seats.checks import SeatsDiagnosis
from hopplus.diagnosis.seats.ordering import Ordering
from hopplus.diagnosis.subject import Record
from hopplus.diagnosis.value_loss.diagnosis import ValueLossDiagnosis
from hopplus.report.figures.palette import SMALL, colour, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCES = ("real/return", "real/value", "imagined/return", "imagined/value")
REWARDS = ("real/reward", "imagined/reward", "imagined/predicted_most", "imagined/predicted_least")


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


def draw_time(diagnosis: ValueLossDiagnosis) -> "Figure":
    """Loss, explained variance, returns and values over the updates."""
    figure, axes = panels(14, 7.5, 2, 2)
    loss, explained, returns, rewards = axes.flat
    records, names = diagnosis.seen.subject.records, name_sets(diagnosis)
    _draw_by_seat(loss, records, "value_loss", names)
    loss.set(title="Value loss of real steps, by seat", ylabel="squared error")
    _draw_by_seat(explained, records, "explained", names)
    explained.set(title="Explained variance, by seat", ylim=(-1.05, 1.05))
    _draw_lines(returns, records, SOURCES)
    returns.set(title="Mean returns and values by source")
    _draw_lines(rewards, records, REWARDS)
    rewards.set(title="Rewards by source; the most and least predicted")
    for place in axes.flat:
        place.set(xlabel="update")
        place.legend(fontsize=SMALL)
    return figure


def name_sets(diagnosis: ValueLossDiagnosis) -> list[str]:
    """Of each set of parameters: the numbers of the seats that it plays."""
    return ["+".join(map(str, seats)) for seats in diagnosis.seats]


def _series(records: Sequence[Record], name: str) -> tuple[list[int], np.ndarray]:
    known = [record for record in records if name in record]
    return [record["update"] for record in known], np.array([record[name] for record in known])


def _draw_by_seat(axes: "Axes", records: Sequence[Record], name: str, seats: Sequence[str]) -> None:
    updates, values = _series(records, name)  # [U, S, sets]
    for number, seat in enumerate(seats):
        mean = values[:, :, number].mean(axis=1)
        axes.plot(updates, mean, color=colour(number), label=f"seat {seat}")


def _draw_lines(axes: "Axes", records: Sequence[Record], names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        updates, values = _series(records, name)
        if len(updates):
            mean = values.reshape(len(updates), -1).mean(axis=1)
            axes.plot(updates, mean, color=colour(number), label=name)


def draw_sources(diagnosis: ValueLossDiagnosis) -> "Figure":
    """Rewards, returns and values of the last update, by source and seat: 0, 5, 50, 95, 100%."""
    figure, axes = panels(14, 4, columns=3)
    for place, quantity in zip(axes[0], ("reward", "returns", "value"), strict=True):
        ticks: list[str] = []
        for kind, (name, found) in enumerate(diagnosis.seen.sources.items()):
            for seat, source in zip(name_sets(diagnosis), found, strict=True):
                if source:
                    _draw_box(place, len(ticks), getattr(source, quantity), colour(kind))
                    ticks.append(f"{name}\n{seat}")
        place.set_xticks(range(len(ticks)), ticks, fontsize=SMALL)
        place.set_title(f"{quantity.capitalize()}: least, 5%, median, 95%, most")
    return figure


def _draw_box(axes: "Axes", where: int, quantiles: Sequence[float], shade: str) -> None:
    least, low, middle, high, most = quantiles
    axes.plot([where, where], [least, most], color=shade, linewidth=1)
    axes.plot([where, where], [low, high], color=shade, linewidth=6, alpha=0.6)
    axes.plot(where, middle, "o", color="black", markersize=4)


def draw_experiments(diagnosis: ValueLossDiagnosis) -> "Figure":
    """The experiments side by side, update by update."""
    titles = {
        "value_loss": "Value loss of real steps",
        "explained": "Explained variance",
        "returns": "Return that values learn",
    }

    def draw(axes: "Axes", values: np.ndarray, shade: str, name: str) -> None:
        axes.plot(np.arange(1, len(values) + 1), values, color=shade, marker="o", label=name)

    label = "update after the checkpoint"
    return _draw_panels(titles, diagnosis.seen.experiments, draw, xlabel=label)


def draw_courses(diagnosis: ValueLossDiagnosis) -> "Figure":
    """Experiments from the first update on: each seed a thin line, their mean a thick one."""
    titles = {
        "loss": "Value loss of all steps that values learn from",
        "real_loss": "Of real steps",
        "imagined_loss": "Of imagined steps",
    }

    def draw(axes: "Axes", runs: np.ndarray, shade: str, name: str) -> None:  # [U, S], or empty
        if runs.size:
            updates = np.arange(1, len(runs) + 1)
            axes.plot(updates, runs, color=shade, linewidth=0.5, alpha=0.5)
            axes.plot(updates, runs.mean(axis=1), color=shade, label=name)

    # Losses of imagined and of real steps may be a hundred times apart.
    return _draw_panels(titles, diagnosis.seen.courses, draw, xlabel="update", yscale="log")


def _draw_panels(
    titles: Mapping[str, str],
    found: Sequence[Any],
    draw: "Callable[[Axes, np.ndarray, str, str], None]",
    **settings: str,
) -> "Figure":
    """A panel for the field behind each title, in which `draw` shows it of all that was found."""
    figure, axes = panels(14, 4.2, columns=len(titles))
    for place, (field, title) in zip(axes[0], titles.items(), strict=True):
        for number, one in enumerate(found):
            draw(place, np.array(getattr(one, field)), colour(number), one.name)
        place.set(title=title, **settings)
    axes[0, 0].legend(fontsize=SMALL)
    return figure


def draw_over_time(diagnosis: ValueLossDiagnosis) -> "Figure":
    """Rewards, returns, values and goals by source, all seats: median, 5 to 95%, and all."""
    figure, axes = panels(14, 7.5, 2, 2)
    quantities = {"reward": "Rewards", "returns": "Returns", "value": "Values", "goal": "Goals"}
    for place, (name, title) in zip(axes.flat, quantities.items(), strict=True):
        for kind, source in enumerate(("real", "imagined")):
            # Of all seats: the means of their quantiles.
            known = {
                update: np.mean([getattr(one, name) for one in found[source] if one], axis=0)
                for update, found in diagnosis.seen.over_time.items()
                if any(found.get(source, []))
            }
            if not known:
                continue
            least, low, middle, high, most = np.array(list(known.values())).T
            updates = list(known)
            place.fill_between(updates, least, most, color=colour(kind), alpha=0.12)
            place.fill_between(updates, low, high, color=colour(kind), alpha=0.25)
            place.plot(updates, middle, color=colour(kind), label=source)
        place.set(title=f"{title}: least, 5%, median, 95%, most", xlabel="update")
        place.legend(fontsize=SMALL)
    return figure
