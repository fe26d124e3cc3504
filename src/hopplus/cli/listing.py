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
        """What each of the zoo gets, by preset and game: rows for all would fill three screens."""
        from hopplus.runs.zoo import ZOO, zoo  # run folders need JAX, too

        returns = {(one["preset"], one["game"]): f"{one['return']:.2f}" for one in zoo().values()}
        columns: dict[str | Column, Any] = {"preset": lambda preset: preset}
        for game in dict.fromkeys(game for _, game in returns):
            # Narrow, so that presets' names stay whole at 60 columns.
            header = game.replace("-", "-\n")
            columns[header] = lambda preset, game=game: returns.get((preset, game), "-")
        presets = dict.fromkeys(preset for preset, _ in returns)
        table = make_table("Trained players that come with hopplus: returns", columns, presets)
        preset, game = list(returns)[-1]
        hints = [
            f"to play: hopplus play {ZOO}GAME-PRESET, such as {ZOO}{game}-{preset}",
            "what they are: hopplus list presets; how each was made: hopplus list zoo --json",
            "returns are those of the last tenth of training",
        ]
        known = {f"{ZOO}{name}": about for name, about in zoo().items()}
        page = Page("zoo", "", sections=[table], payload=known, hints=hints)
        return show(page, as_json=self.json)
