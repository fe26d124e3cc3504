"""`hopplus crossplay`: how do players of different runs get on with each other?"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.api.studies import crossplay
from hopplus.cli.paged import asked, show
from hopplus.config import GameConfig, SearchConfig, default_game
from hopplus.report.figures.evaluation import draw_crossplay
from hopplus.report.figures.palette import try_figure
from hopplus.report.json import page_json
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import check_free, clear_errors


@dataclass(frozen=True)
class CrossPlay:
    """Seat one player of each run among the players of every other, in every seat in turn."""

    members: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Two or more: runs (runs/a#1 for the players of seed 1, of the first without; runs/a#1@2 for
    the one of seat 2 in every seat), exported players, or scripted ones (stag, hare, random)."""
    episodes: int = 1000
    """Episodes for each seat of each pair."""
    game: GameConfig = field(default_factory=default_game)
    search: SearchConfig = field(default_factory=SearchConfig)
    seed: int = 0
    """Seed of everything random."""
    out: Path | None = None
    """Folder for the page, the picture and the figures; crossplay/ and the time when not given."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        out = self.out or Path("crossplay") / time.strftime("%Y%m%d-%H%M%S")
        check_free(out)
        found = crossplay(*self.members, **asked(self, "members", "out"))
        with clear_errors(f"write in {out}"):
            out.mkdir(parents=True, exist_ok=True)
            write_durably(out / "crossplay.json", page_json(found.page).encode())
        try_figure(out / "crossplay.png", lambda: draw_crossplay(found.record))
        return show(
            found.page,
            as_json=self.json,
            html=out / "crossplay.html",
            hints=[f"the picture and all figures are in {out}"],
            out=str(out),
        )
