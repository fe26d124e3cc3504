"""The rules of the games."""

from hopplus.config import GameConfig
from hopplus.games.game import Game
from hopplus.games.stag_hunt import StagHunt


def make_game(config: GameConfig) -> Game:
    """The game that a configuration describes."""
    return StagHunt(config)
