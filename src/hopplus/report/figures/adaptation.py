"""Returns by lineup: what a player gets, beside what oracle and blind get."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hopplus.evaluation.adaptation import Adaptation
from hopplus.evaluation.references import References
from hopplus.report.figures.palette import BLUE, FAINT, GREEN, VERMILION, name_rows, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = {"oracle": (GREEN, ">"), "blind": (VERMILION, "<"), "random": (FAINT, "x")}


def draw_adaptation(found: Adaptation, known: References | None) -> "Figure":
    """Returns of each column by lineup, with oracle and blind as marks."""
    figure, axes = _by_company(found.lineups)
    last = len(found.columns) - 1
    for column, name in enumerate(found.columns):
        means = found.returns[:, :, column].mean(axis=0)
        axes.plot(
            means,
            range(len(means)),
            "o",
            color=BLUE,
            alpha=0.25 + 0.75 * (column + 1) / (last + 1),
            label=name if column in (0, last) else None,
        )
    if known:
        places = {lineup: place for place, lineup in enumerate(known.lineups)}
        held = [(row, places[one]) for row, one in enumerate(found.lineups) if one in places]
        rows = [row for row, _ in held]
        for name in ("oracle", "blind"):
            at = [known.returns[name][:, place].mean() for _, place in held]
            colour, mark = MARKS[name]
            axes.plot(at, rows, mark, color=colour, fillstyle="none", label=name)
    axes.legend(loc="best")
    return figure


def draw_certificate(found: References) -> "Figure":
    """Oracle, blind and random by lineup, with a line for the gap."""
    figure, axes = _by_company(found.lineups)
    rows = range(len(found.lineups))
    for row in rows:
        ends = [one[:, row].mean() for one in (found.blind, found.oracle)]
        axes.plot(ends, [row, row], "-", color=FAINT, linewidth=1)
    for name, values in found.returns.items():
        colour, mark = MARKS[name]
        axes.plot(values.mean(axis=0), rows, mark, color=colour, label=name)
    axes.legend(loc="best")
    return figure


def _by_company(lineups: Sequence[Sequence[str]]) -> tuple["Figure", Any]:
    figure, places = panels(9, 1.5 + 0.32 * len(lineups))
    axes = places[0, 0]
    name_rows(axes, [", ".join(lineup) for lineup in lineups])
    axes.set_xlabel("return")
    axes.grid(axis="x", alpha=0.3)
    return figure, axes
