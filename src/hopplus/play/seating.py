"""Who sits where.

Seating is static: distinct players are looped over in Python and the seats of one player are
vmapped, so a seat with a cheap player never pays for another's thinking.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import MIXED, ConfigError
from hopplus.games.game import Game
from hopplus.lookup import along
from hopplus.players.mixture import Mixture
from hopplus.players.player import Listener, Player, alike
from hopplus.players.scripted import scripted
from hopplus.types import Act, Memory, Params, View

Sitter: TypeAlias = Player | Mixture


@dataclass(frozen=True)
class Seating:
    """One player per seat, or several of whom one sits there; equal ones are one, sitting in
    several seats."""

    players: tuple[Sitter, ...]  # [N]
    trial: int = 1  # episodes for which those of the mixtures stay, and memories last
    regulars: bool = False  # whether the same ones of the mixtures come again for every trial

    @cached_property
    def groups(self) -> tuple[tuple[Sitter, np.ndarray], ...]:
        """Each distinct player with the seats it sits in, in order of its first seat."""
        return tuple(
            (player, np.flatnonzero([p == player for p in self.players]))
            for player in dict.fromkeys(self.players)
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(player.name for player in self.players)

    def init(
        self, key: jax.Array, wanted: Callable[[Sitter], bool] = lambda player: True
    ) -> tuple[Params, ...]:
        """For each distinct player, its sets of parameters: one per seat, or one that they share;
        none for players that are not wanted.

        The sets are a leading axis, of size 1 when shared.
        """
        keys = jax.random.split(key, len(self.players))
        return tuple(
            jax.vmap(player.init)(keys[seats[:1] if player.shares_params else seats])
            if wanted(player)
            else ()
            for player, seats in self.groups
        )

    @property
    def mixed(self) -> bool:
        """Whether there is anyone to be drawn."""
        return any(isinstance(player, Mixture) for player in self.players)

    def draw(self, keys: jax.Array, absent: jax.Array | None = None) -> jax.Array:
        """[N] int32 the numbers of those who sit in the mixtures' seats for a trial, with the keys
        [N] of its first acts and without the one who is absent; 0 in all other seats."""
        choice = jnp.zeros(len(self.players), jnp.int32)
        for player, seats in self.groups:
            if isinstance(player, Mixture):
                choice = choice.at[seats].set(
                    jax.vmap(player.draw, in_axes=(0, None))(along(keys, seats), absent)
                )
        return choice

    def start(self, choice: jax.Array) -> tuple[Memory, ...]:
        """For each distinct player, its memory before a trial with the numbers [N] drawn; with a
        leading axis for its seats."""
        drawn = np.array([isinstance(player, Mixture) for player in self.players])
        who = jnp.where(drawn, choice, -1)
        around = self._around(who)
        return tuple(
            jax.vmap(lambda others: player.meet(player.start(), others))(along(around, seats))  # noqa: B023
            for player, seats in self.groups
        )

    def carry(
        self, memory: tuple[Memory, ...], choice: jax.Array, seen: Callable[[], View]
    ) -> tuple[Memory, ...]:
        """The memories before the trial's next episode, from those at the end of the last one and
        what everyone sees then [N, ...]; it is asked for only if someone cares."""
        return tuple(
            jax.vmap(player.carry)(kept, along(seen(), seats)) if player.carries else fresh
            for (player, seats), kept, fresh in zip(
                self.groups, memory, self.start(choice), strict=True
            )
        )

    def act(
        self,
        params: tuple[Params, ...],
        memory: tuple[Memory, ...],
        views: View,
        keys: jax.Array,
        choice: jax.Array,
    ) -> tuple[tuple[Memory, ...], Act]:
        """Every seat's act, [N, ...], from every seat's view and key [N, ...], and who of the
        mixtures sits there [N]."""
        memories, acts = [], []
        for (player, seats), own, kept in zip(self.groups, params, memory, strict=True):
            chosen = (along(choice, seats),) if isinstance(player, Mixture) else ()
            given = (kept, along(views, seats), along(keys, seats), *chosen)
            axes = (None if player.shares_params else 0, *(0 for _ in given))
            own = jax.tree.map(lambda leaf: leaf[0], own) if player.shares_params else own
            kept, act = jax.vmap(player.act, in_axes=axes)(own, *given)
            memories.append(kept)
            acts.append(act)
        order = np.argsort(np.concatenate([seats for _, seats in self.groups]))
        together = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *alike(acts))
        joined: Act = along(together, order)
        after = self._around(joined.goal)
        memories = [
            jax.vmap(player.overhear)(kept, along(after, seats))
            if isinstance(player, Listener)
            else kept
            for (player, seats), kept in zip(self.groups, memories, strict=True)
        ]
        return tuple(memories), joined

    def _around(self, said: jax.Array) -> jax.Array:
        """[N, N - 1, ...] of what is said of the seats [N, ...], for each the rest after it."""
        return jnp.stack([jnp.roll(said, -seat, axis=0)[1:] for seat in range(len(self.players))])


def seat_players(names: str, game: Game) -> Seating:
    """Seat scripted players by their names, separated by commas: `stag,stag,hare,random`."""
    called = split_names(names, game.seats)
    return Seating(tuple(scripted(name, game) for name in called))


def split_names(names: str, seats: int, others: bool = False) -> list[str]:
    """The names in `stag, stag|hare,random`, one for each seat; a mixture alone is for all.

    With `others` the seats are those besides one that is taken already.
    """
    called = [MIXED.join(options(name)) for name in names.split(",")]
    if len(called) == 1 and MIXED in names:
        return called * seats
    if len(called) != seats:
        has = f"has {seats} seats"
        if others:
            left = "one other" if seats == 1 else f"{seats} others"
            has = f"has {seats + 1} seats: one for the player and {left} to be filled"
        raise ConfigError(
            f"{names!r} names {len(called)} player{'s' * (len(called) != 1)} but the game {has}"
        )
    return called


def options(name: str) -> list[str]:
    """The players of whom one sits there: `stag|hare` or, without choice, `stag`."""
    return [one.strip() for one in name.split(MIXED)]
