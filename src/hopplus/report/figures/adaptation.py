"""Returns by company: what a player gets, beside what told and blind get."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hopplus.evaluation.adaptation import Adaptation
from hopplus.evaluation.references import References
from hopplus.report.figures.palette import BLUE, FAINT, GREEN, VERMILION, name_rows, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = {"told": (GREEN, ">"), "blind": (VERMILION, "<"), "random": (FAINT, "x")}


def draw_adaptation(found: Adaptation, known: References | None) -> "Figure":
    """Returns of each column by company, with told and blind as marks."""
    figure, axes = _by_company(found.companies)
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
        places = {company: place for place, company in enumerate(known.companies)}
        held = [(row, places[one]) for row, one in enumerate(found.companies) if one in places]
        rows = [row for row, _ in held]
        for name in ("told", "blind"):
            at = [known.returns[name][:, place].mean() for _, place in held]
            colour, mark = MARKS[name]
            axes.plot(at, rows, mark, color=colour, fillstyle="none", label=name)
    axes.legend(loc="best")
    return figure


def draw_certificate(found: References) -> "Figure":
    """Told, blind and random by company, with a line for the gap."""
    figure, axes = _by_company(found.companies)
    rows = range(len(found.companies))
    for row in rows:
        ends = [one[:, row].mean() for one in (found.blind, found.told)]
        axes.plot(ends, [row, row], "-", color=FAINT, linewidth=1)
    for name, values in found.returns.items():
        colour, mark = MARKS[name]
        axes.plot(values.mean(axis=0), rows, mark, color=colour, label=name)
    axes.legend(loc="best")
    return figure


def _by_company(companies: Sequence[Sequence[str]]) -> tuple["Figure", Any]:
    figure, places = panels(9, 1.5 + 0.32 * len(companies))
    axes = places[0, 0]
    name_rows(axes, [", ".join(company) for company in companies])
    axes.set_xlabel("return")
    axes.grid(axis="x", alpha=0.3)
    return figure, axes
