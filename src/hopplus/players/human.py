"""A person at the board."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.games.game import Game
from hopplus.games.grid import STAY
from hopplus.players.player import Plain, act_from
from hopplus.types import Act, Memory, View

HUMAN = "human"  # what the player is called wherever players are named


@dataclass(frozen=True)
class Human(Plain):
    """Acts as a person has chosen: its parameters are the action of the step to come, [] int32.

    So a person sits wherever a player can, and the same programs play, remember and look on.
    """

    actions: int
    goal_size: int

    @property
    def name(self) -> str:
        return HUMAN

    def init(self, key: jax.Array) -> jax.Array:
        return jnp.int32(STAY)

    def act(
        self, params: jax.Array, memory: Memory, view: View, key: jax.Array
    ) -> tuple[Memory, Act]:
        logits = jnp.where(jnp.arange(self.actions) == params, 0.0, -jnp.inf)
        return memory, act_from(logits, params, 0.0, jnp.zeros(self.goal_size))


def make_human(game: Game) -> Human:
    """A person for a game."""
    return Human(len(game.action_names), len(game.targets))
