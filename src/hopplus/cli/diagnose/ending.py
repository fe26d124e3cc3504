"""How diagnoses end: figures saved, a page written, and the verdict said."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from hopplus.cli.paged import this_command, written
from hopplus.config import ConfigError
from hopplus.diagnosis.finding import Diagnosis
from hopplus.report.page import Page, Section
from hopplus.report.terminal import print_sections
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors

MARKS = {"fine": "good", "fault": "bad", "unknown": "unknown"}  # as pages name them


def make_page(name: str, found: Diagnosis, sections: Sequence[Section]) -> Page:
    """The verdict, `sections` with tables and pictures, and all checks."""
    verdict = found.verdict
    answer = "Healthy" if verdict.healthy else f"{verdict.name}: {verdict.headline}"
    lines = [verdict.headline] if verdict.healthy else [verdict.evidence, verdict.advice]
    if verdict.also:
        lines.append(f"Also found, perhaps because of it: {', '.join(verdict.also)}.")
    checks = [Section(check.title, check.text, MARKS[check.state]) for check in found.checks]
    title, mark = f"hopplus diagnose {name}: {found.subject}", MARKS[verdict.state]
    return Page(title, answer, mark, lines, this_command(), [*sections, *checks])


def finish(
    name: str,
    path: Path,
    found: Diagnosis,
    draw: Callable[[], Sequence[Section]],
    as_json: bool,
    tables: Sequence[Section] = (),
) -> int:
    """Save the figures as JSON beside the page, then draw the page, and say the verdict; `tables`
    are said before it. The exit status is that of a diagnosis that was made, whatever it says.

    In this order, because pictures can fail: whatever happens to them, what was found is kept.
    """
    figures = found.as_json()
    saved, refused = path.with_suffix(".json"), None
    try:
        with clear_errors(f"write {saved}"):
            saved.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(figures, indent=2, allow_nan=False)
            write_durably(saved, text.encode())
    except ConfigError as error:  # the disk refuses: say what was found all the same
        refused = error
    drawn = None if refused else written(path, lambda: make_page(name, found, draw()))
    if as_json:
        print(json.dumps({"page": drawn, **figures}, indent=2))
    else:
        page = make_page(name, found, tables)
        print_sections(page.sections)
        console = Console(highlight=False)
        console.print()
        verdict = f"Verdict: {page.answer} ({found.verdict.area})."
        console.print(verdict, style="bold", markup=False)
        for line in page.lines:
            console.print(line, markup=False)
        if not refused:
            print(f"Pictures and everything else: {drawn}" if drawn else f"All figures: {saved}")
    if refused:
        raise refused
    return 0
