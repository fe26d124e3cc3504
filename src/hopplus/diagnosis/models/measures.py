"""What was measured of a model: figures for machines, and tables."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopplus.diagnosis.finding import to_json
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors

Row = dict[str, Any]


@dataclass(frozen=True)
class Measures:
    """All about one model."""

    kind: str
    figures: dict[str, Any]  # numbers, as JSON has them
    tables: dict[str, list[Row]]  # rows by the table's name
    shown: Any = None  # what pictures show besides, which differs from kind to kind


def write_measures(folder: Path, by_seed: dict[int, Measures]) -> None:
    """measures.json and a CSV file per table, with all seeds."""
    one = next(iter(by_seed.values()))
    with clear_errors(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        figures = {"kind": one.kind, "seeds": {n: own.figures for n, own in by_seed.items()}}
        text = json.dumps(to_json(figures), indent=2, allow_nan=False)
        write_durably(folder / "measures.json", text.encode())
        for name in one.tables:
            rows = [
                {"seed": seed, **row} for seed, own in by_seed.items() for row in own.tables[name]
            ]
            write_csv(folder / f"{name}.csv", rows)


def write_csv(path: Path, rows: list[Row]) -> None:
    """A line for each row, which may lack some of the others' columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(names) or ["seed"])
    writer.writeheader()
    writer.writerows(rows)
    write_durably(path, text.getvalue().encode())
