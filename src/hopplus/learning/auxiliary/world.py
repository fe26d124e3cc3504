"""A world model for each seat, learned while playing."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import WorldLearnerConfig
from hopplus.learning.auxiliary.learner import AuxiliaryLearner
from hopplus.learning.auxiliary.transitions import Transitions
from hopplus.models.part import Metrics
from hopplus.models.world import World
from hopplus.models.world_part import WorldPart
from hopplus.players.parameters import PlayerParams
from hopplus.types import Sample

TOLERANCE = 0.05  # of the range of real rewards: a reward predicted further off is wrong


@dataclass(frozen=True)
class WorldLearner(AuxiliaryLearner):
    """Each set of parameters learns what joint actions bring to its own seats."""

    config: WorldLearnerConfig

    @property
    def part(self) -> WorldPart:
        assert self.actor.parts.world is not None
        return self.actor.parts.world

    def own(self, player_params: PlayerParams) -> World:
        assert player_params.world is not None
        return player_params.world

    def with_own(self, player_params: PlayerParams, own: World) -> PlayerParams:
        return replace(player_params, world=own)

    def score(self, player_params: PlayerParams, samples: Sample, played: Transitions) -> Metrics:
        """`error` is the share of steps of which anything is foreseen wrongly: the planes, the own
        reward, who is gone, whose actions are legal, or the end."""
        assert played.reward is not None
        tolerance = TOLERANCE * (played.reward.max() - played.reward.min())
        counts = jax.vmap(self.part.weight)(samples)
        world = self.own(player_params)
        found = jax.vmap(lambda sample: _wrong(world, sample, tolerance))(samples)
        total = jnp.maximum(counts.sum(), 1.0)
        rates = {name: (value * counts).sum() / total for name, value in found.items()}
        # Where nobody was there to see anything, nothing is known to be right.
        return rates | {"error": jnp.where(counts.sum() > 0, rates["error"], 1.0)}


def _wrong(world: World, sample: Sample, tolerance: jax.Array) -> Metrics:
    """Of one step, each 1 where it was foreseen wrongly; and how far off the own reward was."""
    prediction = world(sample.view, sample.joint)
    planes, gone = world.settled(prediction)
    off = jnp.abs(prediction.reward[0] - sample.reward[0])
    # Nobody can know where something comes back by chance.
    chance = np.isin(np.arange(planes.shape[-1]), world.board.returning)
    chance = chance & (sample.after.planes > sample.view.planes)
    wrong = {
        "planes_wrong": ((planes != sample.after.planes) & ~chance).any(),
        "reward_wrong": off > tolerance + 1e-3,
        "gone_wrong": (gone != ~sample.present_after).any(),
        "legal_wrong": ((prediction.legal > 0.5) != sample.legal_after).any(),
        "done_wrong": (prediction.done > 0.5) != sample.done,
    }
    error = jnp.stack(list(wrong.values())).any()
    return {"error": error, **wrong, "reward_off": off}
