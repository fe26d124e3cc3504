"""The seam between a seat and whoever sits there."""

from typing import Protocol, runtime_checkable

import jax

from hopplus.types import Act, Memory, Params, View


class Player(Protocol):
    """Decides for one seat; a frozen value, so that equal players can be told to be the same.

    Everything learned is in `params`, everything remembered in `memory`. A player sees its view
    and nothing else.
    """

    @property
    def name(self) -> str:
        """What the player is called on the command line and in tables."""
        ...

    @property
    def shares_params(self) -> bool:
        """Whether all its seats act by one set of parameters, or each by its own."""
        ...

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters; empty for players that do not learn."""
        ...

    def start(self) -> Memory:
        """The memory before an episode's first step."""
        ...

    def act(self, params: Params, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        """Choose an action."""
        ...


@runtime_checkable
class Keeping(Protocol):
    """A player that may remember something from one episode to the next."""

    @property
    def keeps(self) -> bool: ...

    def again(self, memory: Memory, view: View) -> Memory:
        """The memory before the next episode, from the last one's and what was seen at its end."""
        ...


@runtime_checkable
class Looking(Protocol):
    """A player that may be shown more than its view: who the others are, of those drawn."""

    @property
    def looks(self) -> bool: ...

    def look(self, memory: Memory, others: jax.Array) -> Memory:
        """The memory before an act, with the numbers [N - 1] of those in the seats after its own;
        -1 for who was not drawn."""
        ...
