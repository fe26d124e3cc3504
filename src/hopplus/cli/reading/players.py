"""The options of commands that let players play."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from hopplus.api import seating


@dataclass(frozen=True)
class Playing(seating.Playing):
    """The same, as they are typed."""

    run_name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    players: Annotated[str | None, tyro.conf.arg(aliases=("--seats",))] = None
