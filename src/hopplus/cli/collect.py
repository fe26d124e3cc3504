"""`hopplus collect`: record play for the models to learn from."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_games, check_positive
from hopplus.cli.players import Playing
from hopplus.learning.collect import collect
from hopplus.runs.folder import check_free
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say


@dataclass(frozen=True)
class Collect(Playing):
    """Play whole episodes and write down what everyone saw, did and got."""

    out: Path | None = None
    """The folder to write; data/ and the time when not given."""
    episodes: int = 5000
    """Episodes to play."""
    games: int = 1024
    """Games side by side; changes the speed, never the result."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(episodes=self.episodes, games=self.games)
        check_games(self.games)
        config, _, company, _ = self.setup()
        out = self.out or Path("data") / time.strftime("%Y%m%d-%H%M%S")
        check_free(out, "take another --out, or remove it")
        try:
            with Progress("recording", self.episodes, "episodes", where=out) as progress:
                about = collect(
                    out,
                    config,
                    company,
                    self.episodes,
                    self.seed,
                    self.games,
                    progress.advance,
                )
        except KeyboardInterrupt:  # out here, where the bar is gone
            say("stopped; nothing was kept")
            return 130
        if self.json:
            print(json.dumps({"data": str(out), **about}, indent=2))
        else:
            print_summary(out, about)
        return 0


def print_summary(path: Path, about: dict[str, Any]) -> None:
    """What was recorded, for people."""
    table = Table(
        title=f"{path}: {about['episodes']:,} episodes, {about['steps']:,} steps",
        title_justify="left",
    )
    summary = about["summary"]
    table.add_column("")
    for name in summary:
        table.add_column(name, justify="right", overflow="fold")
    players = list(summary.values())
    table.add_row("times seated", *(f"{player['seated']:,}" for player in players))
    table.add_row("mean return", *(f"{player['mean_return']:.3f}" for player in players))
    for kind in players[0]["took"]:
        table.add_row(f"{kind}s taken", *(f"{player['took'][kind]:.3f}" for player in players))
    table.add_section()
    table.add_row("actions", *(f"{player['acted']:,}" for player in players))
    for action in players[0]["actions"]:
        table.add_row(action, *(f"{player['actions'][action]:.1%}" for player in players))
    Console().print(table)
