"""Why is the value loss large?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hopplus.diagnosis.finding import Diagnosis, conclude, read_illnesses, run_checks
from hopplus.diagnosis.subject import OnStep, Subject, replica_of
from hopplus.diagnosis.value_loss.checks import CHECKS
from hopplus.diagnosis.value_loss.courses import run_courses
from hopplus.diagnosis.value_loss.evidence import ValueLossEvidence
from hopplus.diagnosis.value_loss.experiments import run_experiments
from hopplus.diagnosis.value_loss.models import compare_goals, measure_opponents, measure_world
from hopplus.diagnosis.value_loss.sources import Sources, compare_targets, describe_sources

ILLNESSES = read_illnesses("value-loss")


@dataclass(frozen=True)
class ValueLossDiagnosis(Diagnosis):
    """Everything that was seen, and what it means."""

    seen: ValueLossEvidence

    @property
    def seats(self) -> list[list[int]]:
        """[sets] whose parameters they are."""
        return self.seen.subject.learner.auxiliary.seats.tolist()

    @property
    def figures(self) -> dict[str, Any]:
        names = ("sources", "targets", "experiments", "courses", "over_time", "world", "opponents")
        return {"seats": self.seats, **{name: getattr(self.seen, name) for name in names}}


def diagnose_value_loss(
    subject: Subject,
    updates: int,
    on_step: OnStep,
    over_time: dict[int, Sources] | None = None,
    from_the_start: bool = False,
) -> ValueLossDiagnosis:
    """Look into one more update, then run the experiments for so many updates; and once more from
    the first update on, if that is wanted. `over_time` is what values learned from so far."""
    learner, lab = subject.learner, subject.laboratory
    param_sets = replica_of(subject.learning.params[learner.learning], 0)
    _, _, shown = lab.update(subject.learning, lab.as_it_is())
    lesson = replica_of(shown, 0)
    sources = describe_sources(lesson)
    on_step("looked at what values learn from")
    models = (lab, param_sets, lesson.trajectory)
    so_far = np.asarray(subject.learning.auxiliary_state.observed[0])
    targets, world = compare_targets(learner, lesson), measure_world(*models, so_far)
    # Without imagination, models of the others have no part in what values learn.
    opponents = measure_opponents(*models) if world else None
    apart = compare_goals(*models)
    on_step("looked at the models")
    experiments = run_experiments(subject, updates, on_step)
    courses = run_courses(subject, on_step) if from_the_start else []
    seen = ValueLossEvidence(
        subject,
        lesson,
        sources,
        targets,
        world,
        opponents,
        apart,
        experiments,
        courses,
        over_time or {},
    )
    checks = run_checks(CHECKS, seen)
    return ValueLossDiagnosis(subject.name, checks, conclude(checks, ILLNESSES), seen)
