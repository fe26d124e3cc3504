"""Why do returns depend on the seat number?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hopplus.diagnosis.faults import Fault
from hopplus.diagnosis.finding import Diagnosis, conclude, read_illnesses, run_checks
from hopplus.diagnosis.seats.checks import CHECKS, SeatsEvidence, SeatsSettings
from hopplus.diagnosis.seats.ordering import Ordering
from hopplus.diagnosis.seats.returns import return_curves
from hopplus.diagnosis.subject import OnStep, Subject

ILLNESSES = read_illnesses("seats")


@dataclass(frozen=True)
class SeatsDiagnosis(Diagnosis):
    """Everything that was seen, and what it means."""

    returns: Ordering  # of the runs, over the last fifth of training
    curves: np.ndarray  # [U, S, N] returns of the episodes that ended in each update
    ladder: dict[str, Ordering]  # by what was taken away

    @property
    def figures(self) -> dict[str, Any]:
        return {"returns": self.returns, "ladder": self.ladder}


def diagnose_seats(
    subject: Subject, fault: Fault, settings: SeatsSettings, on_step: OnStep
) -> SeatsDiagnosis:
    """Run all checks on a subject; `fault` is what was built into it, if anything."""
    seen = SeatsEvidence(subject, fault, settings, on_step)
    checks = run_checks(CHECKS, seen)
    verdict = conclude(checks, ILLNESSES)
    curves = return_curves(subject.records)
    return SeatsDiagnosis(subject.name, checks, verdict, seen.returns, curves, seen.ladder)
