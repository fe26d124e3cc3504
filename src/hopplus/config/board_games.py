"""Settings of the games that are played on a board; numbers in brackets are those of the rules in
docs/rules.md."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Literal

from hopplus.config.check import LARGE, Between, ConfigError, Weight, check, check_fields
from hopplus.config.game import GameConfig


@dataclass(frozen=True)
class BoardConfig(GameConfig):
    """A board, with obstacles or without, and pieces on it."""

    name: str = ""
    """The game and the version of its rules."""
    size: Annotated[int, Between(1, 32)] = 4
    """Cells along a side of the board, where height or width is not given."""
    height: Annotated[int | None, Between(1, 32)] = None
    """Rows of the board."""
    width: Annotated[int | None, Between(1, 32)] = None
    """Columns of the board."""
    seats: Annotated[int, Between(2, 8)] = 4
    """Players at the board, 2 to 8."""
    obstacles: Annotated[int, Between(0, 4096)] = 0
    """Obstacle pieces of three or four cells, straight or bent [2]."""
    boards: Annotated[int, Between(1, 65536)] = 256
    """Boards with obstacles in the bank that episodes draw from [2]."""
    board_seed: Annotated[int, Between(0, 2**32 - 1)] = 0
    """Seed of that bank."""
    horizon: Annotated[int, Between(1, 10_000)] = 35
    """Steps of an episode at most [9]."""

    def __post_init__(self) -> None:
        check_fields(self, "game.")
        cells = self.rows * self.columns
        need = self.pieces + 3 * self.obstacles
        if need > cells:
            things = ", ".join(f"{count} {name}" for name, count in self.things.items())
            raise ConfigError(
                f"a board of {self.rows}x{self.columns} has {cells} cells but"
                f" {self.seats} seats, {things} and"
                f" {self.obstacles} obstacle pieces need at least {need}"
            )

    @property
    def things(self) -> dict[str, int]:
        """How many of what stands on the board besides the seats."""
        raise NotImplementedError

    @property
    def pieces(self) -> int:
        """Seats and things, which begin on cells of their own."""
        return self.seats + sum(self.things.values())

    @property
    def rows(self) -> int:
        return self.size if self.height is None else self.height

    @property
    def columns(self) -> int:
        return self.size if self.width is None else self.width


@dataclass(frozen=True)
class StagHuntConfig(BoardConfig):
    """Markov Stag-Hunt."""

    name: Literal["stag-hunt-v1"] = "stag-hunt-v1"
    """The game and the version of its rules."""
    stags: Annotated[int, Between(0, 4096)] = 1
    """Stags on the board."""
    hares: Annotated[int, Between(0, 4096)] = 4
    """Hares on the board."""
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
    grace: Annotated[int | None, Between(0, 10_000)] = None
    """Steps after the first catch at which the episode ends; never when not given [9]."""
    sight: Annotated[int | None, Between(0, 10_000)] = None
    """Cells a player sees in each direction; everything when not given [10]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.stags + self.hares >= 1, "game.stags + --game.hares", 0, "at least 1")
        allowed = f"from 1 to --game.seats, which is {self.seats}"
        held = 1 <= self.stag_hunters <= self.seats
        check(held, "game.stag_hunters", self.stag_hunters, allowed)
        self._check_strength()

    @property
    def things(self) -> dict[str, int]:
        return {"stags": self.stags, "hares": self.hares}

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

    @property
    def weights(self) -> tuple[int, ...]:
        """Strengths as whole numbers in the same proportions, so that sums of them are exact."""
        ratios = [Fraction(str(s)) for s in self.strength] or [Fraction(1)] * self.seats
        scale = math.lcm(*(r.denominator for r in ratios))
        whole = [int(r * scale) for r in ratios]
        return tuple(w // math.gcd(*whole) for w in whole)


@dataclass(frozen=True)
class SnowdriftConfig(BoardConfig):
    """Markov Snowdrift."""

    name: Literal["snowdrift-v1"] = "snowdrift-v1"
    """The game and the version of its rules."""
    size: Annotated[int, Between(1, 32)] = 8
    """Cells along a side of the board, where height or width is not given."""
    drifts: Annotated[int, Between(1, 4096)] = 6
    """Snowdrifts on the board."""
    reward: Weight = 6.0
    """What a cleared drift is worth to everybody [7]."""
    cost: Weight = 4.0
    """What clearing a drift costs its clearers together [7]."""
    horizon: Annotated[int, Between(1, 10_000)] = 50
    """Steps of an episode at most [9]."""

    @property
    def things(self) -> dict[str, int]:
        return {"drifts": self.drifts}

    def with_large_rewards(self) -> "SnowdriftConfig":
        return replace(self, reward=10 * self.reward, cost=10 * self.cost)


@dataclass(frozen=True)
class CoinConfig(BoardConfig):
    """The coin game."""

    name: Literal["coin-v1"] = "coin-v1"
    """The game and the version of its rules."""
    size: Annotated[int, Between(1, 32)] = 5
    """Cells along a side of the board, where height or width is not given."""
    seats: Annotated[int, Between(2, 4)] = 2
    """Players at the board, 2 to 4."""
    coins: Annotated[int, Between(1, 4096)] = 2
    """Coins on the board at any time."""
    reward: Weight = 1.0
    """What a coin is worth to its takers together [7]."""
    harm: Weight = 2.0
    """What it costs the owner of a coin that others take it [7]."""
    horizon: Annotated[int, Between(1, 10_000)] = 40
    """Steps of an episode [9]."""

    @property
    def things(self) -> dict[str, int]:
        return {"coins": self.coins}

    def with_large_rewards(self) -> "CoinConfig":
        return replace(self, reward=10 * self.reward, harm=10 * self.harm)
