"""The ladder as a picture: how the return of every rung grows with the steps."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hopplus.evaluation.ablation import Trace
from hopplus.runs.folder import clear_errors
from hopplus.runs.watchdog import say

# Okabe and Ito's colours, told apart by the colour-blind, and lines that differ without colour.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#D55E00", "#CC79A7")
LINES = ("-", "--", "-.", ":", "-", "--")


def draw_ladder(path: Path, traces: Sequence[Trace], level: float) -> bool:
    """Draw every rung's mean over seeds, with a band from the worst seed to the best.

    Whether it was drawn: without matplotlib it says so and draws nothing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        say("the picture is left out: matplotlib is not installed here")
        return False
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    for number, trace in enumerate(traces):
        curve = trace.curve()  # [U, S]
        steps = trace.steps * np.arange(1, trace.updates + 1)
        colour, line = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
        # Until an episode has ended for every seed there is nothing to draw.
        axes.plot(steps, curve.mean(axis=1), line, color=colour, label=trace.title)
        axes.fill_between(
            steps, curve.min(axis=1), curve.max(axis=1), color=colour, alpha=0.15, linewidth=0
        )
    axes.axhline(level, color="grey", linewidth=0.8, label=f"level {level:g}")
    seeds = traces[0].episodes.shape[1]
    axes.set(
        xlabel="environment steps of each seed",
        ylabel="mean return per seat, over three updates",
        title=f"Mean over {seeds} seeds; bands from the worst to the best",
    )
    axes.legend(loc="lower right")
    with clear_errors(f"write {path}"):
        figure.savefig(path, dpi=110)
    return True
