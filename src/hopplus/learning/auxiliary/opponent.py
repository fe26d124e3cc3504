"""Models of the others' actions, learned while playing: for each seat one of each other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from hopplus.config import ConfigError, OpponentLearnerConfig, PretrainOpponent
from hopplus.games.game import Game
from hopplus.learning.auxiliary.learner import AuxiliaryLearner, flat, number_among
from hopplus.learning.auxiliary.transitions import (
    Transitions,
    draw_present,
    earned_later,
    other_samples,
    present_in,
    push,
)
from hopplus.models.nets import first_layer
from hopplus.models.opponent import OpponentModel, OpponentPart
from hopplus.models.part import Metrics
from hopplus.players.actor import PlayerModels
from hopplus.players.parameters import PlayerParams
from hopplus.recorded.models import Setting
from hopplus.types import Params, Sample


class Drawn(NamedTuple):
    """Samples [N - 1, count] of each other, and whether it had left by then, whatever the sample
    says of it."""

    samples: Sample
    left: jax.Array


@dataclass(frozen=True)
class OpponentLearner(AuxiliaryLearner):
    """Each set of parameters learns what its seats see the others do."""

    config: OpponentLearnerConfig
    # What a step tells of the others; a field, for the diagnosis to put another in.
    sample: Callable[[Game, Transitions, jax.Array, jax.Array], Sample] = other_samples

    @property
    def part(self) -> OpponentPart:
        assert self.actor.parts.opponent is not None
        return self.actor.parts.opponent

    def own(self, player_params: PlayerParams) -> OpponentModel:
        assert player_params.opponents is not None
        return player_params.opponents

    def with_own(self, player_params: PlayerParams, own: OpponentModel) -> PlayerParams:
        return replace(player_params, opponents=own)

    def init_optimiser(self, own: OpponentModel) -> optax.OptState:
        return jax.vmap(self.optimiser.init)(own)  # one for each other

    def rows(self, played: Transitions) -> Transitions:
        kept = Transitions(played.state, played.joint, inferred=played.inferred)
        if self.config.data == "rewarded":
            # All of it is measured on, whatever comes of it.
            earned = jnp.ones_like(played.joint, bool)
            kept = replace(kept, done=played.done, earned=earned)
        return flat(kept)

    def keep(self, buffer: Transitions, played: Transitions, updates: jax.Array) -> Transitions:
        if self.config.data == "all":
            return super().keep(buffer, played, updates)
        assert played.reward is not None
        earned = flat(played.reward) > 0
        buffer = push(buffer, replace(self.rows(played), earned=earned), updates)
        assert buffer.earned is not None
        assert buffer.done is not None
        steps = played.joint.shape[0], played.joint.shape[1]
        # An episode that was under way at the end of an update goes on in the next one.
        later = earned_later(buffer.earned, buffer.done, steps, updates)
        return replace(buffer, earned=later)

    def usable(self, buffer: Transitions) -> jax.Array:
        """Where rewarded steps alone are kept, those at which any other went on to earn one."""
        there = super().usable(buffer)
        if buffer.earned is None:
            return there
        earned = there & buffer.earned
        others = earned.sum(axis=-1, keepdims=True) - earned > 0
        return there & others

    def score(self, player_params: PlayerParams, samples: Drawn, played: Transitions) -> Metrics:
        """By other and class [N - 1, A]: how many actions there were, and of how many of them no
        other class was likelier (`hit`), or two at most (`hit_top3`); of others that were there."""
        part = self.part

        def of_other(model: OpponentModel, drawn: Drawn) -> Metrics:
            samples, left = drawn
            logits = jax.vmap(model)(samples.view, samples.goal)
            action = samples.joint[:, :1]
            counts = jnp.where(left, 0.0, jax.vmap(part.weight)(samples))[:, None]
            classes = jax.nn.one_hot(action[:, 0], part.actions) * counts
            own = jnp.take_along_axis(logits, action, axis=1)
            # Of classes that are as likely, the first one comes first.
            likelier = (logits > own) | ((logits == own) & (jnp.arange(part.actions) < action))
            rank = likelier.sum(axis=1, keepdims=True)
            found = {
                "count": classes,
                "hit": classes * (rank == 0),
                "hit_top3": classes * (rank < 3),
            }
            return {name: value.sum(axis=0) for name, value in found.items()}

        sums = jax.vmap(of_other)(self.own(player_params), samples)  # [N - 1, A]
        total = jnp.maximum(sums["count"].sum(), 1.0)
        shares = {"accuracy": sums["hit"], "top3": sums["hit_top3"]}
        return sums | {name: hits.sum() / total for name, hits in shares.items()}

    def tally(self, samples: Drawn) -> Metrics:
        """`absent` is how many of them are learned from though the other had left."""
        learned = jax.vmap(jax.vmap(self.part.weight))(samples.samples) > 0
        return {"absent": (learned & samples.left).sum()}

    def descend(
        self, player_params: PlayerParams, state: optax.OptState, samples: Drawn
    ) -> tuple[OpponentModel, optax.OptState, Metrics]:
        descend = super().descend

        def of_other(model: OpponentModel, state: optax.OptState, samples: Sample) -> Any:
            return descend(self.with_own(player_params, model), state, samples)

        models, state, losses = jax.vmap(of_other)(self.own(player_params), state, samples.samples)
        return models, state, {name: value.mean() for name, value in losses.items()}

    def draw(self, rows: Transitions, seats: jax.Array, key: jax.Array, count: int) -> Drawn:
        """[N - 1, count] samples of each other, of steps at which the own seat is present; those of
        others that are not have no weight."""
        transitions, seat = draw_present(self.game, rows, seats, key, count)
        found = jax.vmap(self._samples)(transitions, seat, number_among(self.seats, seat))
        by_other: Drawn = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), found)
        return by_other

    def _samples(self, transition: Transitions, seat: jax.Array, own: jax.Array) -> Drawn:
        assert transition.inferred is not None
        goals = self.actor.context.about_others(transition.inferred[own])
        samples = self.sample(self.game, transition, seat, goals)
        order = (seat + jnp.arange(1, self.game.seats)) % self.game.seats
        left = ~present_in(self.game, transition)[order]
        if transition.earned is not None:
            earned = transition.earned[order][:, None]
            samples = replace(samples, present=samples.present & earned)
        if not self.actor.context.gives_chances:
            return Drawn(samples, left)
        # Of someone who was not seen to have any of the goals, nothing is learned.
        known = goals.any(axis=1, keepdims=True)
        return Drawn(replace(samples, present=samples.present & known), left)


def fitted_settings(run: PretrainOpponent) -> dict[str, Any]:
    """The settings of a model that a run has fitted, if it can be of use in play."""
    if run.opponent.goal == "caught":
        raise ConfigError(
            "--opponent.from is a run that was told what players take in the end, which nobody"
            " knows in play: take one with --opponent.goal none or hindsight"
        )
    return {"net": run.opponent.net}


def prior_told(setting: Setting) -> dict[str, tuple[dict[str, Any], Params]]:
    """The goal prior whose goals a fitted model was told: it means nothing without it."""
    prior = setting.sampler.prior
    return {"goal": ({"prior": prior.config}, setting.prior_params)} if prior else {}


def with_room_for_goals(model: OpponentModel, parts: PlayerModels) -> OpponentModel:
    """A model that was told no goals, as one that is and does not care yet; one that was told some
    stays as it is."""
    assert parts.opponent is not None
    wanted = jax.eval_shape(parts.opponent.init, jax.random.key(0))
    rows = len(first_layer(wanted.body).weight) - len(first_layer(model.body).weight)
    wider: OpponentModel = eqx.tree_at(
        lambda model: first_layer(model.body).weight,
        model,
        replace_fn=lambda weight: jnp.pad(weight, ((0, rows), (0, 0))),
    )
    return wider
