"""Figures of players that were compared: by lineup, everyone among everyone, rung by rung."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus.evaluation.ablation import Trace
from hopplus.evaluation.adaptation import Adaptation
from hopplus.evaluation.crossplay import Crossplay
from hopplus.evaluation.leave_one_out import Table
from hopplus.evaluation.references import SAID, References
from hopplus.evaluation.statistics import estimate
from hopplus.report.figures.palette import (
    BLACK,
    BLUE,
    COLOURS,
    FAINT,
    GREEN,
    LINES,
    MARKERS,
    SMALL,
    VERMILION,
    colour,
    panels,
    write_cells,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKS = {
    "best": (BLACK, "*"),
    "oracle": (GREEN, ">"),
    "blind": (VERMILION, "<"),
    "random": (FAINT, "x"),
}
RESTING = tuple(one for one in COLOURS if one not in {shade for shade, _ in MARKS.values()})
LONGEST = 28  # letters of a name, of whose path the end tells most


def draw_adaptation(found: Adaptation, known: References | None) -> "Figure":
    """Returns of each column by lineup, with oracle and blind as marks."""
    figure, axes = _by_lineup(found.lineups)
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
        for name in [one for one in known.returns if one != "random"]:
            at = [known.returns[name][:, place].mean() for _, place in held]
            shade, mark = MARKS[name]
            label = SAID.get(name, name)
            axes.plot(at, rows, mark, color=shade, fillstyle="none", label=label)
    axes.legend(loc="best")
    return figure


def draw_episodes(found: Adaptation, known: References | None) -> "Figure":
    """Mean returns from column to column with a band over seeds, each lineup as a thin line, and
    best responses, oracle and blind as levels."""
    figure, places = panels(8, 5)
    axes = places[0, 0]
    at = np.arange(1, len(found.columns) + 1)
    for number, lineup in enumerate(found.returns.mean(axis=0)):
        label = None if number else "each lineup"
        axes.plot(at, lineup, "-", color=FAINT, linewidth=0.8, label=label)
    levels = {name: found.beside(known, name) for name in MARKS if known and name != "random"}
    _by_episode(axes, {"mean over lineups": found.returns.mean(axis=1)}, levels)
    axes.set_xticks(at, [name.removeprefix("episode ") for name in found.columns])
    axes.legend(loc="best")
    return figure


def draw_families(found: Table) -> "Figure":
    """The same of every row, on average and among each family that was left out."""
    parts = {"mean": slice(None)}
    parts |= {family: slice(k, k + 1) for k, family in enumerate(found.families)}
    across = 3
    down = -(-len(parts) // across)
    figure, places = panels(4 * across, 0.6 + 2.8 * down, down, across)
    for axes, (title, part) in zip(places.flat, parts.items(), strict=False):
        rows = {name: found.rows[name][:, part].mean(axis=1) for name in found.others}
        ends = {"best": found.best, "blind": found.rows[found.blind]}
        levels = {name: returns[:, part].mean(axis=1) for name, returns in ends.items()}
        _by_episode(axes, rows, levels)
        axes.set_title(title, fontsize=SMALL)
    for axes in places.flat[len(parts) :]:
        axes.axis("off")
    figure.legend(*places[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _by_episode(
    axes: Any, curves: Mapping[str, np.ndarray], levels: Mapping[str, np.ndarray | None]
) -> None:
    """Returns [S, C] with a band over seeds, and reference players [S', C] as broken lines."""
    for number, (name, returns) in enumerate(curves.items()):
        at = np.arange(1, returns.shape[1] + 1)
        means = [estimate(column) for column in returns.T]
        middle = np.array([one.mean for one in means])
        half = np.array([one.half_width for one in means])
        own = RESTING[number % len(RESTING)]
        if np.isfinite(half).all():
            axes.fill_between(at, middle - half, middle + half, color=own, alpha=0.2, linewidth=0)
        axes.plot(at, middle, f"{MARKERS[number % len(MARKERS)]}-", color=own, label=name)
    for name, level in levels.items():
        if level is not None:
            at = np.arange(1, level.shape[1] + 1)
            label = SAID.get(name, name)
            axes.plot(at, level.mean(axis=0), "--", color=MARKS[name][0], label=label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("episode of the trial")
    axes.set_ylabel("return")


def draw_certificate(found: References) -> "Figure":
    """Oracle, blind and random by lineup, with a line for the gap."""
    figure, axes = _by_lineup(found.lineups)
    rows = range(len(found.lineups))
    for row in rows:
        ends = [one[:, row].mean() for one in (found.blind, found.oracle)]
        axes.plot(ends, [row, row], "-", color=FAINT, linewidth=1)
    for name, values in found.returns.items():
        shade, mark = MARKS[name]
        axes.plot(values.mean(axis=0), rows, mark, color=shade, label=SAID.get(name, name))
    axes.legend(loc="best")
    return figure


def _by_lineup(lineups: Sequence[Sequence[str]]) -> tuple["Figure", Any]:
    """Lineups down the left side, the first on top."""
    figure, places = panels(9, 1.5 + 0.32 * len(lineups))
    axes = places[0, 0]
    axes.set_yticks(range(len(lineups)), [", ".join(lineup) for lineup in lineups])
    axes.invert_yaxis()
    axes.set_xlabel("return")
    axes.grid(axis="x", alpha=0.3)
    return figure, axes


def draw_crossplay(found: Crossplay) -> "Figure":
    """What the one gets, and what the others get."""
    size = len(found.names)
    names = [name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}" for name in found.names]
    figure, places = panels(max(10, 2.2 * size + 4), max(4, size + 2), 1, 2)
    tables = {
        "Return of the row among the column": found.focal,
        "Mean return of the column around the row": found.co_players,
    }
    for axes, (title, table) in zip(places[0], tables.items(), strict=True):
        means = np.array([[cell.mean for cell in row] for row in table])
        shown = axes.imshow(means, cmap="cividis")
        texts = [
            f"{cell.mean:.2f}"
            + (f"\n± {cell.half_width:.2f}" if np.isfinite(cell.half_width) else "")
            for row in table
            for cell in row
        ]
        write_cells(axes, texts, means < (means.min() + means.max()) / 2, 9)
        axes.set_xticks(range(size), names, rotation=30, ha="right")
        axes.set_yticks(range(size), names)
        axes.set_title(title)
        figure.colorbar(shown, ax=axes, shrink=0.8)
    return figure


def draw_ladder(traces: Sequence[Trace], level: float) -> "Figure":
    """Every rung's mean over seeds, with a band from the worst seed to the best."""
    figure, places = panels(9, 5.5)
    axes = places[0, 0]
    for number, trace in enumerate(traces):
        curve = trace.curve()  # [U, S]
        steps = trace.steps * np.arange(1, trace.updates + 1)
        own, line = colour(number), LINES[number % len(LINES)]
        # Until an episode has ended for every seed there is nothing to draw.
        axes.plot(steps, curve.mean(axis=1), line, color=own, label=trace.title)
        axes.fill_between(
            steps, curve.min(axis=1), curve.max(axis=1), color=own, alpha=0.15, linewidth=0
        )
    axes.axhline(level, color=FAINT, linewidth=0.8, label=f"level {level:g}")
    axes.set(
        xlabel="environment steps of each seed",
        ylabel="mean return per seat, smoothed",
        title=f"Mean over {traces[0].episodes.shape[1]} seeds; bands from the worst to the best",
    )
    axes.legend(loc="lower right")
    return figure
