"""What was measured of a model: figures for machines, tables, and pictures for people."""

import csv
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors
from hopplus.runs.watchdog import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Measures:
    """All about one model."""

    kind: str
    figures: dict[str, Any]  # numbers, as JSON has them
    tables: dict[str, list[dict[str, Any]]]  # rows by the table's name
    pictures: "dict[str, Callable[[], Figure]]" = field(default_factory=dict)


def write_measures(folder: Path, by_seed: dict[int, Measures]) -> None:
    """measures.json and a CSV file per table with all seeds; the pictures are of the first."""
    one = next(iter(by_seed.values()))
    with clear_errors(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        figures = {"kind": one.kind, "seeds": {n: own.figures for n, own in by_seed.items()}}
        text = json.dumps(finite(figures), indent=2, allow_nan=False)
        write_durably(folder / "measures.json", text.encode())
        for name in one.tables:
            rows = [
                {"seed": seed, **row} for seed, own in by_seed.items() for row in own.tables[name]
            ]
            _write_csv(folder / f"{name}.csv", rows)
    for name, draw in one.pictures.items():  # last: a picture that fails takes nothing with it
        _write_picture(folder / f"{name}.png", draw)


def finite(tree: Any) -> Any:
    """The same with null for every number that is none: JSON has no other word for it."""
    match tree:
        case dict():
            return {name: finite(value) for name, value in tree.items()}
        case list() | tuple():
            return [finite(value) for value in tree]
        case float() if not math.isfinite(tree):
            return None
    return tree


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["seed"])
        writer.writeheader()
        writer.writerows(rows)


_lacking: list[str] = []  # said once


def _write_picture(path: Path, draw: "Callable[[], Figure]") -> None:
    try:
        draw().savefig(path, dpi=110)
    except ImportError:
        if not _lacking:
            _lacking.append("matplotlib")
            say("pictures are left out: matplotlib is not installed here")
    except Exception as error:  # the figures are saved, and the other pictures may do
        say(f"{path.name} is left out: it cannot be drawn ({type(error).__name__}: {error})")
