"""A context of one's own: how often each other was seen to take each action in this trial."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.config import TrainConfig
from hopplus.games.game import Game
from hopplus.players.context.context import Context
from hopplus.types import View


@dataclass(frozen=True)
class SeenActs(Context):
    """The mean of the others' actions; it learns nothing and lasts for a trial."""

    others: int
    actions: int
    carries = True  # from episode to episode of a trial

    @property
    def size(self) -> int:
        return self.others * self.actions

    def start(self) -> jax.Array:
        return jnp.zeros((self.others, self.actions))

    def infer(self, params: Any, memory: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        # The first of a view's last actions is the seat's own; -1 is none, which counts nothing.
        memory = memory + jax.nn.one_hot(view.last_actions[1:], self.actions)
        return memory, (memory / jnp.maximum(memory.sum(axis=1, keepdims=True), 1.0)).reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        return context.reshape(self.others, self.actions)


def make_context(game: Game, config: TrainConfig) -> SeenActs:
    return SeenActs(game.seats - 1, len(game.action_names))
