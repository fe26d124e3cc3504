"""The seam between a seat and whoever sits there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from hopplus.types import Act, Memory, Params, View

WIDE = ("inferred", "extras")  # fields of an act that are as wide as a player makes them


class Player(Protocol):
    """Decides for one seat; a frozen value, so that equal players can be told to be the same.

    Everything learned is in `params`, everything remembered in `memory`. A player sees its view
    and nothing else.
    """

    @property
    def name(self) -> str:
        """What the player is called on the command line and in tables."""

    @property
    def shares_params(self) -> bool:
        """Whether all its seats act by one set of parameters, or each by its own."""

    @property
    def carries(self) -> bool:
        """Whether its memory goes on from an episode to the next one of the same trial."""

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters; empty for players that do not learn."""

    def start(self) -> Memory:
        """The memory before a trial's first step, and each episode's if it carries nothing."""

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        """The memory after `start`, given who sits in the seats after its own: the numbers [N - 1]
        of those drawn from mixtures, -1 elsewhere. Honest players do not look."""

    def carry(self, memory: Memory, view: View) -> Memory:
        """The memory before the trial's next episode, from what was seen at the end of the last
        one; asked for only of who carries."""

    def act(self, params: Params, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        """Choose an action."""


@runtime_checkable
class Listener(Protocol):
    """A player that may be told more than it sees, as an oracle is."""

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        """The memory after everyone has acted, given what those in the seats after its own were
        after [N - 1, G]."""


class Plain:
    """What most players say: nothing is learned, and nothing kept. A player of one's own may build
    on it, and then needs no more than a name and `act`."""

    @property
    def shares_params(self) -> bool:
        return False

    @property
    def carries(self) -> bool:
        return False

    def init(self, key: jax.Array) -> Params:
        return ()

    def start(self) -> Memory:
        return ()

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        return memory

    def carry(self, memory: Memory, view: View) -> Memory:
        return memory


class Around:
    """A player around another, who answers for it in everything but its acts."""

    @property
    def inner(self) -> Player:
        """The other."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def shares_params(self) -> bool:
        return self.inner.shares_params

    @property
    def carries(self) -> bool:
        return self.inner.carries

    def init(self, key: jax.Array) -> Params:
        return self.inner.init(key)

    def start(self) -> Memory:
        return self.inner.start()

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        return self.inner.meet(memory, others)

    def carry(self, memory: Memory, view: View) -> Memory:
        return self.inner.carry(memory, view)

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        return self.inner.overhear(memory, goals) if isinstance(self.inner, Listener) else memory


@dataclass(frozen=True)
class Own(Around):
    """Somebody's own player, called by the name that finds it again, whatever it calls itself."""

    called: str
    player: Player

    @property
    def name(self) -> str:
        return self.called

    @property
    def inner(self) -> Player:
        return self.player

    def act(self, params: Params, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        return self.player.act(params, memory, view, key)


def act_from(
    logits: jax.Array,
    action: jax.Array,
    value: jax.Array | float,
    goal: jax.Array,
    inferred: jax.Array | None = None,
) -> Act:
    """The act of taking an action under [A] normalised log-probabilities."""
    return Act(
        action=action.astype(jnp.int32),
        logits=logits,
        log_prob=logits[action],
        value=jnp.asarray(value, jnp.float32),
        goal=goal,
        inferred=jnp.zeros(0) if inferred is None else inferred,
        extras=jnp.zeros(0),
    )


def alike(acts: Sequence[Act]) -> list[Act]:
    """The same acts with what they infer and tell filled up with zeros to one size."""

    def widened(act: Act, name: str) -> jax.Array:
        leaf: jax.Array = getattr(act, name)
        size = max(getattr(other, name).shape[-1] for other in acts)
        return jnp.pad(leaf, [(0, 0)] * (leaf.ndim - 1) + [(0, size - leaf.shape[-1])])

    return [replace(act, **{name: widened(act, name) for name in WIDE}) for act in acts]
