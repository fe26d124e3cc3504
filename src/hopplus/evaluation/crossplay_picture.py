"""Cross-play as a picture. Needs matplotlib."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from hopplus.evaluation.crossplay import Crossplay
from hopplus.runs.folder import clear_errors

LONGEST = 28  # letters of a name, of whose path the end tells most


def draw_crossplay(path: Path, found: Crossplay) -> None:
    """Two matrices: what the one gets, and what the others get."""
    size = len(found.names)
    names = [name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}" for name in found.names]
    figure = Figure(figsize=(max(10, 2.2 * size + 4), max(4, size + 2)), layout="constrained")
    for axes, table, title in zip(
        figure.subplots(1, 2),
        (found.focal, found.company),
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
    with clear_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
