"""Co-players in Snowdrift, by how much they leave to the others."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from hopplus.games.game import Game
from hopplus.games.snowdrift import CLEAR
from hopplus.players.scripted.script import Decision, Scripted, staying, towards
from hopplus.types import Memory, View


@dataclass(frozen=True)
class Clear(Scripted):
    """Goes to the nearest drift and clears it, if it is `willing`."""

    name: ClassVar[str] = "clear"
    about: ClassVar[str] = "goes to the nearest drift and clears it"

    obstacles: int  # the plane that shows them; drifts come behind it

    @classmethod
    def made_for(cls, game: Game) -> "Clear":
        return cls(game.seats)

    def willing(self, memory: Memory, view: View) -> jax.Array:
        """[] bool."""
        return jnp.bool_(True)

    def remember(self, memory: Memory, view: View) -> Memory:
        return memory

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        memory = self.remember(memory, view)
        here, walls, drifts = (
            view.planes[..., plane] > 0 for plane in (0, self.obstacles, self.obstacles + 1)
        )
        willing = self.willing(memory, view)
        act = jnp.where(willing, towards(view, here, drifts, walls, CLEAR), staying(view))
        return memory, act, willing[None].astype(jnp.float32)


@dataclass(frozen=True)
class Idle(Clear):
    """Leaves it to the others."""

    name: ClassVar[str] = "idle"
    about: ClassVar[str] = "stays where it is"

    def willing(self, memory: Memory, view: View) -> jax.Array:
        return jnp.bool_(False)


@dataclass(frozen=True)
class Late(Clear):
    """Waits whether the others do it."""

    name: ClassVar[str] = "late"
    about: ClassVar[str] = "clears drifts, but not in the first half of an episode"

    def willing(self, memory: Memory, view: View) -> jax.Array:
        return view.time >= 0.5


@dataclass(frozen=True)
class Reciprocal(Clear):
    """Counts over the trial how often it has cleared a drift, and how often the others have."""

    name: ClassVar[str] = "reciprocal"
    about: ClassVar[str] = "clears as many drifts as the others have in the trial, and one more"

    @property
    def carries(self) -> bool:
        return True

    def start(self) -> Memory:
        return jnp.zeros(2, jnp.int32)

    def carry(self, memory: Memory, view: View) -> Memory:
        return self.remember(memory, view)  # the last acts, which nobody acts after

    def remember(self, memory: Memory, view: View) -> Memory:
        cleared = view.last_actions == CLEAR  # as played, so it was there to be cleared
        return memory + jnp.stack([cleared[0], cleared[1:].sum()]).astype(jnp.int32)

    def willing(self, memory: Memory, view: View) -> jax.Array:
        return memory[0] <= memory[1]
