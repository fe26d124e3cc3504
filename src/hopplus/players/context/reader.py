"""What contexts share that learn nothing themselves: they know the game, and may read models of the
others."""

from dataclasses import dataclass
from functools import cached_property

from hopplus.config import GameConfig
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.players.context.context import Context
from hopplus.players.parameters import PlayerParams
from hopplus.types import Params


@dataclass(frozen=True)
class GameReader(Context):
    """Made from the settings of its game: whether it was made again makes no difference then."""

    game: GameConfig

    @cached_property
    def _game(self) -> Game:
        return make_game(self.game)

    @property
    def others(self) -> int:
        return self._game.seats - 1


@dataclass(frozen=True)
class ModelReader(GameReader):
    """Reads the player's models of the others."""

    def params_of(self, learned: PlayerParams) -> Params:
        return learned.opponents
