"""`hopplus diagnose`: what is wrong?"""

from dataclasses import dataclass
from typing import Any

from hopplus.cli.diagnose.adaptation import DiagnoseAdaptation
from hopplus.cli.diagnose.models import DiagnoseModels
from hopplus.cli.diagnose.seats import DiagnoseSeats
from hopplus.cli.diagnose.value_loss import DiagnoseValueLoss
from hopplus.cli.reading.options import one_of

DIAGNOSES = {
    "seats": DiagnoseSeats,
    "value-loss": DiagnoseValueLoss,
    "models": DiagnoseModels,
    "adaptation": DiagnoseAdaptation,
}
Chosen: Any = one_of(DIAGNOSES)


@dataclass(frozen=True)
class Diagnose:
    """Find out what is wrong with a run, a preset, a model or a game."""

    what: Chosen

    def run(self) -> int:
        return int(self.what.run())
