"""Pictures of what values learn from. Needs matplotlib."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus.diagnosis.laboratory import Record
from hopplus.diagnosis.pictures import COLOURS, panels
from hopplus.diagnosis.value_loss import ValueLossDiagnosis

QUANTITIES = ("reward", "returns", "value")


def time_picture(diagnosis: ValueLossDiagnosis) -> Figure:
    """Loss, explained variance, returns and values over the updates."""
    figure, axes = panels(14, 7.5, 2, 2)
    loss, explained, returns, rewards = axes.flat
    records = diagnosis.records
    names = seat_names(diagnosis)
    _by_seat(loss, records, "value_loss", names)
    loss.set(title="Value loss of real steps, by seat", ylabel="squared error")
    _by_seat(explained, records, "explained", names)
    explained.set(title="Explained variance, by seat", ylim=(-1.05, 1.05))
    for number, name in enumerate(
        ("real/return", "real/value", "imagined/return", "imagined/value")
    ):
        _line(returns, records, name, number)
    returns.set(title="Mean returns and values by source")
    for number, name in enumerate(
        ("real/reward", "imagined/reward", "imagined/predicted_most", "imagined/predicted_least")
    ):
        _line(rewards, records, name, number)
    rewards.set(title="Rewards by source; the most and least foreseen")
    for place in axes.flat:
        place.set(xlabel="update")
        place.legend(fontsize=8)
    return figure


def seat_names(diagnosis: ValueLossDiagnosis) -> list[str]:
    """Of each set of parameters: the numbers of the seats that it plays."""
    return ["+".join(map(str, seats)) for seats in diagnosis.seats]


def _series(records: Sequence[Record], name: str) -> tuple[list[int], np.ndarray]:
    known = [record for record in records if name in record]
    return [record["update"] for record in known], np.array([record[name] for record in known])


def _by_seat(axes: Axes, records: Sequence[Record], name: str, seats: Sequence[str]) -> None:
    updates, values = _series(records, name)  # [U, S, sets]
    for number, seat in enumerate(seats):
        mean = values[:, :, number].mean(axis=1)
        axes.plot(updates, mean, color=COLOURS[number % len(COLOURS)], label=f"seat {seat}")


def _line(axes: Axes, records: Sequence[Record], name: str, number: int) -> None:
    updates, values = _series(records, name)
    if len(updates):
        mean = values.reshape(len(updates), -1).mean(axis=1)
        axes.plot(updates, mean, color=COLOURS[number], label=name)


def sources_picture(diagnosis: ValueLossDiagnosis) -> Figure:
    """Rewards, returns and values of the last update, by source and seat: 0, 5, 50, 95, 100%."""
    figure, axes = panels(14, 4, 1, 3)
    for place, quantity in zip(axes[0], QUANTITIES, strict=True):
        ticks, number = [], 0
        for kind, (name, found) in enumerate(diagnosis.sources.items()):
            for seat, source in zip(seat_names(diagnosis), found, strict=True):
                if source:
                    _box(place, number, getattr(source, quantity), COLOURS[kind])
                    ticks.append(f"{name}\n{seat}")
                    number += 1
        place.set_xticks(range(len(ticks)), ticks, fontsize=8)
        place.set_title(f"{quantity.capitalize()}: least, 5%, median, 95%, most")
    return figure


def _box(axes: Axes, where: int, quantiles: Sequence[float], colour: str) -> None:
    least, low, middle, high, most = quantiles
    axes.plot([where, where], [least, most], color=colour, linewidth=1)
    axes.plot([where, where], [low, high], color=colour, linewidth=6, alpha=0.6)
    axes.plot(where, middle, "o", color="black", markersize=4)


def experiments_picture(diagnosis: ValueLossDiagnosis) -> Figure:
    """The experiments side by side, update by update."""
    figure, axes = panels(14, 4, 1, 3)
    loss, explained, returns = axes[0]
    for number, trial in enumerate(diagnosis.trials):
        colour = COLOURS[number]
        updates = range(1, len(trial.value_loss) + 1)
        loss.plot(updates, trial.value_loss, color=colour, marker="o", label=trial.name)
        explained.plot(updates, trial.explained, color=colour, marker="o")
        returns.plot(updates, trial.returns, color=colour, marker="o")
    loss.set(title="Value loss of real steps", xlabel="update after the checkpoint")
    explained.set(title="Explained variance", xlabel="update after the checkpoint")
    returns.set(title="Return that values learn", xlabel="update after the checkpoint")
    loss.legend(fontsize=8)
    return figure


def seat_rows(diagnosis: ValueLossDiagnosis) -> list[list[str]]:
    """The sources as a table: one row for each source and seat."""
    return [
        [
            f"{name}, seat {seat}",
            f"{one.steps:,}",
            f"{one.value_loss:.3g}",
            f"{one.explained:.2f}",
            f"{one.return_mean:.2f}",
            f"{one.return_variance:.3g}",
            f"{one.reward[0]:.3g} to {one.reward[-1]:.3g}",
            f"{one.goal_size:.2f}",
        ]
        for name, by_set in diagnosis.sources.items()
        for seat, one in zip(seat_names(diagnosis), by_set, strict=True)
        if one
    ]
