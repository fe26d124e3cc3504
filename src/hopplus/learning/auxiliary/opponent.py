"""Models of the others' actions, learned while playing: for each seat one of each other."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.config import ConfigError, OpponentLearnerConfig, PretrainOpponent
from hopplus.learning.auxiliary.learner import CHECKED, AuxiliaryLearner, FitState, fitted, flat
from hopplus.learning.auxiliary.replay_buffer import drawn_rows, rows_at
from hopplus.learning.auxiliary.transitions import Transitions, other_samples, present_in
from hopplus.models.nets import Mlp
from hopplus.models.opponent import OpponentModel, OpponentPart
from hopplus.models.part import Metrics
from hopplus.players.actor import PlayerModels
from hopplus.players.parameters import PlayerParams
from hopplus.types import Sample


@dataclass(frozen=True)
class OpponentLearner(AuxiliaryLearner):
    """Each set of parameters learns what its seats see the others do."""

    config: OpponentLearnerConfig
    name: ClassVar[str] = "opponent"

    @property
    def part(self) -> OpponentPart:
        assert self.actor.parts.opponent is not None
        return self.actor.parts.opponent

    def init_optimiser(self, param_sets: PlayerParams) -> optax.OptState:
        return jax.vmap(jax.vmap(self.optimiser.init))(param_sets.opponents)

    def rows(self, played: Transitions) -> Transitions:
        return flat(Transitions(played.state, played.joint, inferred=played.inferred))

    def measure(self, param_sets: PlayerParams, played: Transitions, key: jax.Array) -> Metrics:
        """By class [A]: how many actions there were, and how many of them were the likeliest."""
        part = self.part
        fresh = self.rows(played)

        def one(model: OpponentModel, samples: Sample) -> Metrics:
            logits = jax.vmap(model)(samples.view, samples.goal)
            action = samples.joint[:, 0]
            counts = jax.vmap(part.weight)(samples)[:, None]
            classes = jax.nn.one_hot(action, part.actions) * counts
            hit = (logits.argmax(axis=-1) == action)[:, None]
            return {"count": classes.sum(axis=0), "hit": (classes * hit).sum(axis=0)}

        assert param_sets.opponents is not None
        samples = self._drawn(fresh, key, CHECKED)
        found = jax.vmap(jax.vmap(one))(param_sets.opponents, samples)  # [sets, N - 1, A]
        sums = {name: value.sum(axis=1) for name, value in found.items()}
        total = jnp.maximum(sums["count"].sum(axis=-1), 1.0)
        return {**sums, "accuracy": sums["hit"].sum(axis=-1) / total}

    def fit(
        self, param_sets: PlayerParams, auxiliary: FitState, key: jax.Array
    ) -> tuple[PlayerParams, FitState, Metrics]:
        part, c = self.part, self.config
        assert param_sets.opponents is not None
        samples = self._drawn(auxiliary.buffer, key, c.fits * c.batch)

        def one(
            model: OpponentModel, state: optax.OptState, samples: Sample
        ) -> tuple[OpponentModel, optax.OptState, Metrics]:
            return fitted(part, c, self.optimiser, model, state, samples)

        models, optimiser, losses = jax.vmap(jax.vmap(one))(
            param_sets.opponents, auxiliary.optimiser, samples
        )
        losses = {name: value.mean(axis=1) for name, value in losses.items()}
        return replace(param_sets, opponents=models), FitState(optimiser, auxiliary.buffer), losses

    def _drawn(self, rows: Transitions, key: jax.Array, count: int) -> Sample:
        """[sets, N - 1, count] samples of each other, of steps at which the own seat is present;
        those of others that are not have no weight."""
        present = present_in(self.game, rows)  # [R, N]
        learning = jnp.asarray(np.sort(self.seats.reshape(-1)))

        def of_set(seats: jax.Array, key: jax.Array) -> Sample:
            row, which = drawn_rows(key, present[:, seats], count)
            own = jnp.searchsorted(learning, seats[which])  # its number among those who learn
            found = jax.vmap(self._samples)(rows_at(rows, row), seats[which], own)
            by_other: Sample = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), found)
            return by_other

        keys = jax.random.split(key, len(self.seats))
        return jax.vmap(of_set)(jnp.asarray(self.seats), keys)

    def _samples(self, transition: Transitions, seat: jax.Array, own: jax.Array) -> Sample:
        assert transition.inferred is not None
        goals = self.actor.context.about_others(transition.inferred[own])
        samples = other_samples(self.game, transition, seat, goals)
        if not self.actor.context.gives_chances:
            return samples
        # Of someone who was not seen to have any of the goals, nothing is learned.
        known = goals.any(axis=1, keepdims=True)
        return replace(samples, present=samples.present & known)


def fitted_settings(run: PretrainOpponent) -> dict[str, Any]:
    """The settings of a model that a run has fitted, if it can be of use in play."""
    if run.opponent.goal != "none":
        raise ConfigError(
            f"--opponent.from is a run that was told the goal {run.opponent.goal}, which nobody"
            " knows in play: take one with --opponent.goal none"
        )
    return {"net": run.opponent.net}


def with_room_for_goals(model: OpponentModel, parts: PlayerModels) -> OpponentModel:
    """A model that was told no goals, as one that is and does not care yet."""
    assert parts.opponent is not None
    size = parts.opponent.goal

    def first(model: OpponentModel) -> jax.Array:
        dense = model.body if isinstance(model.body, Mlp) else model.body.dense
        return dense.dense.layers[0].weight

    wider: OpponentModel = eqx.tree_at(
        first, model, replace_fn=lambda weight: jnp.pad(weight, ((0, size), (0, 0)))
    )
    return wider
