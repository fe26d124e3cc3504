"""Somebody who watches the others beside a player, and says who might be sitting there."""

from dataclasses import dataclass
from typing import Any

import jax

from hopplus.players.context.context import Context
from hopplus.players.parameters import PlayerParams
from hopplus.types import Memory, Params, View


@dataclass(frozen=True)
class CastingContext(Context):
    """What the policy has learned to be told, `told`, and a context that it is not told of, by
    which a search casts the others. For play: nothing here goes on learning."""

    told: Context
    watching: Context

    # What is asked of the class elsewhere hangs on what the policy is told.
    @property
    def learned_by_policy(self) -> bool:  # type: ignore[override]
        return self.told.learned_by_policy

    @property
    def gives_chances(self) -> bool:  # type: ignore[override]
        return self.told.gives_chances

    @property
    def ignored_at_first(self) -> bool:  # type: ignore[override]
        return self.told.ignored_at_first

    @property
    def casts(self) -> bool:  # type: ignore[override]
        return True

    @property
    def size(self) -> int:
        return self.told.size

    @property
    def infers(self) -> bool:
        return self.told.infers

    @property
    def carries(self) -> bool:
        return self.told.carries or self.watching.carries

    def init(self, key: jax.Array) -> Params:
        return self.told.init(key)

    def params_of(self, learned: PlayerParams) -> Params:
        return self.told.params_of(learned)

    def start(self) -> Memory:
        return self.told.start(), self.watching.start()

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        return self.told.meet(memory[0], others), self.watching.meet(memory[1], others)

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        return self.told.overhear(memory[0], goals), self.watching.overhear(memory[1], goals)

    def carry(self, memory: Memory, view: View) -> Memory:
        both = zip((self.told, self.watching), memory, strict=True)
        return tuple(one.carry(kept, view) if one.carries else one.start() for one, kept in both)

    def infer(self, params: Params, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        kept, said = self.told.infer(params, memory[0], view)
        return (kept, self.watching.infer((), memory[1], view)[0]), said

    def about_others(self, context: jax.Array) -> jax.Array:
        return self.told.about_others(context)

    def foretold(self, context: jax.Array) -> jax.Array | None:
        return self.told.foretold(context)

    def cast(self, memory: Memory, key: jax.Array) -> tuple[Any, jax.Array]:
        return self.watching.cast(memory[1], key)

    def rehearse(self, cast: Any, view: View) -> tuple[Any, jax.Array]:
        return self.watching.rehearse(cast, view)
