"""The rules of the games, and the table of games where users add their own."""

from functools import lru_cache

from hopplus.config import GAMES as GAMES
from hopplus.config import GameConfig, find_game
from hopplus.config import GameRow as GameRow
from hopplus.games.game import Game
from hopplus.registry import import_named


def register_game(name: str, row: GameRow) -> None:
    """Add a game of one's own to the table, for this process; `--game module:ATTRIBUTE` finds one
    anywhere without."""
    GAMES.add(name, row)


@lru_cache(maxsize=64)  # the same settings are asked for in many places, and boards take time
def make_game(config: GameConfig) -> Game:
    """The game that a configuration describes."""
    row = find_game(config.name)
    make = import_named(row.make, "game") if isinstance(row.make, str) else row.make
    game: Game = make(config)
    return game
