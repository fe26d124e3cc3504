"""`hopplus diagnose`: what is wrong?"""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopplus.cli.diagnose.adaptation import DiagnoseAdaptation
from hopplus.cli.diagnose.models import DiagnoseModels
from hopplus.cli.diagnose.seats import DiagnoseSeats
from hopplus.cli.diagnose.value_loss import DiagnoseValueLoss


@dataclass(frozen=True)
class Diagnose:
    """Find out what is wrong with a run, a preset, a model or a game."""

    what: (
        Annotated[DiagnoseSeats, tyro.conf.subcommand("seats")]
        | Annotated[DiagnoseValueLoss, tyro.conf.subcommand("value-loss")]
        | Annotated[DiagnoseModels, tyro.conf.subcommand("models")]
        | Annotated[DiagnoseAdaptation, tyro.conf.subcommand("adaptation")]
    )

    def run(self) -> int:
        return self.what.run()
