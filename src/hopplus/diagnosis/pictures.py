"""Pictures of what was measured. The only part of the diagnosis that needs matplotlib."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hopplus.games.game import Game
from hopplus.models.world import Prediction
from hopplus.types import Sample

# Okabe and Ito's colours, told apart by the colour-blind.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKS = ("#000000", "#D55E00", "#009E73", "#CC79A7", "#7A5195", "#A05A00", "#0072B2", "#56B4E9")
FAINT, SURE = 0.02, 0.999  # probabilities below are not drawn, above without their number


def panels(width: float, height: float, rows: int, columns: int) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def opponent_picture(figures: dict[str, Any]) -> Figure:
    """Confusion matrix, figures by action, calibration."""
    figure, axes = panels(16, 5, 1, 3)
    names = figures["actions"]
    table = np.array(figures["confusion"], float)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    matrix, bars, said = axes[0]
    matrix.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for row, column in np.ndindex(shares.shape):
        dark = shares[row, column] > 0.5
        matrix.text(
            column,
            row,
            f"{shares[row, column]:.0%}\n{table[row, column]:.0f}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if dark else "black",
        )
    matrix.set(xlabel="predicted", ylabel="done", title="What was taken for what")
    matrix.set_xticks(range(len(names)), names, rotation=45, ha="right")
    matrix.set_yticks(range(len(names)), names)
    _bars(bars, figures)
    what = f"top-1 (error {figures['calibration_error']:.3f})"
    _calibration(said, figures["calibration"], what, counted=True)
    best = figures["best"].get("watching")
    beside = f" (best possible unless told who sits there: {best['top1']:.1%})" if best else ""
    figure.suptitle(
        f"Opponent model: top-1 {figures['top1']:.1%}{beside}, top-3 {figures['top3']:.1%},"
        f" cross-entropy {figures['cross_entropy']:.3f}, {figures['samples']:,} held-out steps"
    )
    return figure


def _bars(axes: Axes, figures: dict[str, Any]) -> None:
    rows = figures["classes"]
    names = ["precision", "recall", "f1"]
    if "best_recall" in rows[0]:
        names.append("best_recall")
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        places = np.arange(len(rows)) + (number - (len(names) - 1) / 2) * width
        label = "recall, best possible" if name == "best_recall" else name
        axes.bar(places, [row[name] for row in rows], width, label=label, color=COLOURS[number])
    ticks = [f"{row['action']}\n{row['share']:.1%}" for row in rows]
    axes.set_xticks(range(len(rows)), ticks, fontsize=8)
    axes.set(ylim=(0, 1), title="By action, with its share of all")
    axes.legend(fontsize=8)


def _calibration(
    axes: Axes, rows: list[dict[str, Any]], what: str, *, counted: bool = False
) -> None:
    """Dots on the line are right; larger ones are of more predictions."""
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
    counts = np.array([row["count"] for row in rows])
    axes.scatter(
        [row["predicted"] for row in rows],
        [row["happened"] for row in rows],
        s=20 + 180 * counts / counts.max(),
        color=COLOURS[0],
    )
    for row in rows if counted else []:
        place = (row["predicted"], row["happened"])
        axes.annotate(f"{row['count']:,}", place, (7, -9), textcoords="offset points", fontsize=7)
    axes.set(xlabel="probability given", ylabel="share that happened", title=f"Calibration, {what}")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))


def world_picture(figures: dict[str, Any], rewards: np.ndarray) -> Figure:
    """Errors by channel, imagined step after step, calibration of cells, rewards."""
    figure, axes = panels(18, 9, 2, 3)
    channels, loop, values, said, counts, reward = axes.flat
    rows = figures["channels"]
    names = [row["channel"] for row in rows]
    channels.bar(names, [row["mse"] or np.nan for row in rows], color=COLOURS[0])
    if any(row["mse"] for row in rows):
        channels.set(yscale="log")
    channels.set(ylabel="mean squared error", title="Error by plane (no bar: none at all)")
    _open_loop(loop, [row for row in figures["open_loop"] if row["windows"]])
    _values(values, rows)
    by_bin: dict[float, list[dict[str, Any]]] = {}
    for row in figures["calibration"]:
        by_bin.setdefault(row["from"], []).append(row)
    joined = [_joined(rows) for rows in by_bin.values()]
    _calibration(said, joined, "all cells of all planes")
    for number, name in enumerate(names):
        own = [row for row in figures["calibration"] if row["channel"] == name]
        places = [(row["from"] + row["to"]) / 2 for row in own]
        marks = "osD^v<>p"[number % 8]
        counts.plot(
            places,
            [r["count"] for r in own],
            marks,
            color=COLOURS[number % 8],
            label=name,
            alpha=0.7,
        )
    counts.set(yscale="log", xlabel="probability given", ylabel="cells")
    counts.set_title("How often each probability is given")
    counts.legend(fontsize=7)
    reward.plot(rewards[:, 1], rewards[:, 0], ".", color=COLOURS[0], alpha=0.3)
    top = float(rewards[:, 1].max())
    reward.plot([0, top], [0, top], color="grey", linewidth=1)
    reward.set(xlabel="true reward", ylabel="predicted", title="Reward of the seat itself")
    figure.suptitle(
        f"World model: {figures['exact_next_state']:.3%} of next states exact, PSNR"
        f" {figures['psnr']:.1f} dB, reward MSE {figures['reward_mse']:.2g}, possible at all"
        f" {figures['consistency']['all']:.2%}, {figures['samples']:,} held-out steps"
    )
    return figure


def _open_loop(axes: Axes, rows: list[dict[str, Any]]) -> None:
    exact = [row["exact"] for row in rows]
    axes.plot([row["steps"] for row in rows], exact, marker="o", color=COLOURS[0])
    room = 0.15 * max(1 - min(exact), 0.02)
    axes.set(xlabel="steps imagined", ylabel="share exactly right")
    axes.set(ylim=(min(exact) - 2 * room, 1 + room))
    axes.set_title("Open loop, given the true joint actions, with the number of windows")
    for row in rows[::4]:
        place = (row["steps"], row["exact"])
        axes.annotate(
            f"{row['windows']:,}", place, (0, -16), textcoords="offset points", fontsize=8
        )


def _values(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Values given to cells that are 1 and to cells that are 0, never rounded."""
    for number, row in enumerate(rows):
        if row["mean_where_1"] is not None:
            axes.plot([number - 0.1] * 2, [row["least_where_1"], 1], color=COLOURS[0], linewidth=3)
            axes.plot(number - 0.1, row["mean_where_1"], "o", color=COLOURS[0])
        if row["mean_where_0"] is not None:
            axes.plot([number + 0.1] * 2, [0, row["most_where_0"]], color=COLOURS[1], linewidth=3)
            axes.plot(number + 0.1, row["mean_where_0"], "o", color=COLOURS[1])
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


