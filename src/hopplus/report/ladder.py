"""The page of a ladder: its rungs in figures, and their curves one over the other."""

from collections.abc import Sequence
from dataclasses import replace

from hopplus.evaluation.ablation import Row
from hopplus.evaluation.statistics import ENOUGH, Estimate
from hopplus.report.curves import curves_section
from hopplus.report.page import Page, Section
from hopplus.report.runs import differences, too_close
from hopplus.report.summary import Summary
from hopplus.report.words import Words


def ladder_page(
    title: str, rows: Sequence[Row], runs: Sequence[Summary], level: float, command: str
) -> Page:
    """Every rung beside the first, at equal steps and at equal wall time; `runs` are the rungs'."""
    first = rows[0].title
    named = [replace(run, name=row.title) for run, row in zip(runs, rows, strict=True)]
    known = [row for row in rows if row.mean_return]
    best = max(known, key=lambda row: row.mean_return.mean if row.mean_return else 0, default=None)
    answer = f"{best.title} has the highest return: {best.mean_return}" if best else "No returns"
    if even := too_close([(row.title, row.mean_return) for row in known if row.mean_return]):
        answer = Words()(even)
    few = min(len(row.by_seed) for row in rows) < ENOUGH
    lines = ["Returns over the last tenth; differences are of the same seeds; intervals of 95%."]
    lines += [f"⚠ below {ENOUGH} seeds, intervals say little"] * few
    lines += [
        f"⚠ {run.name}: {Words()(one)}"
        for run in named
        for one in run.warnings()
        if not one.text.startswith("few seeds")
    ]
    sections = [
        Section(
            "At equal steps",
            header=["rung", "return", f"− {first}", f"steps to {level:g}", "ratio", "value loss"],
            rows=[_at_steps(row) for row in rows],
        ),
        Section(
            "At equal wall time",
            f"That of {first}, without compilation.",
            header=["rung", "s/update", "ratio", "updates", "return", f"− {first}"],
            rows=[_at_time(row) for row in rows],
        ),
        *filter(None, [differences(named, Words())]),
        curves_section([run.curved for run in named], Words()),
    ]
    return Page(title, answer, "bad" if few else "good", lines, command, sections)


def _at_steps(row: Row) -> list[str]:
    return [
        row.title,
        _said(row.mean_return),
        _said(row.difference),
        f"{row.steps_to_level:,}" if row.steps_to_level else "never",
        f"{row.steps_ratio:.2f}" if row.steps_ratio else "",
        f"{row.value_loss:.3f}",
    ]


def _at_time(row: Row) -> list[str]:
    return [
        row.title,
        f"{row.seconds_per_update:.3g}",
        f"{row.seconds_ratio:.2f}",
        f"{row.timed_updates:,}/{row.updates:,}",
        _said(row.timed_return),
        _said(row.timed_difference),
    ]


def _said(value: Estimate | None) -> str:
    return "?" if value is None else str(value)
