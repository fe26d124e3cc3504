"""A player that acts by a learned policy."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.config import NetConfig
from hopplus.games.game import Game
from hopplus.models.nets import ActorCritic
from hopplus.players.choice import act_from, draw
from hopplus.types import Act, Memory, Params, View


@dataclass(frozen=True)
class Actor:
    """Draws from its policy, or with `greedy` takes what it finds best."""

    name: str
    shape: tuple[int, int, int]  # height, width, planes
    actions: int
    goal_size: int  # of the acts of others at the board; its own goals are zero
    net: NetConfig
    shares_params: bool = False  # one set of parameters for all its seats
    greedy: bool = False
    remembers: bool = False  # whether its memory carries anything from step to step

    def init(self, key: jax.Array) -> Params:
        return ActorCritic(self.shape, self.actions, self.net, key)

    def start(self) -> Memory:
        return ()

    def judge(self, params: ActorCritic, view: View) -> tuple[jax.Array, jax.Array]:
        """[A] log-probabilities and [] value of one view."""
        return params(view)

    def act(self, params: Params, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        logits, value = self.judge(params, view)
        action = jnp.argmax(logits) if self.greedy else draw(key, jnp.exp(logits))
        return memory, act_from(logits, action, value, jnp.zeros(self.goal_size))


def make_actor(name: str, game: Game, net: NetConfig, *, shares_params: bool = False) -> Actor:
    """A learning player for a game."""
    return Actor(name, game.shape, len(game.action_names), len(game.targets), net, shares_params)