def worst_picture(game: Game, shown: list[tuple[Sample, Prediction]]) -> Figure:
    """State, prediction and truth side by side, the worst first, with actions and rewards."""
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
        _board(row[0], game, sample.view.planes)
        row[0].set_title(", ".join(acts[:half]) + "\n" + ", ".join(acts[half:]), fontsize=9)
        _board(row[1], game, prediction.planes)
        row[1].set_title(
            f"predicted: own reward {prediction.reward[0]:.3f},\n"
            f"self gone {prediction.gone[0]:.3f}, episode over {prediction.done:.3f}",
            fontsize=9,
        )
        _board(row[2], game, sample.after.planes)
        gone, end = 1 - int(sample.present_after[0]), int(sample.done)
        row[2].set_title(
            f"true: own reward {sample.reward[0]:.3f},\nself gone {gone}, episode over {end}",
            fontsize=9,
        )
    figure.suptitle(
        "Worst predictions, by planes and by reward in turn: before, predicted, true. 1, 2, ... are"
        f" the seats after one's own;\nnumbers are probabilities (none drawn below {FAINT}, none"
        f" written above {SURE})"
    )
    return figure


def _board(axes: Axes, game: Game, planes: Any) -> None:
    """One board; what is there with probability p is drawn with that strength and its number."""
    height, width, _ = planes.shape
    axes.imshow(1 - 0.35 * planes[..., game.seats], cmap="gray", vmin=0, vmax=1)
    marks = [("self" if seat == 0 else str(seat), seat) for seat in range(game.seats)]
    marks += [(kind, target.plane) for kind, target in game.targets.items()]
    for row, column in np.ndindex(height, width):
        lines = []
        for number, (name, plane) in enumerate(marks):
            chance = float(planes[row, column, plane])
            if chance > FAINT:
                lines.append((name if chance > SURE else f"{name} {chance:.2f}", number, chance))
        for place, (text, number, chance) in enumerate(lines):
            axes.text(
                column,
                row + (place - (len(lines) - 1) / 2) * 0.2,
                text,
                ha="center",
                va="center",
                fontsize=8 if width <= 5 else 7,
                color=MARKS[number % len(MARKS)],
                alpha=0.55 + 0.45 * min(chance, 1.0),
            )
    axes.set_xticks(np.arange(-0.5, width), [])
    axes.set_yticks(np.arange(-0.5, height), [])
    axes.grid(color="lightgrey")
    axes.tick_params(length=0)


