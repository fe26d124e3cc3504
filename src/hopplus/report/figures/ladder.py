"""How the return of every rung of a ladder grows with the steps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hopplus.evaluation.ablation import Trace
from hopplus.report.figures.palette import FAINT, LINES, colour, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        ylabel="mean return per seat, over three updates",
        title=f"Mean over {traces[0].episodes.shape[1]} seeds; bands from the worst to the best",
    )
    axes.legend(loc="lower right")
    return figure
