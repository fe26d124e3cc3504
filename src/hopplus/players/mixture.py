"""Someone of several: a seat whose player changes from trial to trial."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.players.player import Listener, Player, alike
from hopplus.players.scripted.family import Family, Together
from hopplus.types import Act, Memory, Params, View


@dataclass(frozen=True)
class Mixture:
    """Several players, all alike likely, of whom the play says which sits there.

    Parameters and memories are tuples, of every one: who does not sit there goes on too, unseen,
    as programs cannot branch by game.
    """

    players: tuple[Player, ...]
    shares_params: bool = False

    @property
    def name(self) -> str:
        return "|".join(player.name for player in self.players)

    def numbers(self, names: Sequence[str]) -> list[int]:
        """Which of the players those are."""
        called = [player.name for player in self.players]
        return [called.index(name) for name in names]

    def draw(self, key: jax.Array) -> jax.Array:
        """[] int32 the number of who is to sit there, with the key of the trial's first act."""
        key_choice, _ = jax.random.split(key)
        return jax.random.randint(key_choice, (), 0, len(self.players), jnp.int32)

    def init(self, key: jax.Array) -> Params:
        keys = jax.random.split(key, len(self.players))
        return tuple(p.init(key) for p, key in zip(self.players, keys, strict=True))

    def start(self) -> Memory:
        return tuple(player.start() for player in self.players)

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        return tuple(p.meet(kept, others) for p, kept in zip(self.players, memory, strict=True))

    @property
    def carries(self) -> bool:
        return any(player.carries for player in self.players)

    def carry(self, memory: Memory, view: View) -> Memory:
        return tuple(
            player.carry(kept, view) if player.carries else player.start()
            for player, kept in zip(self.players, memory, strict=True)
        )

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        return tuple(
            player.overhear(kept, goals) if isinstance(player, Listener) else kept
            for player, kept in zip(self.players, memory, strict=True)
        )

    def act(
        self, params: Params, memory: Memory, view: View, key: jax.Array, choice: jax.Array
    ) -> tuple[Memory, Act]:
        """The act of the one of that number."""
        _, key_act = jax.random.split(key)
        families = {n: p for n, p in enumerate(self.players) if isinstance(p, Family)}
        rest = [number for number in range(len(self.players)) if number not in families]
        memories, acts = list(memory), list[Act]()
        for number in rest:
            given = (params[number], memory[number], view, key_act)
            memories[number], act = self.players[number].act(*given)
            acts.append(act)
        place = {number: place for place, number in enumerate(rest)}  # of each one's act
        if families:  # one act for all of them
            places = {number: place for place, number in enumerate(families)}
            together = Together(tuple(families.values()), self._look_up(places, choice))
            kept, act = together.act((), tuple(memory[n] for n in families), view, key_act)
            for number, one in zip(families, kept, strict=True):
                memories[number] = one
            place |= dict.fromkeys(families, len(acts))
            acts.append(act)
        chosen = self._look_up(place, choice)
        act = jax.tree.map(lambda *leaves: jnp.stack(leaves)[chosen], *alike(acts))
        return tuple(memories), act

    def _look_up(self, table: dict[int, int], choice: jax.Array) -> jax.Array:
        """[] int32 what stands there for the one of that number, 0 for those who are not in it."""
        return jnp.array([table.get(n, 0) for n in range(len(self.players))], jnp.int32)[choice]
