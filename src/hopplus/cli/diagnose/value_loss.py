"""`hopplus diagnose value-loss`: why is the value loss large?"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hopplus.cli.diagnose.common import Diagnosing, finish
from hopplus.cli.reading.options import check_options
from hopplus.diagnosis.subject import replica_of
from hopplus.diagnosis.value_loss.courses import Course, list_courses
from hopplus.diagnosis.value_loss.diagnosis import ValueLossDiagnosis, diagnose_value_loss
from hopplus.diagnosis.value_loss.experiments import REPLICAS, Experiment
from hopplus.diagnosis.value_loss.sources import Sources, describe_sources
from hopplus.learning.learner import Lesson
from hopplus.report.figures.diagnosis import (
    draw_courses,
    draw_experiments,
    draw_over_time,
    draw_sources,
    draw_time,
    name_sets,
)
from hopplus.report.page import Column, Section, make_table
from hopplus.runs.progress import Progress

STEPS, QUICK_STEPS = 100_000, 40_000
UPDATES, QUICK_UPDATES = 20, 6
QUICK_GAMES = 128
PIECES = 2  # of work besides training and experiments
LOOKS = 24  # at what values learn from, over training
# What is told of each source, by the name of its column.
SOURCES = {
    "steps": "{steps:,}",
    "squared error": "{value_loss:.3g}",
    "explained": "{explained:.2f}",
    "mean return": "{return_mean:.2f}",
    "variance": "{return_variance:.3g}",
    "rewards": "{reward[0]:.3g} to {reward[4]:.3g}",
    "size of goals": "{goal_size:.2f}",
}
# And of each experiment.
EXPERIMENTS: dict[str | Column, Callable[[Experiment], str]] = {
    "experiment": lambda one: one.name,
    "value loss": lambda one: f"{one.final:.3g}",
    "of imagined steps": lambda one: (
        f"{one.imagined_loss[-1]:.3g}" if any(one.imagined_loss) else "not learned"
    ),
    "explained": lambda one: f"{one.explained[-1]:.2f}",
    "mean return": lambda one: f"{one.returns[-1]:.2f}",
}
# And of each experiment from the first update on.
COURSES: dict[str | Column, Callable[[Course], str]] = {
    "experiment": lambda one: one.name,
    "value loss": lambda one: str(one.mean),
    "at most": lambda one: str(one.most),
    "of real steps": lambda one: str(one.real),
    "of imagined steps": lambda one: str(one.imagined or "not learned"),
    "return": lambda one: str(one.late_return),
}


@dataclass(frozen=True)
class DiagnoseValueLoss(Diagnosing):
    """Find out why the value loss is large: by source, by seat, over time, by experiment."""

    updates: int | None = None
    """Updates of each experiment; fewer with --quick."""

    def run(self) -> int:
        updates = self.updates or (QUICK_UPDATES if self.quick else UPDATES)
        check_options(updates=updates)
        opened = self._open(QUICK_STEPS if self.quick else STEPS)
        if not opened.run:
            config = opened.config.steady  # experiments go on from where it ends
            games = min(config.ppo.games, QUICK_GAMES) if self.quick else config.ppo.games
            opened = replace(opened, config=replace(config, ppo=replace(config.ppo, games=games)))
        imagines = opened.config.imagines
        total = opened.updates + PIECES + imagines * updates
        from_the_start = imagines and not opened.run and not self.quick
        if from_the_start:
            total += (len(list_courses(opened.config)) - 1) * opened.updates
        over_time: dict[int, Sources] = {}
        every = max(1, opened.updates // LOOKS)

        def on_lesson(update: int, lesson: Lesson) -> None:
            if update == 1 or update % every == 0:
                over_time[update] = describe_sources(replica_of(lesson, 0))

        with Progress("diagnosing the value loss", total, "pieces", even=False) as progress:

            def on_step(note: str) -> None:
                progress.advance(1, note)

            subject = self._make_subject(opened, REPLICAS, on_step, True, on_lesson)
            found = diagnose_value_loss(subject, updates, on_step, over_time, from_the_start)
        page = self._page("value-loss.html")
        return finish("value-loss", page, found, lambda: draw_sections(found), self.json)


def draw_sections(found: ValueLossDiagnosis) -> list[Section]:
    """Curves, experiments and sources, with their tables."""
    sections = [Section("Over time", pictures=[("over time", draw_time(found))])]
    if found.seen.experiments:
        title, drawn = "Experiments from the same checkpoint", draw_experiments(found)
        pictures = [("experiments", drawn)]
        sections.append(make_table(title, EXPERIMENTS, found.seen.experiments, pictures=pictures))
    if found.seen.courses:
        title, drawn = "Experiments from the first update on", draw_courses(found)
        pictures = [("from the first update on", drawn)]
        sections.append(make_table(title, COURSES, found.seen.courses, pictures=pictures))
    if found.seen.over_time:
        pictures = [("by source over time", draw_over_time(found))]
        sections.append(Section("What values learn from, over time", pictures=pictures))
    rows = [
        [f"{name}, seat {seat}", *(text.format_map(vars(one)) for text in SOURCES.values())]
        for name, by_set in found.seen.sources.items()
        for seat, one in zip(name_sets(found), by_set, strict=True)
        if one
    ]
    title = "What values learn from, by source and seat"
    pictures = [("distributions", draw_sources(found))]
    header = ["source", *SOURCES]
    return [*sections, Section(title, pictures=pictures, header=header, rows=rows)]
