"""What is known of a value loss once everything was looked at."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hopplus.diagnosis.subject import Subject, last_fifth
from hopplus.diagnosis.value_loss.courses import Course
from hopplus.diagnosis.value_loss.experiments import Experiment
from hopplus.diagnosis.value_loss.models import OpponentErrors, WorldErrors
from hopplus.diagnosis.value_loss.sources import Sources, StepSource, TargetErrors
from hopplus.learning.learner import Lesson


@dataclass(frozen=True)
class ValueLossEvidence:
    """What the checks look at: one more update of one replica, its models, and the experiments."""

    subject: Subject  # its log has no row of that update, which has replicas where a log has seeds
    lesson: Lesson
    sources: Sources
    targets: TargetErrors
    world: WorldErrors | None  # None where nothing is imagined
    opponents: OpponentErrors | None
    goals_apart: list[float]  # [sets]; empty without goals
    experiments: list[Experiment]
    courses: list[Course]  # from the first update on; empty of a run, and where they are not asked
    over_time: dict[int, Sources]  # by update, of one seed; empty of a run

    @cached_property
    def real(self) -> list[StepSource]:
        """Of the sets that learn from real steps."""
        return [one for one in self.sources["real"] if one]

    @property
    def loss(self) -> float:
        return float(np.mean([one.value_loss for one in self.real]))

    @property
    def variance(self) -> float:
        """Of the returns."""
        return float(np.mean([one.return_variance for one in self.real]))

    def late(self, name: str) -> float:
        """A figure of the log over the last fifth of training, of all seats and seeds."""
        logged = [one[name] for one in last_fifth(self.subject.records) if name in one]
        return float(np.mean(logged)) if logged else float("nan")
