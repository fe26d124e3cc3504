"""The models that a learning player has beside its policy and its context."""

from dataclasses import dataclass
from typing import Any

import jax

from hopplus.config import TrainConfig
from hopplus.games.game import Game
from hopplus.models.goal import GoalPart
from hopplus.models.opponent import OpponentPart
from hopplus.models.world import board_of
from hopplus.models.world_part import WorldPart
from hopplus.players.context.context import Context, goal_size


@dataclass(frozen=True)
class PlayerModels:
    """Those of one seat; None for models it does without."""

    prior: GoalPart | None = None
    opponent: OpponentPart | None = None
    world: WorldPart | None = None
    others: int = 0

    def init(self, key: jax.Array) -> dict[str, Any]:
        """Fresh parameters, by the field of `PlayerParams`."""
        key_prior, key_others, key_world = (jax.random.fold_in(key, n) for n in (1, 3, 4))
        keys_others = jax.random.split(key_others, self.others)
        return {
            "prior": self.prior.init(key_prior) if self.prior else None,
            "opponents": jax.vmap(self.opponent.init)(keys_others) if self.opponent else None,
            "world": self.world.init(key_world) if self.world else None,
        }


def make_player_models(game: Game, config: TrainConfig, context: Context) -> PlayerModels:
    """The models that a configuration asks for, of a player with that context."""
    actions, others = len(game.action_names), game.seats - 1
    prior = opponent = world = None
    if "goal" in config.parts:
        prior = GoalPart(game.shape, actions, config.goal.prior)
    if "opponent" in config.parts:
        weights, net = (1.0,) * actions, config.opponent.net
        told = goal_size(context)
        opponent = OpponentPart(game.shape, game.seats, actions, told, net, weights)
    if "world" in config.parts:
        world = WorldPart(board_of(game), config.world.model)
    return PlayerModels(prior, opponent, world, others)
