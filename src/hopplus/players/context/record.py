"""A record of the trial: what everyone has taken in it, and when.

A recurrent memory has to learn what to keep from episode to episode, by gradients that reach back
over whole episodes. What a player would write down after each of them needs no learning.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.players.context.reader import GameReader
from hopplus.players.taking import no_things, takes, things
from hopplus.types import Memory, Params, View


class Record(eqx.Module):
    """Of all N seats, own first; K kinds of things."""

    things: jax.Array  # [H, W, K] bool, where things were
    now: jax.Array  # [N, K] float32, taken in this episode
    since: jax.Array  # [N] float32, when it took something first in this episode; 1 for not yet
    last: jax.Array  # [N, K + 1] float32, taken in the last episode, and `since` at its end
    before: jax.Array  # [N, K + 1] float32, the same summed over all episodes before this one
    episodes: jax.Array  # [] float32, how many these are


@dataclass(frozen=True)
class RecordContext(GameReader):
    """What everyone took in this episode, in the last one and on average; it learns nothing."""

    @property
    def _each(self) -> int:
        """Numbers about a seat."""
        return 3 * len(self._game.targets) + 2

    @property
    def size(self) -> int:
        return self._game.seats * self._each + 1

    @property
    def carries(self) -> bool:
        return True

    def start(self) -> Record:
        seats, kinds = self._game.seats, len(self._game.targets)
        nothing = jnp.zeros((seats, kinds + 1))
        return Record(
            things=no_things(self._game),
            now=jnp.zeros((seats, kinds)),
            since=jnp.ones(seats),
            last=nothing,
            before=nothing,
            episodes=jnp.zeros(()),
        )

    def carry(self, memory: Record, view: View) -> Record:
        ended = self._noticed(memory, view)
        last = jnp.concatenate([ended.now, ended.since[:, None]], axis=1)
        fresh = self.start()
        return Record(
            things=fresh.things,
            now=fresh.now,
            since=fresh.since,
            last=last,
            before=ended.before + last,
            episodes=ended.episodes + 1,
        )

    def infer(self, params: Params, memory: Memory, view: View) -> tuple[Record, jax.Array]:
        """The memory after a view, and [N * (3 K + 2) + 1]: by seat the logarithms of 1 and what it
        took (in this episode, in the last, on average), and when it took something first; then how
        much there is to go by."""
        kept = self._noticed(memory, view)
        mean = kept.before / jnp.maximum(kept.episodes, 1.0)
        told = jnp.concatenate([jnp.log1p(kept.now), jnp.log1p(kept.last), jnp.log1p(mean)], axis=1)
        known = kept.episodes / (1 + kept.episodes)
        return kept, jnp.append(told.reshape(-1), known)

    def about_others(self, context: jax.Array) -> jax.Array:
        """[N - 1, 3 K + 2] of each what it took."""
        return context[:-1].reshape(-1, self._each)[1:]

    def _noticed(self, memory: Record, view: View) -> Record:
        took = takes(self._game, memory.things, view)
        first = took.any(axis=1) & ~memory.now.any(axis=1)
        return Record(
            things=things(self._game, view),
            now=memory.now + took,
            since=jnp.where(first, view.time, memory.since),
            last=memory.last,
            before=memory.before,
            episodes=memory.episodes,
        )
