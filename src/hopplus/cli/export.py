"""`hopplus export`: one player of a run, as a file of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.config import ConfigError
from hopplus.learning.restore import run_players
from hopplus.learning.trained import named, write_player
from hopplus.runs.folder import open_run


@dataclass(frozen=True)
class Export:
    """Write one learned player of a run as a safetensors file that any seat can take."""

    run_folder: Annotated[Path, tyro.conf.Positional]
    """The run."""
    out: Path
    """The file to write, such as player.safetensors."""
    seat: int = 0
    """Whose player."""
    run_seed: int = 0
    """Which of the run's seeds, counted from 0."""

    def run(self) -> int:
        players = run_players(open_run(self.run_folder), self.run_seed)
        if self.seat not in players:
            raise ConfigError(f"--seat is {self.seat} but the learned players are {list(players)}")
        name = f"{self.run_folder.name}@{self.seat}"
        write_player(self.out, named(players[self.seat], name))
        print(f"{name} written to {self.out}")
        return 0
