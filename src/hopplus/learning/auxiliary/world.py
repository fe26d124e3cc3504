"""A world model for each seat, learned while playing."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import optax

from hopplus.config import WorldLearnerConfig
from hopplus.learning.auxiliary.learner import CHECKED, AuxiliaryLearner, FitState, fitted, flat
from hopplus.learning.auxiliary.replay_buffer import drawn_rows, rows_at
from hopplus.learning.auxiliary.transitions import Transitions, own_sample, present_in
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
    name: ClassVar[str] = "world"

    @property
    def part(self) -> WorldPart:
        assert self.actor.parts.world is not None
        return self.actor.parts.world

    def init_optimiser(self, param_sets: PlayerParams) -> optax.OptState:
        return jax.vmap(self.optimiser.init)(param_sets.world)

    def rows(self, played: Transitions) -> Transitions:
        # The key too: what came of a step is found by playing it again.
        return flat(Transitions(played.state, played.joint, key=played.key))

    def measure(self, param_sets: PlayerParams, played: Transitions, key: jax.Array) -> Metrics:
        """`error` is the share of steps of which anything is foreseen wrongly: the planes, the own
        reward, who is gone, whose actions are legal, or the end."""
        fresh = self.rows(played)
        assert played.reward is not None
        tolerance = TOLERANCE * (played.reward.max() - played.reward.min())

        def one(world: World, seats: jax.Array, key: jax.Array) -> Metrics:
            samples = self._drawn(fresh, seats, key, CHECKED)
            counts = jax.vmap(self.part.weight)(samples)
            found = jax.vmap(lambda sample: _wrong(world, sample, tolerance))(samples)
            total = jnp.maximum(counts.sum(), 1.0)
            rates = {name: (value * counts).sum() / total for name, value in found.items()}
            # Where nobody was there to see anything, nothing is known to be right.
            return rates | {"error": jnp.where(counts.sum() > 0, rates["error"], 1.0)}

        assert param_sets.world is not None
        keys = jax.random.split(key, len(self.seats))
        return jax.vmap(one)(param_sets.world, jnp.asarray(self.seats), keys)

    def fit(
        self, param_sets: PlayerParams, auxiliary: FitState, key: jax.Array
    ) -> tuple[PlayerParams, FitState, Metrics]:
        c = self.config
        assert param_sets.world is not None

        def one(
            world: World, state: optax.OptState, seats: jax.Array, key: jax.Array
        ) -> tuple[World, optax.OptState, Metrics]:
            samples = self._drawn(auxiliary.buffer, seats, key, c.fits * c.batch)
            return fitted(self.part, c, self.optimiser, world, state, samples)

        keys = jax.random.split(key, len(self.seats))
        worlds, optimiser, losses = jax.vmap(one)(
            param_sets.world, auxiliary.optimiser, jnp.asarray(self.seats), keys
        )
        return replace(param_sets, world=worlds), FitState(optimiser, auxiliary.buffer), losses

    def _drawn(self, rows: Transitions, seats: jax.Array, key: jax.Array, count: int) -> Sample:
        """[count] samples of a set's own seats [k], of steps at which they are present."""
        present = present_in(self.game, rows)[:, seats]
        row, place = drawn_rows(key, present, count)
        samples: Sample = jax.vmap(partial(own_sample, self.game))(rows_at(rows, row), seats[place])
        return samples


def _wrong(world: World, sample: Sample, tolerance: jax.Array) -> Metrics:
    """Of one step, each 1 where it was foreseen wrongly; and how far off the own reward was."""
    prediction = world(sample.view, sample.joint)
    planes, gone = world.settled(prediction)
    off = jnp.abs(prediction.reward[0] - sample.reward[0])
    wrong = {
        "planes_wrong": (planes != sample.after.planes).any(),
        "reward_wrong": off > tolerance + 1e-3,
        "gone_wrong": (gone != ~sample.present_after).any(),
        "legal_wrong": ((prediction.legal > 0.5) != sample.legal_after).any(),
        "done_wrong": (prediction.done > 0.5) != sample.done,
    }
    error = jnp.stack(list(wrong.values())).any()
    return {"error": error, **wrong, "reward_off": off}
