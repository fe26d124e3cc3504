"""Families of scripted players: what a member of one is like is drawn anew for every trial.

A member draws numbers in a trial's first act and keeps them; given these, its action distribution
is known as exactly as that of any other script. What it goes for in a step is told as the cells of
things, so that ways are looked for once, even for a mixture of many families.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game
from hopplus.games.grid import STAY
from hopplus.games.shortest_paths import first_moves
from hopplus.players.scripted.script import Decision, Scripted, uniform
from hopplus.players.taking import things
from hopplus.types import View

NUMBERS = 11  # drawn for a trial, as many as any family needs
Kept: TypeAlias = Any  # what a family remembers besides: any pytree


class Member(eqx.Module):
    """The memory of one of a family."""

    numbers: jax.Array  # [NUMBERS] float32, uniform, drawn for the trial; -1 before its first act
    kept: Kept


class Intent(eqx.Module):
    """What a member does in a step."""

    wanted: jax.Array  # [H, W, K] bool, the things that it goes for; those of no other kind
    goal: jax.Array  # [K] float32, as an act tells it
    noise: jax.Array  # [] float32, the share of any legal act
    rest: jax.Array  # [] float32, the share of staying


@dataclass(frozen=True)
class Family(Scripted):
    """What families share: `intend` says what sets one apart, and `notice` what it remembers."""

    name: ClassVar[str]
    about: ClassVar[str]
    weight: ClassVar[int] = 1  # how often it is drawn from a mixture, where others have 1

    game: Game

    @classmethod
    def made_for(cls, game: Game) -> Self:
        return cls(game)

    def fresh(self) -> Kept:
        """What is remembered before a trial."""
        return ()

    def notice(self, numbers: jax.Array, kept: Kept, view: View) -> Kept:
        """What is remembered with a view, before the act."""
        return kept

    def next_episode(self, kept: Kept) -> Kept:
        """What is remembered before the trial's next episode, with its last view noticed."""
        return kept

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        raise NotImplementedError

    @property
    def uses_chance(self) -> bool:
        return True

    @property
    def carries(self) -> bool:
        return True

    def start(self) -> Member:
        return self.member(jnp.full(NUMBERS, -1.0))

    def member(self, numbers: jax.Array) -> Member:
        return Member(numbers, self.fresh())

    def carry(self, memory: Member, view: View) -> Member:
        kept = self.notice(memory.numbers, memory.kept, view)  # the last acts: nobody acts after
        return Member(memory.numbers, self.next_episode(kept))

    def step(self, memory: Member, view: View, drawn: jax.Array) -> tuple[Member, Intent]:
        """What it remembers and intends, with numbers [NUMBERS] in case that it has none yet."""
        numbers = jnp.where(memory.numbers < 0, drawn, memory.numbers)
        kept = self.notice(numbers, memory.kept, view)
        return Member(numbers, kept), self.intend(numbers, kept, view)

    def decide(self, memory: Member, view: View, key: jax.Array) -> Decision:
        memory, intent = self.step(memory, view, jax.random.uniform(key, (NUMBERS,)))
        return memory, *self.carry_out(view, intent)

    def expected(self, memory: Member, view: View) -> tuple[Member, jax.Array]:
        memory, intent = self.step(memory, view, memory.numbers)
        return memory, self.carry_out(view, intent)[0]

    def carry_out(self, view: View, intent: Intent) -> tuple[jax.Array, jax.Array]:
        """[A] probabilities and [K] goal: the first moves of the shortest ways to the nearest thing
        that is wanted, or what takes it; stay with nothing to reach. Things that walking would take
        are walked around unless they are wanted."""
        here, walls = (view.planes[..., plane] > 0 for plane in (0, self.game.seats))
        actions = [target.action for target in self.game.targets.values()]
        walked = np.flatnonzero([action is None for action in actions])
        around = (self.things(view) & ~intent.wanted)[..., walked].any(axis=-1)
        moves = first_moves(here, intent.wanted.any(axis=-1), walls | around)
        chosen = jnp.zeros(view.legal.shape, bool).at[:STAY].set(moves)
        on = (here[..., None] & intent.wanted).any(axis=(0, 1))  # [K]
        for kind, action in enumerate(actions):
            if action is not None:
                chosen = chosen.at[action].max(on[kind])
        chosen = chosen.at[STAY].set(~chosen.any())
        mixed = (1 - intent.noise - intent.rest) * uniform(chosen)
        mixed = mixed + intent.noise * uniform(view.legal)
        return mixed.at[STAY].add(intent.rest), intent.goal

    # What families are written with.

    def things(self, view: View) -> jax.Array:
        """[H, W, K] bool."""
        return things(self.game, view)

    @property
    def aims(self) -> np.ndarray:
        """[M, K] bool, what one may be after: each kind of thing, what others own as one, and then
        anything; or nothing, where there is one kind alone."""
        owners = [target.owner for target in self.game.targets.values()]
        theirs = np.array([owner not in (None, 0) for owner in owners])
        rows = list(np.eye(len(owners), dtype=bool)[~theirs])
        rows += [theirs] * bool(theirs.any())
        return np.stack([*rows, np.full(len(owners), len(owners) > 1)])

    def aim(self, number: jax.Array) -> jax.Array:
        """[K] bool, any of the aims."""
        return jnp.asarray(self.aims)[whole(number, 0, len(self.aims) - 1)]

    def thing(self, number: jax.Array) -> jax.Array:
        """[K] bool, any of the aims but nothing."""
        aims = self.aims[self.aims.any(axis=1)]
        return jnp.asarray(aims)[whole(number, 0, len(aims) - 1)]

    def two_aims(self, numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[K] bool each, from two numbers: different ones."""
        first = whole(numbers[0], 0, len(self.aims) - 1)
        second = (first + whole(numbers[1], 1, len(self.aims) - 1)) % len(self.aims)
        aims = jnp.asarray(self.aims)
        return aims[first], aims[second]

    def after(
        self,
        view: View,
        aim: jax.Array,
        where: jax.Array | bool = True,
        noise: jax.Array | float = 0.0,
    ) -> Intent:
        """Going for the aim [K] bool in the cells `where` [H, W] bool."""
        wanted = self.things(view) & aim & jnp.asarray(where)[..., None]
        goal = jnp.where(aim.sum() == 1, aim, False).astype(jnp.float32)
        return Intent(wanted, goal, jnp.asarray(noise, jnp.float32), jnp.float32(0.0))

    def steps(self, view: View) -> jax.Array:
        """[] int32, steps played in the episode."""
        return jnp.rint(view.time * self.game.horizon).astype(jnp.int32)

    @property
    def reach(self) -> int:
        """Half of the way between opposite corners, for distances that are drawn."""
        return max(1, sum(self.game.shape[:2]) // 2 - 1)


@dataclass(frozen=True)
class Together(Scripted):
    """Members of several families, of whom the one of that number acts: as it would by itself, but
    numbers are drawn and ways looked for once and not for each."""

    families: tuple[Family, ...]
    choice: jax.Array  # [] int32

    @property
    def uses_chance(self) -> bool:
        return True

    def decide(self, memory: tuple[Member, ...], view: View, key: jax.Array) -> Decision:
        drawn = jax.random.uniform(key, (NUMBERS,))
        each = zip(self.families, memory, strict=True)
        memories, intents = zip(*(one.step(kept, view, drawn) for one, kept in each), strict=True)
        intent = jax.tree.map(lambda *leaves: jnp.stack(leaves)[self.choice], *intents)
        return memories, *self.families[0].carry_out(view, intent)


def whole(number: jax.Array, low: int, high: int) -> jax.Array:
    """[] int32 from low to high, all alike for a uniform number."""
    return low + jnp.floor(number * (high - low + 1)).astype(jnp.int32)


def halves(shape: tuple[int, ...]) -> np.ndarray:
    """[4, H, W] bool, of a board. The middle row or column, where there is one, is in both."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    up, left = 2 * rows <= shape[0] - 1, 2 * columns <= shape[1] - 1
    return np.stack([up, up[::-1], left, left[:, ::-1]])


def distances(cells: jax.Array) -> jax.Array:
    """[H, W] int32 steps from everywhere to the nearest of the cells [H, W] bool, walls aside; more
    than any board has where there is none. First along rows, then along columns."""
    height, width = cells.shape
    down, right = (abs(np.subtract.outer(np.arange(n), np.arange(n))) for n in cells.shape)
    along = jnp.where(cells[:, None, :], right, height + width).min(axis=-1)  # [H, W]
    return (along[None] + down[..., None]).min(axis=1)


def others(seats: int, view: View) -> jax.Array:
    """[H, W] bool, where the others are."""
    return (view.planes[..., 1:seats] > 0).any(axis=-1)
