"""Several contexts side by side: a policy that is given what each of them says."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.players.context.context import Context, goal_size
from hopplus.players.parameters import PlayerParams
from hopplus.types import Memory, Outcome, Params, View


@dataclass(frozen=True)
class JoinedContext(Context):
    """All that its contexts say, one after the other. Models of the others are told what the first
    of them says that has anything to say about each."""

    contexts: tuple[Context, ...]

    # What is asked of the class elsewhere hangs on the contexts here.
    @property
    def learned_by_policy(self) -> bool:  # type: ignore[override]
        return any(one.learned_by_policy for one in self.contexts)

    @property
    def gives_chances(self) -> bool:  # type: ignore[override]
        return self._telling[0].gives_chances

    @property
    def ignored_at_first(self) -> bool:  # type: ignore[override]
        return all(one.ignored_at_first for one in self.contexts)

    @property
    def casts(self) -> bool:  # type: ignore[override]
        return any(one.casts for one in self.contexts)

    @property
    def size(self) -> int:
        return sum(one.size for one in self.contexts)

    @property
    def infers(self) -> bool:
        return any(one.infers for one in self.contexts)

    @property
    def carries(self) -> bool:
        return any(one.carries for one in self.contexts)

    @property
    def _telling(self) -> tuple[Context, slice]:
        """Who tells of the others, and where its numbers are."""
        told = [one for one in self.contexts if goal_size(one)] or self.contexts
        return next(
            (one, slice(end - one.size, end))
            for one, end in zip(self.contexts, self._ends, strict=True)
            if one is told[0]
        )

    @property
    def _ends(self) -> np.ndarray:
        return np.cumsum([one.size for one in self.contexts])

    def _each(self, ask: Callable[..., Any], *given: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(ask(*one) for one in zip(self.contexts, *given, strict=True))

    def init(self, key: jax.Array) -> Params:
        return self._each(lambda one: one.init(key))

    def params_of(self, learned: PlayerParams) -> Params:
        return self._each(
            lambda one, own: one.params_of(replace(learned, context=own)), learned.context
        )

    def start(self) -> Memory:
        return self._each(lambda one: one.start())

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        return self._each(lambda one, own: one.meet(own, others), memory)

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        return self._each(lambda one, own: one.overhear(own, goals), memory)

    def carry(self, memory: Memory, view: View) -> Memory:
        return self._each(
            lambda one, own: one.carry(own, view) if one.carries else one.start(), memory
        )

    def infer(self, params: Params, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        found = self._each(lambda one, own, kept: one.infer(own, kept, view), params, memory)
        return tuple(kept for kept, _ in found), jnp.concatenate([said for _, said in found])

    def about_others(self, context: jax.Array) -> jax.Array:
        one, place = self._telling
        return one.about_others(context[place])

    def foretold(self, context: jax.Array) -> jax.Array | None:
        parts = jnp.split(context, self._ends[:-1], axis=-1)
        said = self._each(lambda one, part: one.foretold(part), tuple(parts))
        return next((one for one in said if one is not None), None)

    def cast(self, memory: Memory, key: jax.Array) -> tuple[Any, jax.Array]:
        each = zip(self.contexts, memory, strict=True)
        return next(one.cast(kept, key) for one, kept in each if one.casts)

    def rehearse(self, cast: Any, view: View) -> tuple[Any, jax.Array]:
        return next(one.rehearse(cast, view) for one in self.contexts if one.casts)

    def known_later(self, context: jax.Array, outcome: Outcome, seats: np.ndarray) -> jax.Array:
        parts = tuple(jnp.split(context, self._ends[:-1], axis=-1))
        later = self._each(lambda one, part: one.known_later(part, outcome, seats), parts)
        return jnp.concatenate(later, axis=-1)

    def learnable(self, params: Params) -> Params | None:
        return self._each(lambda one, own: one.learnable(own), params)

    def with_learned(self, params: Params, learned: Params | None) -> Params:
        if learned is None:
            return params
        return self._each(lambda one, own, new: one.with_learned(own, new), params, learned)

    def relearned(self, learned: Params, said: jax.Array, *played: Any) -> jax.Array:
        """Those that the policy does not teach say what they said in play."""
        before, *seen = played

        def again(one: Context, own: Params, part: jax.Array, kept: Memory) -> jax.Array:
            return one.relearned(own, part, kept, *seen) if one.learned_by_policy else part

        parts = tuple(jnp.split(said, self._ends[:-1], axis=-1))
        return jnp.concatenate(self._each(again, learned, parts, before), axis=-1)


def join(*contexts: Context) -> Context:
    """One context of several; a single one stays as it is."""
    return contexts[0] if len(contexts) == 1 else JoinedContext(contexts)
