"""What somebody goes for, and when: counted in the trial, of players of whom nothing is known.

A mixture of context models, as in universal coding. A player is taken to go for one of J aims at a
time, by the shortest way. Which one is not seen, so that a_j of each act counts for an aim, its
posterior. Under circumstances c, which n(c) acts were done under, an aim is expected with

    p(j | c) = (n(c, j) + ALIKE p(j)) / (n(c) + ALIKE),    p(j) = (n(j) + FIRST q(j)) / (n + FIRST),

where q is the prior. Several kinds of circumstances are looked at side by side, each with counts of
its own, and weighed by how likely each has made the acts so far.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game
from hopplus.players.context.rhythm import shared
from hopplus.players.scripted.families import Devoted
from hopplus.players.scripted.family import Intent, halves
from hopplus.players.scripted.pursuits import nearest_pursuit
from hopplus.players.taking import no_things, takes, things
from hopplus.types import View

TIMES, IDLE, NEAR, FAR = 12, 10, 10, 4  # how many times, waits and distances are told apart
IN_A_HALF = 0.2  # how likely an aim in one half of the board is beforehand, if others are 1
FIRST = 1.0  # acts that the prior is worth
ALIKE = 0.3  # acts that all other circumstances are worth, under any
FORGOTTEN = 0.01  # share with which it may hang on anything from now on


class Habits(eqx.Module):
    """What was seen of one player; J aims, E kinds of circumstances, of which there are F."""

    counts: jax.Array  # [F, J] float32, acts under each that count for each aim
    belief: jax.Array  # [E] float32, log-chances that it hangs on each kind
    now: jax.Array  # [E] int32, under which of the F it acts next
    last: jax.Array  # [] int32, what it probably went for in its last act; J before any
    things: jax.Array  # [H, W, K] bool, where things were; none before an episode
    idle: jax.Array  # [] int32, steps of the episode since it took something


@dataclass(frozen=True)
class HabitReader:
    """Of players of one game."""

    game: Game

    @cached_property
    def _aims(self) -> tuple[np.ndarray, np.ndarray]:
        """[J, K] bool kinds of things and [J, H, W] bool where: each aim and nothing on the whole
        board, and each in a half of it."""
        aims, parts = Devoted(self.game).aims, halves(self.game.shape)
        some = aims[aims.any(axis=1)]
        aims = np.append(some, [np.zeros_like(some[0])], axis=0)
        kinds = np.concatenate([aims, np.repeat(some, len(parts), axis=0)])
        everywhere = np.ones((len(aims), *self.game.shape[:2]), bool)
        return kinds, np.concatenate([everywhere, np.tile(parts, (len(some), 1, 1))])

    @property
    def _prior(self) -> np.ndarray:
        """[J] how likely each is before anything was seen."""
        where = self._aims[1]
        chances = np.where(where.all(axis=(1, 2)), 1.0, IN_A_HALF)
        return chances / chances.sum()

    @property
    def aims(self) -> int:
        return len(self._aims[0])

    @property
    def _sizes(self) -> tuple[int, ...]:
        """[E] how many circumstances there are of each kind."""
        walks = (len(self.game.targets) + 1) * FAR
        return 1, self.aims + 1, walks, TIMES, IDLE, NEAR

    def start(self) -> Habits:
        kinds = len(self._sizes)
        return Habits(
            counts=jnp.zeros((sum(self._sizes), self.aims)),
            belief=jnp.full(kinds, -np.log(kinds)),
            now=jnp.zeros(kinds, jnp.int32),
            last=jnp.int32(self.aims),
            things=no_things(self.game),
            idle=jnp.int32(-1),  # no step has been played before the first view
        )

    def next_episode(self, habits: Habits) -> Habits:
        return replace(
            habits,
            last=jnp.full_like(habits.last, self.aims),
            things=jnp.zeros_like(habits.things),
            idle=jnp.full_like(habits.idle, -1),
        )

    def intents(self, view: View) -> list[Intent]:
        """[J] what it would go for by each aim, in one."""
        kinds, where = self._aims
        wanted = things(self.game, view) & where[..., None] & kinds[:, None, None]
        nothing = jnp.zeros(self.aims)
        return [Intent(wanted, jnp.zeros(kinds.shape), nothing, nothing)]

    def watch(self, habits: Habits, view: View) -> Habits:
        """Under what circumstances it acts next, with its view."""
        took = takes(self.game, habits.things, view)[0].any()
        idle = jnp.where(took, 0, habits.idle + 1)
        walked, near = nearest_pursuit(self.game, view)
        most = sum(self.game.shape[:2])
        here = [
            0,
            habits.last,
            walked * FAR + jnp.minimum(near * FAR // (most - 1), FAR - 1),
            jnp.clip((view.time * TIMES).astype(jnp.int32), 0, TIMES - 1),
            jnp.clip(idle // 2, 0, IDLE - 1),
            jnp.minimum(near, NEAR - 1),
        ]
        begins = np.cumsum((0, *self._sizes[:-1]))
        now = jnp.stack([jnp.int32(one) for one in here]) + begins
        return replace(habits, now=now, things=things(self.game, view), idle=idle)

    def chances(self, habits: Habits) -> jax.Array:
        """[J] how likely it is to go for each aim next."""
        return jax.nn.softmax(habits.belief) @ self._by_kind(habits)

    def after(self, habits: Habits, likely: jax.Array) -> Habits:
        """When it has acted, as it would [J] so likely if it went for each aim."""
        each = self._by_kind(habits) * likely
        total = each.sum(axis=1)
        evenly = jnp.full_like(habits.belief, -np.log(len(habits.belief)))
        return replace(
            habits,
            counts=habits.counts.at[habits.now].add(each / total[:, None]),
            belief=shared(habits.belief + jnp.log(total), evenly, FORGOTTEN),
            last=(jax.nn.softmax(habits.belief) @ each).argmax().astype(jnp.int32),
        )

    def _by_kind(self, habits: Habits) -> jax.Array:
        """[E, J] the same as each kind of circumstances has it."""
        always = _shares(habits.counts[:1], jnp.asarray(self._prior), FIRST)
        return _shares(habits.counts[habits.now], always, ALIKE)


@dataclass(frozen=True)
class NoHabits:
    """Where nobody is a stranger: no aims."""

    game: Game
    aims: ClassVar[int] = 0

    def start(self) -> None:
        return None

    def next_episode(self, habits: Habits | None) -> None:
        return None

    def intents(self, view: View) -> list[Intent]:
        return []

    def watch(self, habits: Habits | None, view: View) -> None:
        return None

    def chances(self, habits: Habits | None) -> jax.Array:
        return jnp.zeros(0)

    def after(self, habits: Habits | None, likely: jax.Array) -> None:
        return None


def _shares(counts: jax.Array, prior: jax.Array, weight: float) -> jax.Array:
    """[..., J] of counts, with the prior as so many more."""
    return (counts + weight * prior) / (counts.sum(axis=-1, keepdims=True) + weight)
