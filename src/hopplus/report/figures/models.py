"""Figures of what was measured of models."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus.diagnosis.models.goal import GoalShown
from hopplus.diagnosis.models.measures import Measures
from hopplus.diagnosis.models.world import WorldShown
from hopplus.games.game import Game
from hopplus.report.figures.palette import (
    BLUE,
    FAINT,
    INKS,
    MARKERS,
    SMALL,
    TINY,
    VERMILION,
    colour,
    panels,
    try_figure,
    write_cells,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST, SURE = 0.02, 0.999  # probabilities below are not drawn, above without their number


def draw_opponent(measures: Measures) -> "Figure":
    """Confusion matrix, figures by action, calibration."""
    figures = measures.figures
    figure, axes = panels(16, 5, 1, 3)
    names = figures["actions"]
    table = np.array(figures["confusion"], float)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    matrix, bars, said = axes[0]
    matrix.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    cells = zip(shares.flat, table.flat, strict=True)
    texts = [f"{share:.0%}\n{count:.0f}" for share, count in cells]
    write_cells(matrix, texts, shares > 0.5, TINY)
    matrix.set(xlabel="predicted", ylabel="done", title="What was taken for what")
    matrix.set_xticks(range(len(names)), names, rotation=45, ha="right")
    matrix.set_yticks(range(len(names)), names)
    _draw_bars(bars, figures)
    what = f"top-1 (error {figures['calibration_error']:.3f})"
    _draw_calibration(said, figures["calibration"], what, counted=True)
    best = figures["best"].get("watching")
    at_best = f" (best possible without knowing who sits there: {best['top1']:.1%})" if best else ""
    figure.suptitle(
        f"Opponent model: top-1 {figures['top1']:.1%}{at_best}, top-3 {figures['top3']:.1%},"
        f" cross-entropy {figures['cross_entropy']:.3f}, {figures['samples']:,} held-out steps"
    )
    return figure


def _draw_bars(axes: "Axes", figures: dict[str, Any]) -> None:
    rows = figures["classes"]
    names = ["precision", "recall", "f1"]
    if "best_recall" in rows[0]:
        names.append("best_recall")
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        places = np.arange(len(rows)) + (number - (len(names) - 1) / 2) * width
        label = "recall, best possible" if name == "best_recall" else name
        axes.bar(places, [row[name] for row in rows], width, label=label, color=colour(number))
    ticks = [f"{row['action']}\n{row['share']:.1%}" for row in rows]
    axes.set_xticks(range(len(rows)), ticks, fontsize=SMALL)
    axes.set(ylim=(0, 1), title="By action, with its share of all")
    axes.legend(fontsize=SMALL)


def _draw_calibration(
    axes: "Axes", rows: list[dict[str, Any]], what: str, *, counted: bool = False
) -> None:
    """Dots on the line are right; larger ones are of more predictions."""
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1)
    counts = np.array([row["count"] for row in rows])
    axes.scatter(
        [row["predicted"] for row in rows],
        [row["happened"] for row in rows],
        s=20 + 180 * counts / counts.max(),
        color=BLUE,
    )
    for row in rows if counted else []:
        place = (row["predicted"], row["happened"])
        axes.annotate(
            f"{row['count']:,}", place, (7, -9), textcoords="offset points", fontsize=TINY
        )
    axes.set(xlabel="probability given", ylabel="share that happened", title=f"Calibration, {what}")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def draw_world(measures: Measures) -> "Figure":
    """Errors by channel, imagined step after step, calibration of cells, rewards."""
    figures, shown = measures.figures, measures.shown
    assert isinstance(shown, WorldShown)
    rewards = shown.rewards
    figure, axes = panels(18, 9, 2, 3)
    channels, loop, values, said, counts, reward = axes.flat
    rows = figures["channels"]
    names = [row["channel"] for row in rows]
    channels.bar(names, [row["mse"] or np.nan for row in rows], color=BLUE)
    if any(row["mse"] for row in rows):
        channels.set(yscale="log")
    channels.set(ylabel="mean squared error", title="Error by plane (no bar: none at all)")
    _draw_open_loop(loop, [row for row in figures["open_loop"] if row["windows"]])
    _draw_values(values, rows)
    by_bin: dict[float, list[dict[str, Any]]] = {}
    for row in figures["calibration"]:
        by_bin.setdefault(row["from"], []).append(row)
    joined = [_joined(rows) for rows in by_bin.values()]
    _draw_calibration(said, joined, "all cells of all planes")
    for number, name in enumerate(names):
        own = [row for row in figures["calibration"] if row["channel"] == name]
        places = [(row["from"] + row["to"]) / 2 for row in own]
        cells = [row["count"] for row in own]
        mark = MARKERS[number % len(MARKERS)]
        counts.plot(places, cells, mark, color=colour(number), label=name, alpha=0.7)
    counts.set(yscale="log", xlabel="probability given", ylabel="cells")
    counts.set_title("How often each probability is given")
    counts.legend(fontsize=TINY)
    reward.plot(rewards[:, 1], rewards[:, 0], ".", color=BLUE, alpha=0.3)
    top = float(rewards[:, 1].max())
    reward.plot([0, top], [0, top], color=FAINT, linewidth=1)
    reward.set(xlabel="true reward", ylabel="predicted", title="Reward of the seat itself")
    figure.suptitle(
        f"World model: {figures['exact_next_state']:.3%} of next states exact, PSNR"
        f" {figures['psnr']:.1f} dB, reward MSE {figures['reward_mse']:.2g}, possible at all"
        f" {figures['consistency']['all']:.2%}, {figures['samples']:,} held-out steps"
    )
    return figure


def _draw_open_loop(axes: "Axes", rows: list[dict[str, Any]]) -> None:
    exact = [row["exact"] for row in rows]
    axes.plot([row["steps"] for row in rows], exact, marker="o", color=BLUE)
    room = 0.15 * max(1 - min(exact), 0.02)
    axes.set(xlabel="steps imagined", ylabel="share exactly right")
    axes.set(ylim=(min(exact) - 2 * room, 1 + room))
    axes.set_title("Open loop, given the true joint actions, with the number of windows")
    for row in rows[::4]:
        place = (row["steps"], row["exact"])
        axes.annotate(
            f"{row['windows']:,}", place, (0, -16), textcoords="offset points", fontsize=8
        )


def _draw_values(axes: "Axes", rows: list[dict[str, Any]]) -> None:
    """Values given to cells that are 1 and to cells that are 0, never rounded."""
    for number, row in enumerate(rows):
        if row["mean_where_1"] is not None:
            axes.plot([number - 0.1] * 2, [row["least_where_1"], 1], color=BLUE, linewidth=3)
            axes.plot(number - 0.1, row["mean_where_1"], "o", color=BLUE)
        if row["mean_where_0"] is not None:
            axes.plot([number + 0.1] * 2, [0, row["most_where_0"]], color=VERMILION, linewidth=3)
            axes.plot(number + 0.1, row["mean_where_0"], "o", color=VERMILION)
    axes.set_xticks(range(len(rows)), [row["channel"] for row in rows])
    axes.set_title("Values of cells that are 1 (blue) and 0 (orange): mean and range")


def _joined(rows: list[dict[str, Any]]) -> dict[str, Any]:
    count = sum(row["count"] for row in rows)
    return {
        "count": count,
        **{
            name: sum(row["count"] * row[name] for row in rows) / count
            for name in ("predicted", "happened")
        },
    }


def draw_worst(measures: Measures) -> "Figure":
    """State, prediction and truth side by side, the worst first, with actions and rewards."""
    assert isinstance(measures.shown, WorldShown)
    game, shown = measures.shown.game, measures.shown.worst()
    side = max(3.6, 0.65 * game.shape[1])
    figure, axes = panels(3 * side, (side + 0.7) * len(shown), len(shown), 3)
    for row, (sample, prediction) in zip(axes, shown, strict=True):
        names = game.action_names
        acts = [
            f"{'self' if seat == 0 else seat}: {names[action]}"
            for seat, (action, present) in enumerate(zip(sample.joint, sample.present, strict=True))
            if present
        ]
        half = (len(acts) + 1) // 2
        gone, end = 1 - int(sample.present_after[0]), int(sample.done)
        titles = [
            ", ".join(acts[:half]) + "\n" + ", ".join(acts[half:]),
            f"predicted: own reward {prediction.reward[0]:.3f},\n"
            f"self gone {prediction.gone[0]:.3f}, episode over {prediction.done:.3f}",
            f"true: own reward {sample.reward[0]:.3f},\nself gone {gone}, episode over {end}",
        ]
        boards = (sample.view.planes, prediction.planes, sample.after.planes)
        for place, title, planes in zip(row, titles, boards, strict=True):
            _draw_board(place, game, planes)
            place.set_title(title, fontsize=9)
    figure.suptitle(
        "Worst predictions, by planes and by reward in turn: before, predicted, true. 1, 2, ... are"
        f" the seats after one's own;\nnumbers are probabilities (none drawn below {LEAST}, none"
        f" written above {SURE})"
    )
    return figure


def _draw_board(axes: "Axes", game: Game, planes: Any) -> None:
    """One board; what is there with probability p is drawn with that strength and its number."""
    height, width, _ = planes.shape
    axes.imshow(1 - 0.35 * planes[..., game.seats], cmap="gray", vmin=0, vmax=1)
    marks = [("self" if seat == 0 else str(seat), seat) for seat in range(game.seats)]
    marks += [(kind, target.plane) for kind, target in game.targets.items()]
    for row, column in np.ndindex(height, width):
        lines = []
        for number, (name, plane) in enumerate(marks):
            chance = float(planes[row, column, plane])
            if chance > LEAST:
                lines.append((name if chance > SURE else f"{name} {chance:.2f}", number, chance))
        for place, (text, number, chance) in enumerate(lines):
            axes.text(
                column,
                row + (place - (len(lines) - 1) / 2) * 0.2,
                text,
                ha="center",
                va="center",
                fontsize=8 if width <= 5 else 7,
                color=INKS[number % len(INKS)],
                alpha=0.55 + 0.45 * min(chance, 1.0),
            )
    axes.set_xticks(np.arange(-0.5, width), [])
    axes.set_yticks(np.arange(-0.5, height), [])
    axes.grid(color="lightgrey")
    axes.tick_params(length=0)


def draw_goal(measures: Measures) -> "Figure":
    """Goals in two dimensions, what a probe reads from them by time, divergence, hits."""
    assert isinstance(measures.shown, GoalShown)
    figures, (points, kind, kinds) = measures.figures, measures.shown
    figure, axes = panels(18, 5, 1, 4)
    plane, probe, spread, hits = axes[0]
    for number, name in enumerate(kinds):
        own = points[kind == number]
        plane.scatter(own[:, 0], own[:, 1], s=8, alpha=0.6, label=name, color=colour(number))
    shares = figures["projection_shares"]
    plane.set(xlabel=f"{shares[0]:.0%} of the variance", ylabel=f"{shares[1]:.0%} of the variance")
    alike = np.abs(points).max() < 1e-4
    plane.set_title("All goals are alike" if alike else "Goals along their main directions")
    plane.legend(fontsize=SMALL)
    for number, about in enumerate(("kind", "prey")):
        rows = [row for row in figures.get(about, {}).get("by_time", []) if row["auc"] is not None]
        label = "kind of player" if about == "kind" else "what it takes in the end"
        names = ("time", "auc", "untrained_auc", "auc_low", "auc_high")
        times, area, untrained, low, high = ([row[name] for row in rows] for name in names)
        probe.plot(times, area, marker="o", label=label, color=colour(number))
        probe.plot(times, untrained, ":", color=colour(number), label=f"... untrained ({about})")
        probe.fill_between(times, low, high, alpha=0.2, color=colour(number))
    probe.axhline(0.5, color=FAINT, linewidth=1)
    probe.set(xlabel="steps played (where there are enough of two kinds)", ylim=(0.2, 1.02))
    probe.set(ylabel="area under the curve")
    probe.xaxis.get_major_locator().set_params(integer=True)
    probe.set_title("Accuracy of a linear probe (0.5 is chance)")
    probe.legend(fontsize=SMALL)
    spread.bar(range(len(figures["kl_by_number"])), figures["kl_by_number"], color=BLUE)
    spread.set(xlabel="number of the goal", ylabel="nats", title="Divergence from the prior")
    names_of_hits = ["chance", "now", "untrained", "later"]
    ratios = [figures["hit_ratio"][name] or 0.0 for name in names_of_hits]
    hits.bar(names_of_hits, ratios, color=BLUE)
    hits.set(
        ylim=(0, 1), title=f"Goal's place visited within {figures['hit_ratio']['within']} steps"
    )
    figure.suptitle(
        f"Goals, {figures['loss']} loss {figures[figures['loss']]:.3f}, KL {figures['kl']:.2f}"
        f" nats in {figures['numbers_in_use']} numbers, {figures['samples']:,} held-out steps"
    )
    return figure


Draw = Callable[[Measures], "Figure"]
DRAWN: Mapping[str, Mapping[str, Draw]] = {  # by the model's kind and the figure's name
    "opponent": {"opponent": draw_opponent},
    "world": {"world": draw_world, "worst": draw_worst},
    "goal": {"goal": draw_goal},
}


def write_figures(folder: Path, measures: Measures) -> None:
    """All figures of a model; one that fails takes nothing with it."""
    for name, draw in DRAWN[measures.kind].items():
        try_figure(folder / f"{name}.png", partial(draw, measures))


def draw_foresight(calibration: Mapping[str, list[dict[str, Any]]]) -> "Figure":
    """Calibration of what models say of others, side by side."""
    figure, axes = panels(5 * len(calibration), 5, 1, len(calibration))
    for place, (name, rows) in zip(axes[0], calibration.items(), strict=True):
        _draw_calibration(place, rows, name)
    return figure
