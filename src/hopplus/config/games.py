"""The table of games by name.

It stands here and not in `hopplus.games`, because settings are read from JSON and from the command
line by it, without the rules.
"""

from typing import Any

from hopplus.config.board_games import CoinConfig, SnowdriftConfig, StagHuntConfig
from hopplus.config.check import ConfigError
from hopplus.config.game import GameConfig, GameRow
from hopplus.registry import Registry, import_named

DEFAULT_GAME = "stag-hunt-v1"
JAXMARL = "jaxmarl:"  # before the name of an environment of that package
ABOUT_JAXMARL = (
    "an environment of JaxMARL, as in jaxmarl:coin_game; or module:factory of one with its methods"
)
GAMES: Registry[GameRow] = Registry(
    "game",
    {
        DEFAULT_GAME: GameRow(
            StagHuntConfig,
            "hopplus.games.stag_hunt:StagHunt",
            "Markov Stag-Hunt: a hare alone is worth 1, a stag shared by two is worth 10",
        ),
        "snowdrift-v1": GameRow(
            SnowdriftConfig,
            "hopplus.games.snowdrift:Snowdrift",
            "Markov Snowdrift: a drift that anyone clears is worth 6 to all and costs that one 4",
        ),
        "coin-v1": GameRow(
            CoinConfig,
            "hopplus.games.coin:CoinGame",
            "the coin game: any coin is worth 1, and costs its owner 2 if another takes it",
        ),
    },
    group="hopplus.games",
)


def find_game(name: str) -> GameRow:
    """The row of a game by its name, or by `module:attribute` of one's own, which may also be what
    makes an environment with JaxMARL's methods."""
    row: Any = None if name.startswith(JAXMARL) else GAMES[name]
    if row is None or (callable(row) and not isinstance(row, GameRow)):
        row = import_named("hopplus.games.jaxmarl:ROW", "game")
    if not isinstance(row, GameRow):
        raise ConfigError(f"{name} is no GameRow: see docs/extending.md")
    return row


def make_config(name: str, **settings: Any) -> GameConfig:
    """The settings of the game of that name, defaults where nothing is given."""
    return find_game(name).config(name=name, **settings)


def default_game(**settings: Any) -> GameConfig:
    """The settings of the game that is played when none is named."""
    return make_config(DEFAULT_GAME, **settings)
