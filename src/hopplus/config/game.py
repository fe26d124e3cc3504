"""Settings that every game has, and a row of the table of games."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hopplus.config.check import ConfigError


@dataclass(frozen=True)
class GameConfig:
    """What the settings of every game have; each game's own class adds to it.

    `name` is by which the game is found in the table, so a run's `config.json` says what it plays.
    """

    name: str
    seats: int

    def favouring_last(self) -> "GameConfig":
        """Settings that favour the last seat, for diagnoses to be tried on."""
        raise ConfigError(f"{self.name} has no setting by which a seat could be favoured")

    def with_large_rewards(self) -> "GameConfig":
        """Settings with rewards ten times as large, for diagnoses to be tried on."""
        raise ConfigError(f"{self.name} has no settings that scale its rewards")


@dataclass(frozen=True)
class GameRow:
    """A game as the table has it."""

    config: type[GameConfig]
    make: str | Callable[[Any], Any]
    """Makes the `Game` of such settings: a function, or a name of one as in `my.module:MyGame` that
    is imported when the first such game is made."""
    about: str
    """The game in one line."""
