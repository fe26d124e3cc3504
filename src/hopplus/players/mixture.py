"""Someone of several: a seat whose player changes from trial to trial."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.players.planner import unnamed
from hopplus.players.player import Listener, Player, alike
from hopplus.players.scripted.family import Family, Together
from hopplus.types import Act, Memory, Params, View


@dataclass(frozen=True)
class Mixture:
    """Several players, alike likely but for families of more weight, of whom the play says which
    sits there.

    Those that differ in what they have learned alone are a group. Parameters and memories are
    tuples, of every group: parameters stacked where it has several players, and one memory. Groups
    that nobody of sits there go on too, unseen, as programs cannot branch by game.
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

    @cached_property
    def groups(self) -> tuple[tuple[Player, tuple[int, ...]], ...]:
        """One player of each group, and the numbers of all, in order of the first."""
        found: dict[Player, list[int]] = {}
        for number, player in enumerate(self.players):
            found.setdefault(unnamed(player), []).append(number)
        return tuple((self.players[held[0]], tuple(held)) for held in found.values())

    def pack(self, sets: Sequence[Params], axis: int = 0) -> Params:
        """The parameters, from everyone's; sets with an axis before it are stacked behind that."""
        own = [[sets[number] for number in numbers] for _, numbers in self.groups]
        return tuple(
            each[0]
            if len(each) == 1
            else jax.tree.map(lambda *leaves: jnp.stack(leaves, axis), *each)
            for each in own
        )

    def unpack(self, params: Params, axis: int = 0) -> list[Params]:
        """What `pack` was given."""
        sets: list[Params] = [()] * len(self.players)
        for (_, numbers), own in zip(self.groups, params, strict=True):
            for place, number in enumerate(numbers):
                sets[number] = own
                if len(numbers) > 1:
                    sets[number] = jax.tree.map(lambda leaf: leaf.take(place, axis), own)  # noqa: B023
        return sets

    def draw(self, key: jax.Array, absent: jax.Array | None = None) -> jax.Array:
        """[] int32 the number of who is to sit there, with the key of the trial's first act. It is
        the one that a mixture without the player of number `absent` [] would draw."""
        key_choice, _ = jax.random.split(key)
        weights = np.array([p.weight if isinstance(p, Family) else 1 for p in self.players])
        lots = jnp.asarray(np.repeat(np.arange(len(weights)), weights), jnp.int32)
        if absent is None:
            return lots[jax.random.randint(key_choice, (), 0, len(lots), jnp.int32)]
        less, first = (jnp.asarray(one)[absent] for one in (weights, weights.cumsum() - weights))
        lot = jax.random.randint(key_choice, (), 0, len(lots) - less, jnp.int32)
        return lots[lot + jnp.where(lot >= first, less, 0)]

    def init(self, key: jax.Array) -> Params:
        keys = jax.random.split(key, len(self.players))
        return self.pack([p.init(key) for p, key in zip(self.players, keys, strict=True)])

    def start(self) -> Memory:
        return tuple(player.start() for player, _ in self.groups)

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        each = zip(self.groups, memory, strict=True)
        return tuple(player.meet(kept, others) for (player, _), kept in each)

    @property
    def carries(self) -> bool:
        return any(player.carries for player, _ in self.groups)

    def carry(self, memory: Memory, view: View) -> Memory:
        return tuple(
            player.carry(kept, view) if player.carries else player.start()
            for (player, _), kept in zip(self.groups, memory, strict=True)
        )

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        return tuple(
            player.overhear(kept, goals) if isinstance(player, Listener) else kept
            for (player, _), kept in zip(self.groups, memory, strict=True)
        )

    def act(
        self, params: Params, memory: Memory, view: View, key: jax.Array, choice: jax.Array
    ) -> tuple[Memory, Act]:
        """The act of the one of that number."""
        _, key_act = jax.random.split(key)
        families = {n: p for n, (p, _) in enumerate(self.groups) if isinstance(p, Family)}
        memories, acts = list(memory), list[Act]()
        place: dict[int, int] = {}  # of each one's act
        for number, (player, numbers) in enumerate(self.groups):
            if number in families:
                continue
            given = (memory[number], view, key_act)
            if len(numbers) == 1:
                memories[number], act = player.act(params[number], *given)
            else:
                # All of them act: one product with everyone's weights is less work than one with
                # weights of its own for every game.
                everyone = jax.vmap(player.act, in_axes=(0, None, None, None))
                one = self._look_up({n: own for own, n in enumerate(numbers)}, choice)
                memories[number], act = jax.tree.map(
                    lambda leaf: leaf[one],  # noqa: B023
                    everyone(params[number], *given),
                )
            place |= dict.fromkeys(numbers, len(acts))
            acts.append(act)
        if families:  # one act for all of them
            held = {n: own for own, group in enumerate(families) for n in self.groups[group][1]}
            together = Together(tuple(families.values()), self._look_up(held, choice))
            kept, act = together.act((), tuple(memory[n] for n in families), view, key_act)
            for number, one_kept in zip(families, kept, strict=True):
                memories[number] = one_kept
            place |= dict.fromkeys(held, len(acts))
            acts.append(act)
        chosen = self._look_up(place, choice)
        act = jax.tree.map(lambda *leaves: jnp.stack(leaves)[chosen], *alike(acts))
        return tuple(memories), act

    def _look_up(self, table: dict[int, int], choice: jax.Array) -> jax.Array:
        """[] int32 what stands there for the one of that number, 0 for those who are not in it."""
        return jnp.array([table.get(n, 0) for n in range(len(self.players))], jnp.int32)[choice]
