"""An auxiliary model of one's own: a seat's reward, by its view and the joint action."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.config import AuxiliaryConfig
from hopplus.games.game import Game
from hopplus.learning.auxiliary.table import AuxiliaryRow, Chart
from hopplus.models.nets import Layers
from hopplus.types import Sample


@dataclass(frozen=True)
class RewardModel:
    """Two layers over the flattened view and the joint action, own first."""

    inputs: int
    actions: int

    def init(self, key: jax.Array) -> Layers:
        return Layers((self.inputs, 32, 1), key)

    def losses(self, params: Layers, sample: Sample, key: jax.Array) -> dict[str, jax.Array]:
        joint = jax.nn.one_hot(sample.joint, self.actions)
        predicted = params(jnp.concatenate([sample.view.planes.reshape(-1), joint.reshape(-1)]))[0]
        return {"squared_error": (predicted - sample.reward[0]) ** 2}

    def weight(self, sample: Sample) -> jax.Array:
        return sample.present[0].astype(jnp.float32)  # of a seat that has left there is no reward


def make_model(game: Game, settings: AuxiliaryConfig) -> RewardModel:
    actions = len(game.action_names)
    return RewardModel(math.prod(game.shape) + game.seats * actions, actions)


ROW = AuxiliaryRow(
    prefix="reward",
    settings=AuxiliaryConfig(fits=8, learning_rate=3e-3),
    model=make_model,
    figures={"reward/held_out_loss": "squared error of predicted rewards"},
    charts=(
        Chart(
            "Loss of the reward model",
            "Squared error, on steps learned from and on steps just played.",
            {"reward/loss/squared_error": "fitted", "reward/held_out_loss": "held out"},
        ),
    ),
)
