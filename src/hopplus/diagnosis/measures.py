"""What was measured of a model: figures for machines, tables, and pictures for people."""

import csv
import json
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


def write_measures(folder: Path, by_seed: list[Measures], *, pictures: bool = True) -> None:
    """measures.json and a CSV file per table with all seeds; the pictures are of the first."""
    with clear_errors(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        figures = {"kind": by_seed[0].kind, "seeds": [one.figures for one in by_seed]}
        write_durably(folder / "measures.json", json.dumps(figures, indent=2).encode())
        for name in by_seed[0].tables:
            rows = [
                {"seed": seed, **row}
                for seed, one in enumerate(by_seed)
                for row in one.tables[name]
            ]
            _write_csv(folder / f"{name}.csv", rows)
        if pictures:
            for name, draw in by_seed[0].pictures.items():
                _write_picture(folder / f"{name}.png", draw)


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
