"""Co-players in Stag-Hunt whose mind is changed by what happened in the trial."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from hopplus.games.game import Game
from hopplus.games.stag_hunt import HUNT_HARE, HUNT_STAG
from hopplus.players.scripted.script import Decision, Scripted, towards
from hopplus.types import Memory, View


@dataclass(frozen=True)
class _Hunter(Scripted):
    """Hunts stags or hares, by what it remembers."""

    obstacles: int  # the plane that shows them; stags and hares come behind it

    @classmethod
    def made_for(cls, game: Game) -> "_Hunter":
        return cls(game.seats)

    @property
    def carries(self) -> bool:
        return True

    def hunt(self, view: View, stag: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[A] probabilities and [2] goal of hunting stags, or else hares."""
        here, walls, stags, hares = (
            view.planes[..., plane] > 0
            for plane in (0, self.obstacles, self.obstacles + 1, self.obstacles + 2)
        )
        for_stag, for_hare = (
            towards(view, here, things, walls, action)
            for things, action in ((stags, HUNT_STAG), (hares, HUNT_HARE))
        )
        return jnp.where(stag, for_stag, for_hare), jax.nn.one_hot(jnp.where(stag, 0, 1), 2)


@dataclass(frozen=True)
class Trusting(_Hunter):
    """Remembers whether it was let down."""

    name: ClassVar[str] = "trusting"
    about: ClassVar[str] = "hunts stags until it goes home with nothing once, then hares"

    def start(self) -> Memory:
        return jnp.bool_(False)

    def carry(self, memory: Memory, view: View) -> Memory:
        return memory | view.planes[..., 0].any()  # who has caught something is gone by now

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        return memory, *self.hunt(view, ~memory)


@dataclass(frozen=True)
class Wary(_Hunter):
    """Remembers whether it has seen a stag caught, and how many it saw last: -1 before it looks."""

    name: ClassVar[str] = "wary"
    about: ClassVar[str] = "hunts hares until it has seen a stag caught, then stags"

    def start(self) -> Memory:
        return jnp.bool_(False), jnp.int32(-1)

    def carry(self, memory: Memory, view: View) -> Memory:
        return self._watch(memory, view)  # nobody has hunted before the next episode's first step

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        memory = self._watch(memory, view)
        return memory, *self.hunt(view, memory[0])

    def _watch(self, memory: Memory, view: View) -> tuple[jax.Array, jax.Array]:
        seen, before = memory
        now = (view.planes[..., self.obstacles + 1] > 0).sum(dtype=jnp.int32)
        # Where sight is limited, stags also go out of sight, so somebody must have hunted one.
        hunted = (view.last_actions == HUNT_STAG).any()
        return seen | (hunted & (now < before)), now
