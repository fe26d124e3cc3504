"""`hopplus pretrain`: fit a model to recorded play."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.config import PretrainConfig, PretrainGoal, PretrainOpponent, PretrainWorld
from hopplus.learning.pretrain import new_pretrain, pretrain
from hopplus.runs.folder import RunFolder

Part = (
    Annotated[PretrainGoal, tyro.conf.subcommand("goal")]
    | Annotated[PretrainOpponent, tyro.conf.subcommand("opponent")]
    | Annotated[PretrainWorld, tyro.conf.subcommand("world")]
)


@dataclass(frozen=True)
class Pretrain:
    """Fit a model to recorded play and keep everything about it in a run folder."""

    config: Annotated[Part, tyro.conf.arg(name="")]
    name: str | None = None
    """Name of the run; the part and the time when not given."""
    runs: Path = Path("runs")
    """The folder that holds the runs."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        config: PretrainConfig = self.config
        stamp = time.strftime("%Y%m%d-%H%M%S")
        run = new_pretrain(self.runs / (self.name or f"{config.kind}-{stamp}"), config)
        return carry_on_pretrain(run, self.json)


def carry_on_pretrain(run: RunFolder, as_json: bool) -> int:
    """Fit to the end, with progress; Ctrl-C leaves a run that can be resumed."""
    result = pretrain(run)
    print(json.dumps(result, indent=2))
    return 0
