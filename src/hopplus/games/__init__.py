"""The rules of the games."""

from collections.abc import Mapping
from types import MappingProxyType

from hopplus.config import GameConfig, StagHuntConfig
from hopplus.games.game import Game
from hopplus.games.stag_hunt import StagHunt

GAMES: Mapping[str, str] = MappingProxyType(
    {"stag-hunt-v1": "Markov Stag-Hunt: a hare alone is worth 1, a stag shared by two is worth 10"}
)


def make_game(config: GameConfig) -> Game:
    """The game that a configuration describes."""
    match config:
        case StagHuntConfig():
            return StagHunt(config)
