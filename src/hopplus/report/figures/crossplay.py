"""Cross-play as two matrices."""

from typing import TYPE_CHECKING

import numpy as np

from hopplus.evaluation.crossplay import Crossplay
from hopplus.report.figures.palette import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 28  # letters of a name, of whose path the end tells most


def draw_crossplay(found: Crossplay) -> "Figure":
    """What the one gets, and what the others get."""
    size = len(found.names)
    names = [name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}" for name in found.names]
    figure, places = panels(max(10, 2.2 * size + 4), max(4, size + 2), 1, 2)
    for axes, table, title in zip(
        places[0],
        (found.focal, found.co_players),
        ("Return of the row among the column", "Mean return of the column around the row"),
        strict=True,
    ):
        means = np.array([[cell.mean for cell in row] for row in table])
        shown = axes.imshow(means, cmap="cividis")
        middle = (means.min() + means.max()) / 2
        for row, column in np.ndindex(means.shape):
            colour = "white" if means[row, column] < middle else "black"
            width = table[row][column].half_width
            interval = f"\n± {width:.2f}" if np.isfinite(width) else ""
            text = f"{means[row, column]:.2f}{interval}"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=9)
        axes.set_xticks(range(size), names, rotation=30, ha="right")
        axes.set_yticks(range(size), names)
        axes.set_title(title)
        figure.colorbar(shown, ax=axes, shrink=0.8)
    return figure