def goal_picture(
    figures: dict[str, Any], points: np.ndarray, kind: np.ndarray, names: list[str]
) -> Figure:
    """Goals in two dimensions, what a probe reads from them by time, divergence, hits."""
    figure, axes = panels(18, 5, 1, 4)
    plane, probe, spread, hits = axes[0]
    for number, name in enumerate(names):
        own = points[kind == number]
        plane.scatter(own[:, 0], own[:, 1], s=8, alpha=0.6, label=name, color=COLOURS[number % 8])
    shares = figures["projection_shares"]
    plane.set(xlabel=f"{shares[0]:.0%} of the variance", ylabel=f"{shares[1]:.0%} of the variance")
    alike = np.abs(points).max() < 1e-4
    plane.set_title("All goals are alike" if alike else "Goals along their main directions")
    plane.legend(fontsize=8)
    for number, about in enumerate(("kind", "prey")):
        rows = [row for row in figures.get(about, {}).get("by_time", []) if row["auc"] is not None]
        label = "kind of player" if about == "kind" else "what it takes in the end"
        times = [row["time"] for row in rows]
        probe.plot(times, [r["auc"] for r in rows], marker="o", label=label, color=COLOURS[number])
        plain = [row["untrained_auc"] for row in rows]
        probe.plot(times, plain, ":", color=COLOURS[number], label=f"... untrained ({about})")
        probe.fill_between(
            times,
            [row["auc_low"] for row in rows],
            [row["auc_high"] for row in rows],
            alpha=0.2,
            color=COLOURS[number],
        )
    probe.axhline(0.5, color="grey", linewidth=1)
    probe.set(xlabel="steps played (where there are enough of two kinds)", ylim=(0.2, 1.02))
    probe.set(ylabel="area under the curve")
    probe.xaxis.get_major_locator().set_params(integer=True)
    probe.set_title("What a linear probe reads (0.5 is chance)")
    probe.legend(fontsize=8)
    spread.bar(range(len(figures["kl_by_number"])), figures["kl_by_number"], color=COLOURS[0])
    spread.set(xlabel="number of the goal", ylabel="nats", title="Divergence from the prior")
    names_of_hits = ["chance", "now", "untrained", "later"]
    ratios = [figures["hit_ratio"][name] or 0.0 for name in names_of_hits]
    hits.bar(names_of_hits, ratios, color=COLOURS[0])
    hits.set(
        ylim=(0, 1), title=f"Goal's place visited within {figures['hit_ratio']['within']} steps"
    )
    figure.suptitle(
        f"Goals, {figures['loss']} loss {figures[figures['loss']]:.3f}, KL {figures['kl']:.2f}"
        f" nats in {figures['numbers_in_use']} numbers, {figures['samples']:,} held-out steps"
    )
    return figure
