"""The page of a ladder: its rungs in figures, and their curves one over the other."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hopplus.evaluation.ablation import Row
from hopplus.evaluation.statistics import ENOUGH
from hopplus.report.numbers import doubt_seeds, plain
from hopplus.report.page import Column, Page, Section
from hopplus.report.pages.across_seeds import across_seeds_section
from hopplus.report.pages.curves import curves_section
from hopplus.report.pages.runs import differences, too_close
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
    """Every rung beside the first, at equal steps and at equal wall time; `runs` are the rungs'."""
    first, titles = rows[0].title, [row.title for row in rows]
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
        _at_steps(rows, first, level),
        _at_time(rows, first),
        across_seeds_section(titles, [row.across_seeds for row in rows]),
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


def _return_columns(first: str) -> list[Column]:
    return [Column("return ± 95%", absent="?"), Column(f"- {first}", absent="?")]


def _at_steps(rows: Sequence[Row], first: str, level: float) -> Section:
    return Section(
        "At equal steps",
        header=[
            "rung",
            *_return_columns(first),
            Column(f"steps to {level:g}", absent="never"),
            Column("ratio", ".2f"),
            "value loss",
        ],
        rows=[
            [
                row.title,
                row.mean_return,
                row.difference if row is not rows[0] else "",
                row.steps_to_level,
                row.steps_ratio,
                row.value_loss,
            ]
            for row in rows
        ],
    )


def _at_time(rows: Sequence[Row], first: str) -> Section:
    return Section(
        f"At equal wall time, that of {first} without compilation",
        header=[
            "rung",
            Column("s/update", ".3g"),
            Column("ratio", ".2f"),
            "updates",
            *_return_columns(first),
        ],
        rows=[
            [
                row.title,
                row.seconds_per_update,
                row.seconds_ratio,
                f"{row.timed_updates:,}/{row.updates:,}",
                row.timed_return,
                row.timed_difference if row is not rows[0] else "",
            ]
            for row in rows
        ],
    )


def write_ladder(folder: Path, figures: Mapping[str, Any]) -> None:
    """ladder.json, and ladder.csv with a line per rung."""
    known = plain(dict(figures))
    lines = [_flat(rung) for rung in known["rungs"]]
    text = io.StringIO()
    names = dict.fromkeys(name for line in lines for name in line)  # a rung may lack some
    writer = csv.DictWriter(text, list(names))
    writer.writeheader()
    writer.writerows(lines)
    with clear_errors(f"write in {folder}"):
        write_durably(folder / "ladder.json", json.dumps(known, indent=2).encode())
        write_durably(folder / "ladder.csv", text.getvalue().encode())


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
