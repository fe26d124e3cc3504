"""Co-players in the coin game, by whose coins they take and what they remember."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.game import Game
from hopplus.players.scripted.script import Decision, Scripted, towards
from hopplus.types import Memory, View, ViewShape


class Account(eqx.Module):
    """What is remembered for a trial."""

    wrongs: jax.Array  # [] int32, coins that others have taken of one's own
    repaid: jax.Array  # [] int32, coins of others that one has taken since
    coins: jax.Array  # [H, W, 2] bool, where own and others' coins were; none before an episode


@dataclass(frozen=True)
class Collector(Scripted):
    """Takes coins of its own, and walks around those of others; any coin while it `defects`."""

    shape: ViewShape
    seats: int

    @classmethod
    def made_for(cls, game: Game) -> "Collector":
        return cls(game.shape, game.seats)

    def defects(self, memory: Memory) -> jax.Array:
        """[] bool."""
        raise NotImplementedError

    def remember(self, memory: Memory, view: View) -> Memory:
        return memory

    def coins(self, view: View) -> jax.Array:
        """[H, W, 2] bool, own and others'."""
        kinds = view.planes[..., self.seats + 1 :] > 0
        return jnp.stack([kinds[..., 0], kinds[..., 1:].any(axis=-1)], axis=-1)

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        memory = self.remember(memory, view)
        here, walls = (view.planes[..., plane] > 0 for plane in (0, self.seats))
        own, others = jnp.moveaxis(self.coins(view), -1, 0)
        defects = self.defects(memory)
        things = own | (others & defects)
        act = towards(view, here, things, walls | (others & ~defects), None)
        return memory, act, jnp.where(defects, 0.0, jax.nn.one_hot(0, self.seats))


@dataclass(frozen=True)
class Cooperator(Collector):
    """Never takes what is another's."""

    name: ClassVar[str] = "cooperator"
    about: ClassVar[str] = "takes its own coins and walks around those of others"

    def defects(self, memory: Memory) -> jax.Array:
        return jnp.bool_(False)


@dataclass(frozen=True)
class Defector(Collector):
    """Takes whatever is nearest."""

    name: ClassVar[str] = "defector"
    about: ClassVar[str] = "takes the nearest coin, whoever owns it"

    def defects(self, memory: Memory) -> jax.Array:
        return jnp.bool_(True)


@dataclass(frozen=True)
class TitForTat(Collector):
    """Pays back coin for coin, with whom it is: it does not tell the others apart."""

    name: ClassVar[str] = "tit-for-tat"
    about: ClassVar[str] = "takes its own coins, and any until it has paid back those taken of it"

    @property
    def carries(self) -> bool:
        return True

    def start(self) -> Account:
        nothing = jnp.zeros((*self.shape[:2], 2), bool)
        return Account(jnp.int32(0), jnp.int32(0), nothing)

    def carry(self, memory: Account, view: View) -> Account:
        # The last acts, which nobody acts after; then another board.
        after = self.remember(memory, view)
        return Account(after.wrongs, after.repaid, jnp.zeros_like(after.coins))

    def remember(self, memory: Account, view: View) -> Account:
        seats = view.planes[..., : self.seats] > 0
        me, others = seats[..., 0], seats[..., 1:].any(axis=-1)
        # No coin comes back where somebody stands, so who stands where one was has taken it.
        wrongs = memory.wrongs + (memory.coins[..., 0] & others).sum(dtype=jnp.int32)
        took = (memory.coins[..., 1] & me).sum(dtype=jnp.int32)
        repaid = jnp.minimum(memory.repaid + took, wrongs)
        return Account(wrongs, repaid, self.coins(view))

    def defects(self, memory: Account) -> jax.Array:
        return memory.wrongs > memory.repaid


@dataclass(frozen=True)
class Grudger(TitForTat):
    """Is wronged once and for all."""

    name: ClassVar[str] = "grudger"
    about: ClassVar[str] = "takes its own coins until one is taken of it, then any for the trial"

    def defects(self, memory: Account) -> jax.Array:
        return memory.wrongs > 0
