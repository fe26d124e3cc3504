"""`hopplus export`: one player of a run, as a file of its own."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.cli.paged import show
from hopplus.config import ConfigError, check_range
from hopplus.learning.from_run import find_trained
from hopplus.play.names import full_name, read_run_name
from hopplus.play.trained import named, write_player
from hopplus.report.page import Page
from hopplus.runs.folder import check_free


@dataclass(frozen=True)
class Export:
    """Write one trained player of a run to a safetensors file that any seat can load."""

    run_name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run and whose player: runs/a@2 for that of seat 2, runs/a#1@2 for that of seed 1; without
    a seed it is the first."""
    out: Path
    """The file to write, such as player.safetensors."""
    seat: int | None = None
    """The seat, if it does not stand behind the run; 0 when it stands nowhere."""
    json: bool = False
    """Print JSON instead of a line."""

    def run(self) -> int:
        said = read_run_name(self.run_name)
        if self.seat is not None:
            check_range("--seat", self.seat, 0, said.open().config().game.seats - 1)
        if None not in (self.seat, said.seat):
            raise ConfigError(f"{self.run_name} names a seat already: leave --seat out")
        seat = next((one for one in (self.seat, said.seat) if one is not None), 0)
        whole = full_name(str(replace(said, seat=seat)), seat)
        player = find_trained(whole)
        check_free(self.out)
        name = Path(whole).name
        write_player(self.out, named(player, name))
        page = Page("hopplus export", f"{name} written to {self.out}")
        return show(page, as_json=self.json, player=name, file=str(self.out))
