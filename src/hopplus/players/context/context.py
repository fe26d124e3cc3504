"""The seam between a player and what it makes of the others."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.models.sampling import draw
from hopplus.players.parameters import PlayerParams
from hopplus.types import Memory, Outcome, Params, View


class Context:
    """Reads views into a memory, and that into numbers for the policy; a frozen value.

    Whoever has one asks what stands here, and never which one it is. A context of one's own says
    its `size`, what it infers, and what that is about each other; the rest has an answer already.
    """

    learned_by_policy: ClassVar[bool] = False
    """Whether its parameters learn by the policy's loss, through each game's steps in order."""
    gives_chances: ClassVar[bool] = False
    """Whether `about_others` are chances of G goals, of which an imagined other has one."""
    ignored_at_first: ClassVar[bool] = False
    """Whether the policy begins as one that is not given it, with the same numbers."""
    casts: ClassVar[bool] = False
    """Whether it knows players that the others may be, whom a search has act in their place."""

    @property
    def size(self) -> int:
        """Numbers that the policy and its value are given along with the view."""
        raise NotImplementedError

    @property
    def carries(self) -> bool:
        """Whether its memory goes on from an episode to the next one of the same trial."""
        return False

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters of its own, from the player's key: who draws folds 7 or more into it, as
        the player's models have the numbers before."""
        return ()

    def params_of(self, learned: PlayerParams) -> Params:
        """The parameters that `infer` is given: its own, unless it reads another model of the
        player's."""
        return learned.context

    def learnable(self, params: Params) -> Params | None:
        """Those of its parameters that the policy's loss improves; None for none."""
        return params if self.learned_by_policy else None

    def with_learned(self, params: Params, learned: Params | None) -> Params:
        """All of them with these in their place."""
        return params if learned is None else learned

    @property
    def infers(self) -> bool:
        """Whether it says anything about anyone."""
        return self.size > 0

    def start(self) -> Memory:
        """What is remembered before a trial's first step."""
        return ()

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        """The memory at a trial's first step, given the numbers [N - 1] of who sits in the seats
        after its own, of those possible. Only an oracle looks."""
        return memory

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        """The memory after everyone has acted, given what the others [N - 1, G] were after. Only an
        oracle listens."""
        return memory

    def carry(self, memory: Memory, view: View) -> Memory:
        """The memory before the next episode, from what was seen at the end of the last one."""
        return memory

    def infer(self, params: Params, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        """The memory after a view, and the context [size]."""
        raise NotImplementedError

    def about_others(self, context: jax.Array) -> jax.Array:
        """[N - 1, G] what models of the others are told of each; G may be 0."""
        raise NotImplementedError

    def foretold(self, context: jax.Array) -> jax.Array | None:
        """[N - 1, A] how likely each other is to act so next; None where only models of them say
        that."""
        return None

    def cast(self, memory: Memory, key: jax.Array) -> tuple[Any, jax.Array]:
        """Players drawn for the others by what is known of them, and [N - 1, A] chances of what
        these do next; if it `casts`."""
        raise NotImplementedError

    def rehearse(self, cast: Any, view: View) -> tuple[Any, jax.Array]:
        """The same after everyone has acted and this seat has a view, which is only imagined."""
        raise NotImplementedError

    def known_later(self, context: jax.Array, outcome: Outcome, seats: np.ndarray) -> jax.Array:
        """[T, B, n, size] what models of the others learn with in place of the context of these
        learning seats, now that it is known how things went on."""
        return context

    def relearned(self, learned: Params, said: jax.Array, *played: Any) -> jax.Array:
        """[T, size] as `replay`, of those parameters that the policy's loss improves; `said`
        [T, size] is what there was in play."""
        return self.replay(learned, *played)

    def replay(
        self, params: Params, before: Memory, views: View, begins: jax.Array, episode: jax.Array
    ) -> jax.Array:
        """[T, size] the context at each of [T] views in order, with the parameters as they are now;
        from what was remembered `before` each [T, ...] where an episode `begins` [T].

        `episode` [T] is its number in the trial: where it is not 0, a context that lets gradients
        pass from episode to episode may go on with its own memory instead.
        """

        def step(memory: Memory, now: tuple[Memory, View, jax.Array]) -> tuple[Memory, jax.Array]:
            before, view, begins = now
            memory = jax.tree.map(lambda a, b: jnp.where(begins, a, b), before, memory)
            return self.infer(params, memory, view)

        first = jax.tree.map(lambda leaf: leaf[0], before)
        return jax.lax.scan(step, first, (before, views, begins))[1]


@dataclass(frozen=True)
class NoContext(Context):
    """The view is all that the policy goes by."""

    others: int = 0  # N - 1

    @property
    def size(self) -> int:
        return 0

    def infer(self, params: Params, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        return memory, jnp.zeros(0)

    def about_others(self, context: jax.Array) -> jax.Array:
        return jnp.zeros((self.others, 0))


def goal_size(context: Context) -> int:
    """Numbers that models of the others are told about each."""
    shape: Any = jax.eval_shape(
        context.about_others, jax.ShapeDtypeStruct((context.size,), jnp.float32)
    )
    return int(shape.shape[1])


def suppose(context: Context, about: jax.Array, key: jax.Array) -> jax.Array:
    """[N - 1, G] what an imagined other is after: as it is told, or drawn where that is chances."""
    if not context.gives_chances:
        return about
    return jax.nn.one_hot(draw(key, about), about.shape[1])
