"""Figures that benchmarks keep in JSON files: by name, each with the settings it was found with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hopplus.runs.checkpoint import write_durably

Figures = dict[str, Any]


def find_figures(path: Path, name: str, settings: Mapping[str, Any]) -> Figures | None:
    """What is kept of that name; None of nothing, or of other settings."""
    known: Figures = read_figures(path).get(name, {})
    same = json.loads(json.dumps(settings)).items() <= known.items()
    return known if known and same else None


def keep_figures(path: Path, found: Mapping[str, Figures]) -> None:
    """Put these in, each in the place of what is kept of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, (json.dumps({**read_figures(path), **found}, indent=1) + "\n").encode())


def read_figures(path: Path) -> dict[str, Figures]:
    """All that is kept; nothing where there is no file yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
