"""Whom is each other like, of those that one has learned among? Type-based reasoning (as in HBA,
Albrecht and Ramamoorthy 2013).

Each other is held against many known players: members of every family, drawn beforehand, and every
other script that the run may have met. Given what it has seen, each of them has exact chances of
every act; who acts as it was likely to gains weight by Bayes' rule. What an other does next is
foretold by all of them together. Nothing is learned.

Four things keep strangers from being taken for someone firmly and wrongly: a share of all acts may
be any, anyone may be someone else from the next act on, and whoever means to move may rest instead,
by a rhythm that is found out (which is kept apart from who it is, as if one told nothing of the
other). And anyone may be none of the known players, of whom no more is known than what it has gone
for in this trial, and when (`habits.py`). In a search, known players act for the others; strangers
do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import TypesConfig
from hopplus.games.game import views
from hopplus.games.grid import STAY
from hopplus.players.context.habits import HabitReader, NoHabits
from hopplus.players.context.known import Cast, Known, Other, Stranger
from hopplus.players.context.reader import GameReader
from hopplus.players.context.rhythm import shared, unknown_rhythm
from hopplus.players.player import Player
from hopplus.players.scripted import Scripted, scripted
from hopplus.players.scripted.families import Devoted
from hopplus.players.scripted.family import NUMBERS, Family, Intent
from hopplus.players.scripted.script import uniform
from hopplus.types import Memory, Params, View

RESTS = (0.9, 0.1)  # chances beforehand that an other never rests but where it means to, or may
UNSURE = 0.01  # share with which either may be so from now on
LEAST = 1e-4  # chance of an act that nobody would have done


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
        """[P] log-chances of each before anything was seen: as often as it is drawn."""
        shares = np.array([one.weight if isinstance(one, Family) else 1 for one in self._scripts])
        counts = np.array(self._counts)
        return np.log(np.repeat(shares / shares.sum() / counts, counts)).astype(np.float32)

    @cached_property
    def _habits(self) -> HabitReader | NoHabits:
        """Of strangers, where there may be any."""
        game = self._game
        return HabitReader(game) if self.config.strange and game.targets else NoHabits(game)

    @property
    def _counts(self) -> list[int]:
        """[T] how many members of each there are."""
        return [len(one) for one in self._numbers]

    @property
    def _actions(self) -> int:
        return len(self._game.action_names)

    @property
    def size(self) -> int:
        return self.others * (self._actions + len(self.names) + 2)

    @property
    def carries(self) -> bool:
        return True

    def start(self) -> Other:
        def begun(one: Scripted, numbers: np.ndarray) -> Memory:
            return jax.vmap(one.member)(jnp.asarray(numbers))

        each = zip(self._scripts, self._numbers, strict=True)
        known = Known(
            members=tuple(begun(*one) for one in each),
            belief=jnp.asarray(self._prior),
            expected=jnp.zeros((len(self._prior), self._actions)),
            time=jnp.float32(-1),
            rhythm=unknown_rhythm(),
            rests=jnp.log(jnp.asarray(RESTS)),
        )
        aims = jnp.zeros((self._habits.aims, self._actions))
        other = Other(known, Stranger(self._strange, aims, self._habits.start()))
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.others, *leaf.shape)), other)

    @property
    def _strange(self) -> jax.Array:
        """[2] log-chances of no stranger and of one before anything was seen."""
        strange = self.config.strange if self._habits.aims else 0.0
        return jnp.log(jnp.asarray([1 - strange, strange]))

    def carry(self, memory: Other, view: View) -> Other:
        kept, seen = self._learned(memory, view), self._seen(view)

        def next_episode(one: Scripted, numbers: np.ndarray, members: Memory) -> Memory:
            if one.carries:
                over_members = jax.vmap(one.carry, in_axes=(0, None), axis_size=len(numbers))
                return jax.vmap(over_members)(members, seen)
            fresh = jax.vmap(one.member)(jnp.asarray(numbers))
            return jax.tree.map(lambda new, old: jnp.broadcast_to(new, old.shape), fresh, members)

        known, stranger = kept.known, kept.stranger
        each = zip(self._scripts, self._numbers, known.members, strict=True)
        known = replace(
            known,
            members=tuple(next_episode(*one) for one in each),
            time=jnp.full_like(known.time, -1),
            rhythm=known.rhythm.next_episode(),
        )
        return Other(known, replace(stranger, habits=self._habits.next_episode(stranger.habits)))

    def infer(self, params: Params, memory: Other, view: View) -> tuple[Other, jax.Array]:
        kept = self._learned(memory, view)
        there = (view.planes[..., 1 : self.others + 1] > 0).any(axis=(0, 1))
        kept = jax.vmap(self._await)(kept, self._seen(view), there)
        return kept, jax.vmap(self._told)(kept).reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        return context.reshape(self.others, -1)

    def foretold(self, context: jax.Array) -> jax.Array:
        return self.about_others(context)[:, : self._actions]

    def cast(self, memory: Other, key: jax.Array) -> tuple[Cast, jax.Array]:
        ends = np.cumsum(self._counts)
        first = ends - self._counts

        def draw(known: Known, key: jax.Array) -> tuple[Known, jax.Array]:
            chosen = jax.random.categorical(key, known.belief)
            name = (chosen >= ends).sum()
            places = [
                jnp.clip(chosen - begin, 0, end - begin - 1)
                for begin, end in zip(first, ends, strict=True)
            ]
            members = tuple(
                jax.tree.map(lambda leaf, place=place: leaf[place][None], one)
                for one, place in zip(known.members, places, strict=True)
            )
            one = replace(
                known, members=members, belief=jnp.zeros(1), expected=known.expected[chosen][None]
            )
            return one, name

        cast = Cast(*jax.vmap(draw)(memory.known, jax.random.split(key, self.others)))
        return cast, jax.vmap(self._known_acts)(cast.known)

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
        return Cast(known, cast.name), jax.vmap(self._known_acts)(known)

    def _seen(self, view: View) -> View:
        """[N - 1, ...] what the others see."""
        everyone = views(self._game, self._game.seen(view))
        others: View = jax.tree.map(lambda leaf: leaf[1:], everyone)
        return others

    def _await(self, other: Other, view: View, there: jax.Array) -> Other:
        """What an other would do now with this view, if it is like each or has each aim."""
        known, stranger = other.known, other.stranger
        members, about = self._about_to(known.members, self._counts, view)
        habits = self._habits.watch(stranger.habits, view)
        about += self._habits.intents(view)
        families = [one for one in about if isinstance(one, Intent)]
        if families:  # all members of all of them look for their ways at once
            intents = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *families)
            ends = np.cumsum([len(one.rest) for one in families])
            carried = iter(jnp.split(self._carry_out(view, intents), ends[:-1]))
        chances = [next(carried) if isinstance(one, Intent) else one for one in about]
        slip = self.config.slip
        expected = (1 - slip) * jnp.concatenate(chances) + slip * uniform(view.legal)
        # Who has gone home notices what the rest do, and keeps it for the next episode.
        each = jnp.concatenate([known.expected, stranger.expected])
        expected, aimed = jnp.split(jnp.where(there, expected, each), [len(known.expected)])
        return Other(
            replace(known, members=members, expected=expected, time=view.time),
            replace(stranger, expected=aimed, habits=habits),
        )

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

    def _learned(self, memory: Other, view: View) -> Other:
        """What is known of the others after their last acts, if these are what was awaited: who is
        not asked for a while, as one that has left may not be, has missed some."""
        step = view.time * self._game.horizon

        def of(other: Other, act: jax.Array) -> Other:
            known = other.known
            awaited = jnp.abs(step - known.time * self._game.horizon - 1) < 0.5
            acted = (act >= 0) & (known.time >= 0) & awaited
            after = self._after(other, jnp.maximum(act, 0))
            return jax.tree.map(lambda a, b: jnp.where(acted, a, b), after, other)

        return jax.vmap(of)(memory, view.last_actions[1:])

    def _after(self, other: Other, act: jax.Array) -> Other:
        """What is known of one other that has acted."""
        known, stranger = other.known, other.stranger
        rests, belief = jax.nn.softmax(known.rests), jax.nn.softmax(known.belief)
        ways = self._ways(known, known.expected)[:, :, act]  # [2, P]
        aimed = self._ways(known, stranger.expected)[:, :, act]  # [2, J]
        aims = self._habits.chances(stranger.habits)
        by_both = jnp.stack([ways @ belief, aimed @ aims], axis=1)  # [2, 2]
        each, alike = jnp.maximum(rests @ ways, LEAST), jnp.maximum(rests @ by_both, LEAST)
        resting = jnp.maximum(by_both @ jax.nn.softmax(stranger.chance), LEAST)
        prior, change = jnp.asarray(self._prior), self.config.change
        return Other(
            replace(
                known,
                belief=shared(known.belief + jnp.log(each), prior, change),
                rhythm=known.rhythm.after(act == STAY),
                rests=shared(known.rests + jnp.log(resting), jnp.log(jnp.asarray(RESTS)), UNSURE),
            ),
            replace(
                stranger,
                chance=shared(stranger.chance + jnp.log(alike), self._strange, change),
                habits=self._habits.after(stranger.habits, jnp.maximum(rests @ aimed, LEAST)),
            ),
        )

    def _ways(self, known: Known, plain: jax.Array) -> jax.Array:
        """[2, P, A] chances [P, A] of an other's next act, if it never rests, and if it may."""
        if not self.config.rhythm:
            return jnp.stack([plain, plain])
        rest = known.rhythm.chance
        moving = plain.at[:, STAY].set(0.0)
        moving = moving / jnp.maximum(moving.sum(axis=1, keepdims=True), LEAST)
        resting = ((1 - rest) * moving).at[:, STAY].set(rest)
        means_to_stay = plain[:, STAY] >= 0.5
        return jnp.stack([plain, jnp.where(means_to_stay[:, None], plain, resting)])

    def _told(self, other: Other) -> jax.Array:
        """[A + T + 1 + 1] of one other: its next act, its name, whether it is a stranger, and
        whether it rests at times."""
        known, stranger = other.known, other.stranger
        belief, rests = jax.nn.softmax(known.belief), jax.nn.softmax(known.rests)
        known_one, strange = jax.nn.softmax(stranger.chance)
        ends = np.cumsum(self._counts)
        named = known_one * jnp.diff(jnp.cumsum(belief)[ends - 1], prepend=0.0)
        aims = self._habits.chances(stranger.habits)
        acts = known_one * self._known_acts(known)
        acts += strange * self._acts(known, stranger.expected, aims)
        return jnp.concatenate([acts, named, strange[None], rests[1:]])

    def _known_acts(self, known: Known) -> jax.Array:
        """[A] how likely a known player is to act so next."""
        return self._acts(known, known.expected, jax.nn.softmax(known.belief))

    def _acts(self, known: Known, expected: jax.Array, weights: jax.Array) -> jax.Array:
        """[A] how likely an other is to act so next, by chances [P, A] with weights [P]."""
        rests, ways = jax.nn.softmax(known.rests), self._ways(known, expected)
        return jnp.einsum("r,rpa,p->a", rests, ways, weights, precision="highest")


def foretells(one: Player) -> bool:
    """Whether somebody can be held against this player: its acts have known chances, and all else
    that it draws is drawn before a trial."""
    return isinstance(one, Family) or (isinstance(one, Scripted) and not one.uses_chance)
