"""A game of one's own and a co-player for it: apples for all, and saplings that are better left.

An apple is worth 1 to whoever takes it. A sapling is worth 2, and costs everybody else 1.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from hopplus.config import BoardConfig
from hopplus.games import GameRow
from hopplus.games.game import Game
from hopplus.games.gathering import GatheringGame
from hopplus.players.player import Plain, Player
from hopplus.players.scripted import scripted
from hopplus.types import Act, View


@dataclass(frozen=True)
class OrchardConfig(BoardConfig):
    """An orchard."""

    name: str = "orchard:ROW"
    seats: int = 2
    """Players at the board."""
    apples: int = 3
    """Apples on the board."""
    saplings: int = 2
    """Saplings on the board."""
    horizon: int = 20
    """Steps of an episode."""

    @property
    def things(self) -> dict[str, int]:
        return {"apples": self.apples, "saplings": self.saplings}


@dataclass(frozen=True)
class Orchard(GatheringGame):
    returns = True  # somewhere else, whenever something was taken
    drawings: ClassVar = {"apple": "oval #c0392b 0 52 34 34 0"}

    def rewards(self, shares: jax.Array) -> jax.Array:
        apples, saplings = shares[:, 0], shares[:, 1]
        return apples + 2 * saplings - (saplings.sum() - saplings)


@dataclass(frozen=True)
class Patient(Plain):
    """Goes for apples in the first half of an episode, and for saplings in the second."""

    apples: Player
    saplings: Player
    name: str = "patient"

    def act(self, params: Any, memory: Any, view: View, key: jax.Array) -> tuple[Any, Act]:
        acts = [one.act((), (), view, key)[1] for one in (self.apples, self.saplings)]
        late = view.time >= 0.5
        return memory, jax.tree.map(lambda first, then: jnp.where(late, then, first), *acts)


def patient(game: Game) -> Patient:
    return Patient(scripted("apple", game), scripted("sapling", game))


ROW = GameRow(OrchardConfig, Orchard, "apples for all, and saplings that are better left")
