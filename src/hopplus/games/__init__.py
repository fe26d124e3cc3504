"""The rules of the games."""

from hopplus.games.registry import GAMES, GameRow, make_game, register_game

__all__ = ["GAMES", "GameRow", "make_game", "register_game"]
