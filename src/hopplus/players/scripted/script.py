"""Scripted players: simple, without parameters, and with exactly known action distributions.

`Act.logits` is the distribution the action was drawn from, to the last digit, so the best possible
accuracy of any model of such a player can be computed. `Act.goal` is one-hot over the kinds of
things on the board (zero for a player that is after none, or after any).
"""

from dataclasses import dataclass
from typing import TypeAlias, cast

import jax
import jax.numpy as jnp

from hopplus.games.game import Target
from hopplus.games.grid import STAY
from hopplus.games.shortest_paths import first_moves
from hopplus.models.sampling import draw
from hopplus.players.player import Around, Plain, Player, act_from
from hopplus.types import Act, Memory, Params, View

Decision: TypeAlias = tuple[Memory, jax.Array, jax.Array]  # [A] probabilities of acts, [G] goal


class Scripted(Plain):
    """What scripted players share: `decide` says what sets one apart, and `act` draws from that."""

    @property
    def uses_chance(self) -> bool:
        """Whether `decide` draws anything itself."""
        return False

    def member(self, numbers: jax.Array) -> Memory:
        """The memory before a trial of the one that these numbers stand for, where many have the
        name."""
        return self.start()

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        """What it does, and what it is after."""
        raise NotImplementedError

    def expected(self, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        """The memory and [A] probabilities of acts, of one that has drawn already what it draws."""
        return self.decide(memory, view, jax.random.key(0))[:2]

    def act(self, params: Params, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        key_decide = key
        if self.uses_chance:  # a key is spent once: who draws twice needs two
            key, key_decide = jax.random.split(key)
        memory, probabilities, goal = self.decide(memory, view, key_decide)
        action = draw(key, probabilities)
        return memory, act_from(jnp.log(probabilities), action, 0.0, goal)


def uniform(legal: jax.Array) -> jax.Array:
    """[A] probabilities: every legal action alike."""
    return legal / legal.sum(dtype=jnp.float32)


def towards(
    view: View, here: jax.Array, things: jax.Array, walls: jax.Array, action: int | None
) -> jax.Array:
    """[A] probabilities: the first moves of all shortest ways from `here` to the nearest of the
    things, alike, or the `action` that takes one where that is not done by walking onto it; stay
    with nothing to reach. Cells are [H, W] bool."""
    wanted = jnp.zeros(view.legal.shape, bool).at[:STAY].set(first_moves(here, things, walls))
    if action is not None:
        wanted = wanted.at[action].set((here & things).any())
    wanted = wanted.at[STAY].set(~wanted.any())
    return uniform(wanted)


def staying(view: View) -> jax.Array:
    """[A] probabilities of who never does anything."""
    return jax.nn.one_hot(STAY, view.legal.shape[0])


@dataclass(frozen=True)
class Random(Scripted):
    """Any legal action, all alike."""

    kinds: int
    name: str = "random"

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        return memory, uniform(view.legal), jnp.zeros(self.kinds)


@dataclass(frozen=True)
class Seek(Scripted):
    """Walks the shortest way to the nearest thing of a kind it sees and takes it.

    Every move that starts a shortest way is equally likely; with nothing to reach it stays.
    """

    name: str
    target: Target
    kind: int
    kinds: int
    obstacles: int  # the plane that shows them

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        goal = jax.nn.one_hot(self.kind, self.kinds)
        return memory, self.probabilities(view), goal

    def probabilities(self, view: View) -> jax.Array:
        """[A] where to go from here."""
        here, things, walls = (
            view.planes[..., plane] > 0 for plane in (0, self.target.plane, self.obstacles)
        )
        return towards(view, here, things, walls, self.target.action)


@dataclass(frozen=True)
class Switch(Scripted):
    """Draws one of several scripts anew each episode and keeps to it."""

    scripts: tuple[Seek, ...]
    name: str = "switch"

    @property
    def uses_chance(self) -> bool:
        return True

    def start(self) -> Memory:
        return jnp.int32(-1)  # not drawn yet

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        drawn = jax.random.randint(key, (), 0, len(self.scripts), jnp.int32)
        choice = jnp.where(memory < 0, drawn, memory)
        decisions = [script.decide((), view, key)[1:] for script in self.scripts]
        probabilities, goal = (jnp.stack(part)[choice] for part in zip(*decisions, strict=True))
        return choice, probabilities, goal


@dataclass(frozen=True)
class Grudge(Scripted):
    """Goes for the first kind of thing until another takes one of a later kind, and from the next
    episode of the trial on for the last kind."""

    scripts: tuple[Seek, ...]
    name: str = "grudge"

    @property
    def carries(self) -> bool:
        return True

    def start(self) -> Memory:
        return jnp.zeros(2, bool)  # it bears a grudge; it has been given cause to since

    def carry(self, memory: Memory, view: View) -> Memory:
        given = memory.any() | self.slighted(view)  # with the last acts, which nobody acts after
        return jnp.stack([given, jnp.bool_(False)])

    def slighted(self, view: View) -> jax.Array:
        """[] bool, whether another has just taken what it should not have."""
        bad = jnp.array([script.target.action for script in self.scripts[1:]], jnp.int32)
        return (view.last_actions[1:, None] == bad).any()

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        good, bad = (one.decide((), view, key)[1:] for one in (self.scripts[0], self.scripts[-1]))
        probabilities, goal = (jnp.where(memory[0], b, a) for a, b in zip(good, bad, strict=True))
        return memory.at[1].set(memory[1] | self.slighted(view)), probabilities, goal


@dataclass(frozen=True)
class Noisy(Around, Scripted):
    """Another script that, with a fixed rate, takes any legal action instead; what is remembered is
    up to that one."""

    script: Scripted
    rate: float

    @property
    def name(self) -> str:
        return f"noisy-{self.inner.name}:{self.rate!r}"

    @property
    def inner(self) -> Player:
        return cast(Player, self.script)  # one with a name

    @property
    def uses_chance(self) -> bool:
        return self.script.uses_chance

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        memory, probabilities, goal = self.script.decide(memory, view, key)
        mixed = (1 - self.rate) * probabilities + self.rate * uniform(view.legal)
        return memory, mixed, goal
