"""Someone of several: a seat whose player changes from episode to episode."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hopplus.players.choice import alike
from hopplus.players.player import Player
from hopplus.types import Act, Memory, Params, View


class MixtureMemory(NamedTuple):
    """Who sits here, and what each would remember."""

    choice: jax.Array  # [] int32 number of the player; -1 not drawn yet
    memories: tuple[Memory, ...]
    episodes: jax.Array  # [] int32, of the trial, that are over


@dataclass(frozen=True)
class Mixture:
    """Draws one of several players, all alike, at an episode's first step and stays with it, for as
    many episodes as a trial has."""

    players: tuple[Player, ...]
    shares_params: bool = False
    trial: int = 1

    @property
    def name(self) -> str:
        return "|".join(player.name for player in self.players)

    def numbers(self, names: Sequence[str]) -> list[int]:
        """Which of the players those are."""
        called = [player.name for player in self.players]
        return [called.index(name) for name in names]

    def init(self, key: jax.Array) -> Params:
        keys = jax.random.split(key, len(self.players))
        return tuple(p.init(key) for p, key in zip(self.players, keys, strict=True))

    def start(self) -> Memory:
        return self.seated(jnp.int32(-1))

    def seated(self, choice: jax.Array) -> MixtureMemory:
        """The memory before an episode in which a certain one of the players sits here."""
        memories = tuple(player.start() for player in self.players)
        return MixtureMemory(choice, memories, jnp.int32(0))

    @property
    def keeps(self) -> bool:
        return self.trial > 1

    def again(self, memory: Memory, view: View) -> Memory:
        """The next episode of a trial is played by the same one, who begins it anew."""
        number = memory.episodes + 1
        over = number >= self.trial
        fresh = self.seated(jnp.where(over, -1, memory.choice))
        return fresh._replace(episodes=jnp.where(over, 0, number))

    def chosen(self, memory: MixtureMemory, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Who sits here, drawn if need be with the key of an act; and the key it acts with."""
        key_choice, key_act = jax.random.split(key)
        drawn = jax.random.randint(key_choice, (), 0, len(self.players), jnp.int32)
        return jnp.where(memory.choice < 0, drawn, memory.choice), key_act

    def drawn(self, memory: MixtureMemory, key: jax.Array) -> MixtureMemory:
        """The memory with who sits here drawn, if need be with the key of the act that follows."""
        return memory._replace(choice=self.chosen(memory, key)[0])

    def act(self, params: Params, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        choice, key_act = self.chosen(memory, key)
        memories, acts = zip(
            *(
                player.act(own, kept, view, key_act)
                for player, own, kept in zip(self.players, params, memory.memories, strict=True)
            ),
            strict=True,
        )
        act: Act = jax.tree.map(lambda *leaves: jnp.stack(leaves)[choice], *alike(acts))
        return MixtureMemory(choice, memories, memory.episodes), act
