"""The page of a ladder: its rungs in figures, and their curves one over the other."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopplus.diagnosis.finding import to_json
from hopplus.diagnosis.models.measures import write_csv
from hopplus.evaluation.ablation import Row
from hopplus.evaluation.statistics import ENOUGH
from hopplus.report.numbers import doubt_seeds
from hopplus.report.page import Column, Page, Section, make_table
from hopplus.report.pages.curves import curves_section
from hopplus.report.pages.runs import across_seeds_section, differences, too_close
from hopplus.report.pages.summary import Summary
from hopplus.report.translations import Translations
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors

ESTIMATES = ["mean_return", "difference", "timed_return", "timed_difference"]
ESTIMATES += ["iqm", "probability_of_improvement"]


def ladder_page(
    title: str,
    rows: Sequence[Row],
    runs: Sequence[Summary],
    level: float,
    payload: Mapping[str, Any],
) -> Page:
    """Every rung next to the first, at equal steps and equal wall time; `runs` are the rungs'."""
    named = [replace(run, name=row.title) for run, row in zip(runs, rows, strict=True)]
    known = [(row.title, row.mean_return) for row in rows if row.mean_return]
    best = max(known, key=lambda one: one[1].mean, default=None)
    answer = f"{best[0]} has the highest return: {best[1]}" if best else "No returns"
    if even := too_close(known):
        answer = Translations()(even)
    seeds = min(len(row.by_seed) for row in rows)
    lines = ["returns over the last tenth; differences are of the same seeds; intervals of 95%"]
    lines += filter(None, [doubt_seeds(seeds)])
    lines += [
        f"⚠ {run.name}: {Translations()(one)}"
        for run in named
        for one in run.warnings()
        if not one.text.startswith("few seeds")
    ]
    sections = [
        *_tables(rows, level),
        across_seeds_section([row.title for row in rows], [row.across_seeds for row in rows]),
        differences(named, Translations()),
        curves_section([run.curved for run in named], Translations()),
    ]
    return Page(
        title,
        answer,
        "good" if seeds >= ENOUGH else "bad",
        lines,
        sections=[section for section in sections if section],
        payload=payload,
    )


def _tables(rows: Sequence[Row], level: float) -> Iterator[Section]:
    """At equal steps and at equal wall time; the first rung has no difference to itself."""
    first = rows[0]
    returns = Column("return ± 95%", absent="?")
    difference, ratio = Column(f"- {first.title}", absent="?"), Column("ratio", ".2f")
    columns: dict[str | Column, Callable[[Row], Any]] = {
        "rung": lambda row: row.title,
        returns: lambda row: row.mean_return,
        difference: lambda row: "" if row is first else row.difference,
        Column(f"steps to {level:g}", absent="never"): lambda row: row.steps_to_level,
        ratio: lambda row: row.steps_ratio,
        "value loss": lambda row: row.value_loss,
    }
    yield make_table("At equal steps", columns, rows)
    columns = {
        "rung": lambda row: row.title,
        Column("s/update", ".3g"): lambda row: row.seconds_per_update,
        ratio: lambda row: row.seconds_ratio,
        "updates": lambda row: f"{row.timed_updates:,}/{row.updates:,}",
        returns: lambda row: row.timed_return,
        difference: lambda row: "" if row is first else row.timed_difference,
    }
    title = f"At equal wall time, that of {first.title} without compilation"
    yield make_table(title, columns, rows)


def write_ladder(folder: Path, figures: Mapping[str, Any]) -> None:
    """ladder.json, and ladder.csv with a line per rung."""
    known = to_json(dict(figures))
    with clear_errors(f"write in {folder}"):
        write_durably(folder / "ladder.json", json.dumps(known, indent=2).encode())
        write_csv(folder / "ladder.csv", [_flat(rung) for rung in known["rungs"]])


def _flat(rung: dict[str, Any]) -> dict[str, Any]:
    """A rung's figures with a name for each number: intervals take several, seeds are joined."""
    flat: dict[str, Any] = {}
    for name, value in rung.items():
        if name in ESTIMATES:
            flat |= {f"{name}_{end}": number for end, number in (value or {}).items()}
        elif isinstance(value, list):
            flat[name] = " ".join("-" if one is None else str(one) for one in value)
        else:
            flat[name] = value
    return flat
