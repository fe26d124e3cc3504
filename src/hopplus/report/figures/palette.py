"""What all figures share: colours, sizes, and how one is made and saved.

matplotlib is imported only when a figure is made, so that playing and learning do without it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus.runs.folder import clear_errors
from hopplus.runs.watchdog import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by the colour-blind.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, YELLOW = "#E69F00", "#56B4E9", "#000000", "#F0E442"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW)
# Dark enough for small letters on a white board.
INKS = (BLACK, VERMILION, GREEN, PURPLE, "#7A5195", "#A05A00", BLUE, SKY)
LINES = ("-", "--", "-.", ":")  # so that curves differ without colour too
MARKERS = "osD^v<>p"
FAINT = "grey"  # for what only helps the eye: diagonals, levels, connecting lines

DPI = 110  # of figures that are saved as PNG
SMALL, TINY = 8, 7  # sizes of letters in legends, and in cells


def colour(number: int) -> str:
    """The colour of the so-manieth of several things; they come round again."""
    return COLOURS[number % len(COLOURS)]


def panels(width: float, height: float, rows: int = 1, columns: int = 1) -> "tuple[Figure, Any]":
    """A figure of so many inches, and its axes as an array [rows, columns]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def write_cells(axes: "Axes", texts: Sequence[str], dark: np.ndarray, size: int) -> None:
    """A text in every cell of a picture, row by row; in white where `dark` [R, C]."""
    for text, (row, column) in zip(texts, np.ndindex(dark.shape), strict=True):
        ink = "white" if dark[row, column] else "black"
        axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=size)


_lacking: list[str] = []  # said once


def try_figure(path: Path, draw: "Callable[[], Figure]") -> bool:
    """Draw and write a figure, in the format that the path ends in; whether that went well. A
    figure that cannot be drawn is said and takes nothing else with it."""
    try:
        figure = draw()
        with clear_errors(f"write {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=DPI)
    except ImportError:
        if not _lacking:
            _lacking.append("matplotlib")
            say("pictures are left out: matplotlib is not installed here")
        return False
    except Exception as error:
        say(f"{path.name} is left out: it cannot be drawn ({type(error).__name__}: {error})")
        return False
    return True
