"""Figures of what values learn from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hopplus.diagnosis.laboratory import Record
from hopplus.diagnosis.value_loss.diagnosis import ValueLossDiagnosis
from hopplus.report.figures.palette import SMALL, colour, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SOURCES = ("real/return", "real/value", "imagined/return", "imagined/value")
REWARDS = ("real/reward", "imagined/reward", "imagined/predicted_most", "imagined/predicted_least")


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
    figure, axes = panels(14, 4, columns=3)
    titles = {
        "value_loss": "Value loss of real steps",
        "explained": "Explained variance",
        "returns": "Return that values learn",
    }
    for place, (name, title) in zip(axes[0], titles.items(), strict=True):
        for number, one in enumerate(diagnosis.seen.experiments):
            values = getattr(one, name)
            updates = range(1, len(values) + 1)
            place.plot(updates, values, color=colour(number), marker="o", label=one.name)
        place.set(title=title, xlabel="update after the checkpoint")
    axes[0, 0].legend(fontsize=SMALL)
    return figure
