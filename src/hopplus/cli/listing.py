"""`hopplus list`: what there is."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from hopplus.cli.paged import show
from hopplus.config import ABOUT_JAXMARL, GAMES, JAXMARL, GameConfig, default_game, find_game
from hopplus.presets import PRESETS, about_preset
from hopplus.report.page import Page, Section


@dataclass(frozen=True)
class List:
    """List the games, the scripted players, or the presets of `hopplus train`."""

    what: Annotated[Literal["games", "players", "presets"], tyro.conf.Positional]
    """What to list."""
    game: GameConfig = field(default_factory=default_game)
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        match self.what:
            case "games":
                rows = {name: find_game(name).about for name in GAMES.listed()}
                rows[f"{JAXMARL}NAME"] = ABOUT_JAXMARL
            case "players":
                from hopplus.games import make_game  # games and players need JAX, their names not
                from hopplus.players.scripted import player_names

                rows = player_names(make_game(self.game))
            case "presets":
                rows = {name: about_preset(name) for name in PRESETS.listed()}
        table = Section("", rows=list(rows.items()))
        return show(Page(self.what, "", sections=[table], payload=rows), as_json=self.json)
