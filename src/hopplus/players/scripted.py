"""Scripted players: simple, without parameters, and with exactly known action distributions.

`Act.logits` is the distribution the action was drawn from, to the last digit, so the best possible
accuracy of any model of such a player can be computed. `Act.goal` is one-hot over the kinds of
things on the board (zero for a player that is after none).
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from hopplus.config import ConfigError
from hopplus.games.game import Game, Target
from hopplus.games.grid import STAY
from hopplus.models.sampling import draw
from hopplus.players.player import Around, Own, Plain, Player, act_from
from hopplus.players.shortest_paths import first_moves
from hopplus.registry import Registry, import_named
from hopplus.types import Act, Memory, Params, View

Decision: TypeAlias = tuple[Memory, jax.Array, jax.Array]  # [A] probabilities of acts, [G] goal


class Scripted(Plain):
    """What scripted players share: `decide` says what sets one apart, and `act` draws from that."""

    @property
    def uses_chance(self) -> bool:
        """Whether `decide` draws anything itself."""
        return False

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        """What it does, and what it is after."""
        raise NotImplementedError

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
        wanted = jnp.zeros(view.legal.shape, bool).at[:STAY].set(first_moves(here, things, walls))
        if self.target.action is not None:  # else it is taken by being walked onto
            wanted = wanted.at[self.target.action].set((here & things).any())
        wanted = wanted.at[STAY].set(~wanted.any())
        return uniform(wanted)


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

    script: Seek | Switch | Grudge
    rate: float

    @property
    def name(self) -> str:
        return f"noisy-{self.script.name}:{self.rate!r}"

    @property
    def inner(self) -> Seek | Switch | Grudge:
        return self.script

    @property
    def uses_chance(self) -> bool:
        return self.script.uses_chance

    def decide(self, memory: Memory, view: View, key: jax.Array) -> Decision:
        memory, probabilities, goal = self.script.decide(memory, view, key)
        mixed = (1 - self.rate) * probabilities + self.rate * uniform(view.legal)
        return memory, mixed, goal


def _seekers(game: Game) -> tuple[Seek, ...]:
    """One for each kind of thing on the board."""
    obstacles, kinds = game.seats, len(game.targets)
    return tuple(
        Seek(called, target, kind, kinds, obstacles)
        for kind, (called, target) in enumerate(game.targets.items())
    )


class Row(NamedTuple):
    """A player that is found by name in any game."""

    make: Callable[[Game], Player]
    about: Callable[[Game], str]  # what it does, in words


# Besides those that are called after the things on the board. To add a player of one's own:
# SCRIPTED.add(name, Row(make, about)); or name it module:function, and no row is needed.
SCRIPTED: Registry[Row] = Registry(
    "player",
    {
        "random": Row(
            lambda game: Random(len(game.targets)),
            lambda game: "any legal action, all alike",
        ),
        "switch": Row(
            lambda game: Switch(_seekers(game)),
            lambda game: f"draws {' or '.join(game.targets)} anew each episode",
        ),
        "grudge": Row(
            lambda game: Grudge(_seekers(game)),
            lambda game: (
                f"goes for {next(iter(game.targets))} until another does not, and for"
                f" {list(game.targets)[-1]} in the trial's episodes after that"
            ),
        ),
    },
)
OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:function, and never noisy-stag:0.1


def player_names(game: Game) -> dict[str, str]:
    """The scripted players of a game: how each is called, and what it does."""
    seekers = {k: f"goes to the nearest {k} it sees and takes it" for k in game.targets}
    rows = {name: row.about(game) for name, row in SCRIPTED.items()}
    noisy = {
        f"noisy-{name}:P": f"as {name}, but any legal action with probability P"
        for name in (*seekers, "switch", "grudge")
    }
    return {"random": rows.pop("random"), **seekers, **rows, **noisy}


def mixed_names(game: Game) -> tuple[str, ...]:
    """The scripted players that mixtures are made of: one for each kind of thing, and `random`."""
    return (*game.targets, "random")


def scripted(name: str, game: Game) -> Player:
    """The player of that name that has not learned, such as `stag`, `random`, `noisy-hare:0.1`, or
    somebody's own: `module:function`, a function from the game to the player."""
    seekers = {seeker.name: seeker for seeker in _seekers(game)}
    if name in seekers:
        return seekers[name]
    if name in SCRIPTED:
        return SCRIPTED[name].make(game)
    if OWN.fullmatch(name):
        return Own(name, import_named(name, "player")(game))
    base, _, rate = name.removeprefix("noisy-").partition(":")
    if name.startswith("noisy-") and base in (*seekers, *SCRIPTED):
        player = scripted(base, game)
        if isinstance(player, Seek | Switch | Grudge):
            return Noisy(player, _rate(name, rate))
    known = list(player_names(game))
    near = difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"no player is called {name!r}{hint}; there are {', '.join(known)}")


def drawn_from(name: str, game: Game) -> list[str]:
    """The players without memory of whom a player is one, drawn anew each episode in the order of
    the game's targets: two for a switch, and only itself for any other."""
    if not re.fullmatch(r"switch|noisy-switch:.*", name):
        return [name]
    return [name.replace("switch", kind) for kind in game.targets]


def _rate(name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise ConfigError(
            f"player {name!r} needs a rate from 0 to 1 behind a colon, as in noisy-stag:0.1"
        )
    return rate
