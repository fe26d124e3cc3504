"""Settings of the games, and the table of games by name.

The table stands here and not in `hopplus.games`, because settings are read from JSON and from the
command line by it, without the rules.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from hopplus.config.check import LARGE, Between, ConfigError, Weight, check, check_fields
from hopplus.registry import Registry


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


@dataclass(frozen=True)
class StagHuntConfig(GameConfig):
    """Markov Stag-Hunt; the numbers in brackets are those of the rules in docs/rules.md."""

    name: Literal["stag-hunt-v1"] = "stag-hunt-v1"
    """The game and the version of its rules."""
    size: Annotated[int, Between(1, 32)] = 4
    """Cells along a side of the board, where height or width is not given."""
    height: Annotated[int | None, Between(1, 32)] = None
    """Rows of the board."""
    width: Annotated[int | None, Between(1, 32)] = None
    """Columns of the board."""
    seats: Annotated[int, Between(2, 8)] = 4
    """Players at the board, 2 to 8."""
    stags: Annotated[int, Between(0, 4096)] = 1
    """Stags on the board."""
    hares: Annotated[int, Between(0, 4096)] = 4
    """Hares on the board."""
    obstacles: Annotated[int, Between(0, 4096)] = 0
    """Obstacle pieces of three or four cells, straight or bent [2]."""
    boards: Annotated[int, Between(1, 65536)] = 256
    """Boards with obstacles in the bank that episodes draw from [2]."""
    board_seed: Annotated[int, Between(0, 2**32 - 1)] = 0
    """Seed of that bank."""
    stag_hunters: int = 2
    """Players it takes to catch a stag [6]."""
    stag_reward: Weight = 10.0
    """What a stag is worth [7]."""
    hare_reward: Weight = 1.0
    """What a hare is worth [7]."""
    time_reward: Annotated[float, Between(-LARGE, LARGE)] = 0.0
    """What every present player gets each step [7]."""
    strength: tuple[float, ...] = field(default_factory=tuple)
    """Share of each seat in a catch, one number per seat; equal when not given [7]."""
    horizon: Annotated[int, Between(1, 10_000)] = 35
    """Steps of an episode at most [9]."""
    grace: Annotated[int | None, Between(0, 10_000)] = None
    """Steps after the first catch at which the episode ends; never when not given [9]."""
    sight: Annotated[int | None, Between(0, 10_000)] = None
    """Cells a player sees in each direction; everything when not given [10]."""

    def __post_init__(self) -> None:
        check_fields(self, "game.")
        check(self.stags + self.hares >= 1, "game.stags + --game.hares", 0, "at least 1")
        allowed = f"from 1 to --game.seats, which is {self.seats}"
        held = 1 <= self.stag_hunters <= self.seats
        check(held, "game.stag_hunters", self.stag_hunters, allowed)
        self._check_strength()
        self._check_room()

    def favouring_last(self) -> "StagHuntConfig":
        return replace(self, strength=(1.0,) * (self.seats - 1) + (2.0,))

    def with_large_rewards(self) -> "StagHuntConfig":
        rewards = {
            name: 10 * getattr(self, name) for name in ("stag_reward", "hare_reward", "time_reward")
        }
        return replace(self, **rewards)

    def _check_strength(self) -> None:
        one_each = f"empty or one number for each of the {self.seats} seats"
        check(len(self.strength) in (0, self.seats), "game.strength", self.strength, one_each)
        positive = all(math.isfinite(s) and s > 0 for s in self.strength)
        check(positive, "game.strength", self.strength, "above 0 for every seat")
        small = "in proportions of small whole numbers, such as 1 1 1 2.5"
        check(sum(self.weights) <= 4096, "game.strength", self.strength, small)

    def _check_room(self) -> None:
        pieces = self.seats + self.stags + self.hares
        cells = self.rows * self.columns
        need = pieces + 3 * self.obstacles
        if need > cells:
            raise ConfigError(
                f"a board of {self.rows}x{self.columns} has {cells} cells but"
                f" {self.seats} seats, {self.stags} stags, {self.hares} hares and"
                f" {self.obstacles} obstacle pieces need at least {need}"
            )

    @property
    def rows(self) -> int:
        return self.size if self.height is None else self.height

    @property
    def columns(self) -> int:
        return self.size if self.width is None else self.width

    @property
    def weights(self) -> tuple[int, ...]:
        """Strengths as whole numbers in the same proportions, so that sums of them are exact."""
        ratios = [Fraction(str(s)) for s in self.strength] or [Fraction(1)] * self.seats
        scale = math.lcm(*(r.denominator for r in ratios))
        whole = [int(r * scale) for r in ratios]
        return tuple(w // math.gcd(*whole) for w in whole)


DEFAULT_GAME = "stag-hunt-v1"
GAMES: Registry[GameRow] = Registry(
    "game",
    {
        DEFAULT_GAME: GameRow(
            StagHuntConfig,
            "hopplus.games.stag_hunt:StagHunt",
            "Markov Stag-Hunt: a hare alone is worth 1, a stag shared by two is worth 10",
        )
    },
)


def find_game(name: str) -> GameRow:
    """The row of a game by its name, or by `module:attribute` of one's own."""
    row = GAMES[name]
    if not isinstance(row, GameRow):
        raise ConfigError(f"{name} is no GameRow: see docs/extending.md")
    return row


def make_config(name: str, **settings: Any) -> GameConfig:
    """The settings of the game of that name, defaults where nothing is given."""
    return find_game(name).config(name=name, **settings)


def default_game(**settings: Any) -> GameConfig:
    """The settings of the game that is played when none is named."""
    return make_config(DEFAULT_GAME, **settings)
