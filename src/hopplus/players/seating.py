"""Who sits where.

Seating is static: distinct players are looped over in Python and the seats of one player are
vmapped, so a seat with a cheap player never pays for another's thinking.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import MIXED, ConfigError
from hopplus.games.game import Game
from hopplus.players.choice import alike
from hopplus.players.mixture import Mixture
from hopplus.players.player import Keeping, Looking, Player
from hopplus.players.scripted import scripted
from hopplus.types import Act, Memory, Params, View


@dataclass(frozen=True)
class Seating:
    """One player per seat; equal players are one, sitting in several seats."""

    players: tuple[Player, ...]  # [N]

    @cached_property
    def groups(self) -> tuple[tuple[Player, np.ndarray], ...]:
        """Each distinct player with the seats it sits in, in order of its first seat."""
        return tuple(
            (player, np.flatnonzero([p == player for p in self.players]))
            for player in dict.fromkeys(self.players)
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(player.name for player in self.players)

    def init(self, key: jax.Array) -> tuple[Params, ...]:
        """For each distinct player, its sets of parameters: one per seat, or one that they share.

        The sets are a leading axis, of size 1 when shared.
        """
        keys = jax.random.split(key, len(self.players))
        return tuple(
            jax.vmap(player.init)(keys[seats[:1] if player.shares_params else seats])
            for player, seats in self.groups
        )

    def start(self) -> tuple[Memory, ...]:
        """For each distinct player, its memory with a leading axis for its seats."""
        return tuple(
            jax.tree.map(lambda leaf: jnp.stack([leaf] * len(seats)), player.start())  # noqa: B023
            for player, seats in self.groups
        )

    def again(self, memory: tuple[Memory, ...], seen: Callable[[], View]) -> tuple[Memory, ...]:
        """The memories before the next episode, from those at the end of the last one and what
        everyone sees then [N, ...]; it is asked for only if someone cares."""
        return tuple(
            jax.vmap(player.again)(kept, jax.tree.map(lambda leaf: leaf[seats], seen()))  # noqa: B023
            if isinstance(player, Keeping) and player.keeps
            else fresh
            for (player, seats), kept, fresh in zip(self.groups, memory, self.start(), strict=True)
        )

    def seated(self, choices: jax.Array) -> tuple[Memory, ...]:
        """As `start`, with the [N] ones of the mixtures chosen; other players have no choice."""
        return tuple(
            jax.vmap(player.seated)(choices[seats]) if isinstance(player, Mixture) else kept
            for (player, seats), kept in zip(self.groups, self.start(), strict=True)
        )

    def _shown(self, memory: tuple[Memory, ...], keys: jax.Array) -> tuple[Memory, ...]:
        """The memories before acts with these keys [N], of those who are shown who sits where."""
        if not any(isinstance(one, Looking) and one.looks for one in self.players):
            return memory
        who = jnp.full(len(self.players), -1)
        for (player, seats), kept in zip(self.groups, memory, strict=True):
            if isinstance(player, Mixture):
                who = who.at[seats].set(jax.vmap(player.drawn)(kept, keys[seats]).choice)
        around = jnp.stack([jnp.roll(who, -seat)[1:] for seat in range(len(who))])  # [N, N - 1]
        return tuple(
            jax.vmap(player.look)(kept, around[seats])
            if isinstance(player, Looking) and player.looks
            else kept
            for (player, seats), kept in zip(self.groups, memory, strict=True)
        )

    def act(
        self,
        params: tuple[Params, ...],
        memory: tuple[Memory, ...],
        views: View,
        keys: jax.Array,
    ) -> tuple[tuple[Memory, ...], Act]:
        """Every seat's act, [N, ...], from every seat's view and key, [N, ...]."""
        memory = self._shown(memory, keys)
        memories, acts = [], []
        for (player, seats), own, kept in zip(self.groups, params, memory, strict=True):
            seen = jax.tree.map(lambda leaf: leaf[seats], views)  # noqa: B023
            act_all = jax.vmap(player.act, in_axes=(None if player.shares_params else 0, 0, 0, 0))
            own = jax.tree.map(lambda leaf: leaf[0], own) if player.shares_params else own
            kept, act = act_all(own, kept, seen, keys[seats])
            memories.append(kept)
            acts.append(act)
        order = np.argsort(np.concatenate([seats for _, seats in self.groups]))
        joined = jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[order], *alike(acts))
        return tuple(memories), joined


def seat_players(names: str, game: Game) -> Seating:
    """Seat scripted players by their names, separated by commas: `stag,stag,hare,random`."""
    called = split_names(names, game.seats)
    return Seating(tuple(scripted(name, game) for name in called))


def split_names(names: str, seats: int, others: bool = False) -> list[str]:
    """The names in `stag, stag|hare,random`, one for each seat; a mixture alone is for all.

    With `others` the seats are those beside one that is taken already.
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
