"""`hopplus collect`: record play for the models to learn from."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.cli.reading.players import Playing
from hopplus.games.game import check_board
from hopplus.recorded.collect import collect
from hopplus.report.numbers import counted, said
from hopplus.report.page import Page, Section
from hopplus.runs.folder import check_free
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say


@dataclass(frozen=True)
class Collect(Playing):
    """Record episodes: observations, actions and rewards of every seat."""

    out: Path | None = None
    """The folder to write; data/ and the time when not given."""
    episodes: int = 5000
    """Episodes to play."""
    games: int = 1024
    """Games side by side; changes the speed, never the result."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(episodes=self.episodes, games=self.games)
        config, game, lineup, _ = self.setup()
        check_board(game, "recorded play")  # what is seen is kept in bits
        out = self.out or Path("data") / time.strftime("%Y%m%d-%H%M%S")
        check_free(out, "take another --out, or remove it")
        try:
            with Progress("recording", self.episodes, "episodes", where=out) as progress:
                about = collect(
                    out, config, lineup, self.episodes, self.seed, self.games, progress.advance
                )
        except KeyboardInterrupt:  # out here, where the bar is gone
            say("stopped; nothing was kept")
            return 130
        return show(recorded_page(out, about), as_json=self.json, data=str(out))


def recorded_page(path: Path, about: dict[str, Any]) -> Page:
    """What was recorded: a column for each player."""
    players = list(about["summary"].values())

    def row(name: str, values: Iterable[Any], digits: str = ".3f") -> list[str]:
        return [name, *(said(value, digits) for value in values)]

    rows = [
        row("times seated", (player["seated"] for player in players)),
        row("mean return", (player["mean_return"] for player in players)),
    ]
    rows += [
        row(f"{kind}s taken", (player["took"][kind] for player in players))
        for kind in players[0]["took"]
    ]
    actions = [row("actions", (player["acted"] for player in players))]
    actions += [
        row(action, (player["actions"][action] for player in players), ".1%")
        for action in players[0]["actions"]
    ]
    title = f"{path}: {counted(about['episodes'], 'episode')}, {counted(about['steps'], 'step')}"
    table = Section(
        title, header=["", *about["summary"]], rows=[*rows, *actions], apart=len(actions)
    )
    return Page(title, "", sections=[table], payload=about)
