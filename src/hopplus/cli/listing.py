"""`hopplus list`: what there is."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import tyro

from hopplus.cli.paged import show
from hopplus.config import ABOUT_JAXMARL, GAMES, JAXMARL, GameConfig, default_game, find_game
from hopplus.presets import PRESETS, about_preset
from hopplus.report.page import Column, Page, Section, make_table


@dataclass(frozen=True)
class List:
    """List the games, the scripted players, the presets of `hopplus train`, or the trained players
    that come with hopplus."""

    what: Annotated[Literal["games", "players", "presets", "zoo"], tyro.conf.Positional]
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
            case "zoo":
                return self._zoo()
        table = Section("", rows=list(rows.items()))
        return show(Page(self.what, "", sections=[table], payload=rows), as_json=self.json)

    def _zoo(self) -> int:
        """Who is in the zoo, game by game, and what each gets."""
        from hopplus.runs.zoo import ZOO, zoo  # run folders need JAX, too

        known = {f"{ZOO}{name}": about for name, about in zoo().items()}
        columns: dict[str | Column, Any] = {
            "name": lambda one: one[0],
            # The table says which game it is.
            Column("who", words=True): lambda one: one[1]["about"].partition(": ")[2],
            "return": lambda one: f"{one[1]['return']:.2f}",
        }
        games: dict[str, list[tuple[str, Any]]] = {}
        for name, about in known.items():
            games.setdefault(about["about"].partition(": ")[0], []).append((name, about))
        tables = [make_table(title, columns, items) for title, items in games.items()]
        hints = [
            "returns are those of the last tenth of training; to play: hopplus play zoo:NAME",
            "the command that made each: hopplus list zoo --json",
        ]
        page = Page("zoo", "", sections=tables, payload=known, hints=hints)
        return show(page, as_json=self.json)
