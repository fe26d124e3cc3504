"""Someone of several: a seat whose player changes from episode to episode."""

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


@dataclass(frozen=True)
class Mixture:
    """Draws one of several players, all alike, at an episode's first step and stays with it."""

    players: tuple[Player, ...]
    shares_params: bool = False

    @property
    def name(self) -> str:
        return "|".join(player.name for player in self.players)

    def init(self, key: jax.Array) -> Params:
        keys = jax.random.split(key, len(self.players))
        return tuple(p.init(key) for p, key in zip(self.players, keys, strict=True))

    def start(self) -> Memory:
        return self.seated(jnp.int32(-1))

    def seated(self, choice: jax.Array) -> Memory:
        """The memory before an episode in which a certain one of the players sits here."""
        return MixtureMemory(choice, tuple(player.start() for player in self.players))

    def act(self, params: Params, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        key_choice, key_act = jax.random.split(key)
        drawn = jax.random.randint(key_choice, (), 0, len(self.players), jnp.int32)
        choice = jnp.where(memory.choice < 0, drawn, memory.choice)
        memories, acts = zip(
            *(
                player.act(own, kept, view, key_act)
                for player, own, kept in zip(self.players, params, memory.memories, strict=True)
            ),
            strict=True,
        )
        act: Act = jax.tree.map(lambda *leaves: jnp.stack(leaves)[choice], *alike(acts))
        return MixtureMemory(choice, memories), act
