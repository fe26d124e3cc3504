"""Whom is each other like, of those that one has learned among? Type-based reasoning (as in HBA,
Albrecht and Ramamoorthy 2013).

Each other is held against many known players: members of every family, drawn beforehand, and every
other script that the run may have met. Given what it has seen, each of them has exact chances of
every act; who acts as it was likely to gains weight by Bayes' rule. What an other does next is
foretold by all of them together. Nothing is learned.

Four things keep strangers from being taken for someone firmly and wrongly: a share of all acts may
be any, anyone may be someone else from the next act on, and whoever means to move may rest instead,
by a rhythm that is found out (which is kept apart from who it is, as if one told nothing of the
other). And anyone may be none of the known players, of whom nothing is known but what it has gone
for in this trial, and when (`HabitReader`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import TypesConfig
from hopplus.games.game import views
from hopplus.games.grid import STAY
from hopplus.players.context.habits import HabitReader, Habits
from hopplus.players.context.reader import GameReader
from hopplus.players.context.rhythm import Rhythm, shared, unknown_rhythm
from hopplus.players.player import Player
from hopplus.players.scripted import Scripted, scripted
from hopplus.players.scripted.families import Devoted
from hopplus.players.scripted.family import NUMBERS, Family, Intent
from hopplus.players.scripted.script import uniform
from hopplus.types import Memory, Params, View

RESTS = (0.9, 0.1)  # chances beforehand that an other never rests but where it means to, or may
UNSURE = 0.01  # share with which either may be so from now on
LEAST = 1e-4  # chance of an act that nobody would have done


class Known(eqx.Module):
    """What is known of one other; P players that it is held against, of T names."""

    members: tuple[Memory, ...]  # [T] of [members, ...] what each of them would remember
    belief: jax.Array  # [P + 1] float32, log-chances that it is like each, or a stranger
    expected: jax.Array  # [P + J, A] float32, chances of its next act if it is, or goes for each of
    # a stranger's aims
    time: jax.Array  # [] float32, of the view by which that is expected; -1 before any
    rhythm: Rhythm
    rests: jax.Array  # [2] float32, log-chances that it never rests, and that it may
    habits: Habits | None  # if it is a stranger; None where nobody is


class Cast(eqx.Module):
    """Players drawn for the N - 1 others."""

    known: Known  # [N - 1, ...] one member of each name, of whom P = 1 is held against
    name: jax.Array  # [N - 1] int32, the number of the one who plays


@dataclass(frozen=True)
class TypesContext(GameReader):
    """The policy is told how likely each other is to act so next, which name it goes by or whether
    it is a stranger, and whether it rests at times; models of the others are told the same. In a
    search, the others are played by members that are drawn for each tree."""

    config: TypesConfig
    names: tuple[str, ...]
    casts: ClassVar[bool] = True

    @cached_property
    def _scripts(self) -> tuple[Scripted, ...]:
        found: Any = tuple(scripted(name, self._game) for name in self.names)
        return found  # as `foretells` has found

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, ...]:
        """[T] of [members, NUMBERS] which members of each there are: every number of one is spread
        evenly over them."""
        shares = np.array([one.weight if isinstance(one, Family) else 0 for one in self._scripts])
        counts = np.maximum(1, self.config.members * shares // max(1, shares.sum()))
        rng = np.random.default_rng(0)  # anybody else's would do as well
        found = []
        for count in counts:
            places = rng.permuted(np.tile(np.arange(count), (NUMBERS, 1)), axis=1).T
            numbers = ((places + rng.random(places.shape)) / count).astype(np.float32)
            found.append(np.minimum(numbers, 1 - 2.0**-24))
        return tuple(found)

    @cached_property
    def _prior(self) -> np.ndarray:
        """[P + 1] log-chances of each before anything was seen: as often as it is drawn; and of a
        stranger."""
        shares = np.array([one.weight if isinstance(one, Family) else 1 for one in self._scripts])
        counts = np.array(self._counts)
        known = np.repeat(shares / shares.sum() / counts, counts)
        if self._habits:
            known = np.append((1 - self.config.strange) * known, self.config.strange)
        return np.log(known).astype(np.float32)

    @cached_property
    def _habits(self) -> HabitReader | None:
        """Of strangers, where there may be any."""
        return HabitReader(self._game) if self.config.strange and self._game.targets else None

    @property
    def _counts(self) -> list[int]:
        """[T] how many members of each there are."""
        return [len(one) for one in self._numbers]

    @property
    def _actions(self) -> int:
        return len(self._game.action_names)

    @property
    def size(self) -> int:
        return self.others * (self._actions + len(self.names) + bool(self._habits) + 1)

    @property
    def carries(self) -> bool:
        return True

    def start(self) -> Known:
        def begun(one: Scripted, numbers: np.ndarray) -> Memory:
            return jax.vmap(one.member)(jnp.asarray(numbers))

        each = zip(self._scripts, self._numbers, strict=True)
        aims = self._habits.aims if self._habits else 0
        known = Known(
            members=tuple(begun(*one) for one in each),
            belief=jnp.asarray(self._prior),
            expected=jnp.zeros((sum(self._counts) + aims, self._actions)),
            time=jnp.float32(-1),
            rhythm=unknown_rhythm(),
            rests=jnp.log(jnp.asarray(RESTS)),
            habits=self._habits.start() if self._habits else None,
        )
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.others, *leaf.shape)), known)

    def carry(self, memory: Known, view: View) -> Known:
        kept, seen = self._learned(memory, view), self._seen(view)

        def next_episode(one: Scripted, numbers: np.ndarray, members: Memory) -> Memory:
            if one.carries:
                over_members = jax.vmap(one.carry, in_axes=(0, None), axis_size=len(numbers))
                return jax.vmap(over_members)(members, seen)
            fresh = jax.vmap(one.member)(jnp.asarray(numbers))
            return jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape), fresh, members)

        each = zip(self._scripts, self._numbers, kept.members, strict=True)
        habits = kept.habits
        if self._habits and habits:
            habits = self._habits.next_episode(habits)
        return replace(
            kept,
            members=tuple(next_episode(*one) for one in each),
            time=jnp.full_like(kept.time, -1),
            rhythm=kept.rhythm.next_episode(),
            habits=habits,
        )

    def infer(self, params: Params, memory: Known, view: View) -> tuple[Known, jax.Array]:
        kept = self._learned(memory, view)
        there = (view.planes[..., 1 : self.others + 1] > 0).any(axis=(0, 1))
        kept = jax.vmap(self._await)(kept, self._seen(view), there)
        return kept, jax.vmap(self._told)(kept).reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        return context.reshape(self.others, -1)

    def foretold(self, context: jax.Array) -> jax.Array:
        return self.about_others(context)[:, : self._actions]

    def cast(self, memory: Known, key: jax.Array) -> tuple[Cast, jax.Array]:
        ends = np.cumsum(self._counts)
        first = ends - self._counts

        def draw(known: Known, key: jax.Array) -> tuple[Known, jax.Array]:
            chosen = jax.random.categorical(key, known.belief[: ends[-1]])  # whose acts are known
            name = (chosen >= ends).sum()
            places = [
                jnp.clip(chosen - begin, 0, end - begin - 1)
                for begin, end in zip(first, ends, strict=True)
            ]
            members = tuple(
                jax.tree.map(lambda leaf, place=place: leaf[place][None], one)
                for one, place in zip(known.members, places, strict=True)
            )
            expected, belief = known.expected[chosen][None], jnp.zeros(1)
            alone = replace(known, members=members, belief=belief, expected=expected, habits=None)
            return alone, name

        cast = Cast(*jax.vmap(draw)(memory, jax.random.split(key, self.others)))
        return cast, jax.vmap(self._acts)(cast.known)

    def rehearse(self, cast: Cast, view: View) -> tuple[Cast, jax.Array]:
        def after(known: Known, name: jax.Array, act: jax.Array, view: View) -> Known:
            members, about = self._about_to(known.members, [1] * len(self.names), view)
            families = [one for one in about if isinstance(one, Intent)]
            if families:  # only the one who plays looks for its way
                place = np.cumsum([isinstance(one, Intent) for one in about]) - 1
                own = jnp.asarray(np.maximum(place, 0))[name]
                intent = jax.tree.map(lambda *leaves: jnp.stack(leaves)[own], *families)
                carried = self._carry_out(view, intent)
            chances = [carried if isinstance(one, Intent) else one for one in about]
            slip, rhythm = self.config.slip, known.rhythm.after(act == STAY)
            return replace(
                known,
                members=members,
                expected=(1 - slip) * jnp.stack(chances)[name] + slip * uniform(view.legal),
                rhythm=jax.tree.map(lambda a, b: jnp.where(act >= 0, a, b), rhythm, known.rhythm),
            )

        acts, seen = view.last_actions[1:], self._seen(view)
        known = jax.vmap(after)(cast.known, cast.name, acts, seen)
        return Cast(known, cast.name), jax.vmap(self._acts)(known)

    def _seen(self, view: View) -> View:
        """[N - 1, ...] what the others see."""
        everyone = views(self._game, self._game.seen(view))
        others: View = jax.tree.map(lambda leaf: leaf[1:], everyone)
        return others

    def _await(self, known: Known, view: View, there: jax.Array) -> Known:
        """What an other would do now with this view, if it is like each."""
        members, about = self._about_to(known.members, self._counts, view)
        habits = known.habits
        if self._habits and habits:
            habits = self._habits.watch(habits, view)
            about = [*about, self._habits.intents(view)]
        families = [one for one in about if isinstance(one, Intent)]
        if families:  # all members of all of them look for their ways at once
            intents = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *families)
            ends = np.cumsum([len(one.rest) for one in families])
            carried = iter(jnp.split(self._carry_out(view, intents), ends[:-1]))
        chances = [next(carried) if isinstance(one, Intent) else one for one in about]
        slip = self.config.slip
        expected = (1 - slip) * jnp.concatenate(chances) + slip * uniform(view.legal)
        # Who has gone home notices what the rest do, and keeps it for the next episode.
        expected = jnp.where(there, expected, known.expected)
        return replace(known, members=members, expected=expected, time=view.time, habits=habits)

    def _about_to(
        self, members: tuple[Memory, ...], counts: Sequence[int], view: View
    ) -> tuple[tuple[Memory, ...], list[Intent | jax.Array]]:
        """[T] what so many members [M, ...] of each name remember with a view, and what they
        intend, or [M, A] chances of their acts where they are no family."""

        def look(one: Scripted, count: int, members: Memory) -> tuple[Memory, Any]:
            def of(kept: Memory) -> tuple[Memory, Any]:
                if isinstance(one, Family):
                    return one.step(kept, view, kept.numbers)
                return one.expected(kept, view)

            return jax.vmap(of, axis_size=count)(members)  # also of those who remember nothing

        found = [look(*one) for one in zip(self._scripts, counts, members, strict=True)]
        return tuple(kept for kept, _ in found), [about for _, about in found]

    def _carry_out(self, view: View, intents: Intent) -> jax.Array:
        """[M, A] chances of the acts of members with such intents [M, ...]."""
        family = Devoted(self._game)  # all of them do it alike
        return jax.vmap(lambda intent: family.carry_out(view, intent)[0])(intents)

    def _learned(self, memory: Known, view: View) -> Known:
        """What is known of the others after their last acts, if these are what was awaited: who is
        not asked for a while, as one that has left may not be, has missed some."""
        step = view.time * self._game.horizon

        def of(known: Known, act: jax.Array) -> Known:
            ways = self._ways(known)[:, :, jnp.maximum(act, 0)]  # [2, P + J]
            each = jnp.maximum(jax.nn.softmax(known.rests) @ ways, LEAST)
            both = jnp.maximum(ways @ self._weights(known), LEAST)
            prior, change, habits = jnp.asarray(self._prior), self.config.change, known.habits
            if self._habits and habits:
                each, aimed = jnp.split(each, [sum(self._counts)])
                each = jnp.append(each, self._habits.chances(habits) @ aimed)
                habits = self._habits.after(habits, aimed)
            after = replace(
                known,
                belief=shared(known.belief + jnp.log(each), prior, change),
                rhythm=known.rhythm.after(act == STAY),
                rests=shared(known.rests + jnp.log(both), jnp.log(jnp.asarray(RESTS)), UNSURE),
                habits=habits,
            )
            awaited = jnp.abs(step - known.time * self._game.horizon - 1) < 0.5
            acted = (act >= 0) & (known.time >= 0) & awaited
            return jax.tree.map(lambda a, b: jnp.where(acted, a, b), after, known)

        return jax.vmap(of)(memory, view.last_actions[1:])

    def _ways(self, known: Known) -> jax.Array:
        """[2, P + J, A] chances of an other's next act if it is like each, and never rests, or
        may."""
        plain = known.expected
        if not self.config.rhythm:
            return jnp.stack([plain, plain])
        rest = known.rhythm.chance
        moving = plain.at[:, STAY].set(0.0)
        moving = moving / jnp.maximum(moving.sum(axis=1, keepdims=True), LEAST)
        resting = ((1 - rest) * moving).at[:, STAY].set(rest)
        means_to_stay = plain[:, STAY] >= 0.5
        return jnp.stack([plain, jnp.where(means_to_stay[:, None], plain, resting)])

    def _told(self, known: Known) -> jax.Array:
        """[A + T + 1 + 1] of one other: its next act, its name, whether it is a stranger, if anyone
        may be, and whether it rests at times."""
        belief, rests = jax.nn.softmax(known.belief), jax.nn.softmax(known.rests)
        ends = np.cumsum([*self._counts, *[1] * bool(self._habits)])
        named = jnp.diff(jnp.cumsum(belief)[ends - 1], prepend=0.0)
        return jnp.concatenate([self._acts(known), named, rests[1:]])

    def _acts(self, known: Known) -> jax.Array:
        """[A] how likely an other is to act so next."""
        rests, weights = jax.nn.softmax(known.rests), self._weights(known)
        return jnp.einsum("r,rpa,p->a", rests, self._ways(known), weights, precision="highest")

    def _weights(self, known: Known) -> jax.Array:
        """[P + J] how likely it is to be like each, or a stranger who goes for each aim."""
        belief = jax.nn.softmax(known.belief)
        if not self._habits or not known.habits:
            return belief
        return jnp.concatenate([belief[:-1], belief[-1] * self._habits.chances(known.habits)])


def foretells(one: Player) -> bool:
    """Whether somebody can be held against this player: its acts have known chances, and all else
    that it draws is drawn before a trial."""
    return isinstance(one, Family) or (isinstance(one, Scripted) and not one.uses_chance)
