"""Goals inferred from a seat's history, learned while playing; and, from scratch, their prior."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hopplus.config import GoalLearnerConfig
from hopplus.learning.auxiliary.hindsight import (
    Seen,
    Segment,
    Target,
    seen_by,
    segments_of,
    select_goals,
)
from hopplus.learning.auxiliary.learner import AuxiliaryLearner, by_set, number_among
from hopplus.learning.auxiliary.transitions import Transitions, act_sample, draw_present
from hopplus.learning.ppo import Batch
from hopplus.learning.shares import own_share
from hopplus.models.goal import GoalInference, GoalPrior
from hopplus.models.opponent import OpponentModel
from hopplus.models.part import Metrics
from hopplus.players.context.goals import GoalsContext
from hopplus.players.parameters import PlayerParams
from hopplus.types import Sample, View

CHECKED = 4  # games of each set that it is measured on


class GoalParams(NamedTuple):
    """What the part learns."""

    inference: GoalInference
    prior: GoalPrior


class Drawn(NamedTuple):
    """Segments [batch] with the seat that looks at each."""

    segment: Segment
    seat: jax.Array
    own: jax.Array  # the seat's number among those who learn
    key: jax.Array


@dataclass(frozen=True)
class GoalLearner(AuxiliaryLearner):
    """Each set of parameters learns from what its own seats saw, game by game.

    A prior from a run stays as it is; one from scratch learns along with the inference.
    """

    config: GoalLearnerConfig

    @property
    def part(self) -> GoalsContext:
        context = self.actor.context
        assert isinstance(context, GoalsContext)  # which is what goals are learned for
        return context

    def own(self, player_params: PlayerParams) -> GoalParams:
        assert player_params.prior is not None
        return GoalParams(player_params.context, player_params.prior)

    def with_own(self, player_params: PlayerParams, own: GoalParams) -> PlayerParams:
        return replace(player_params, context=own.inference, prior=own.prior)

    def rows(self, played: Transitions) -> Segment:
        return segments_of(played, self.part.across)

    def draw(self, rows: Segment, seats: jax.Array, key: jax.Array, count: int) -> Drawn:
        """[count] games, those looked at by an own seat of the set that is present at all."""
        key_rows, key_drawn = jax.random.split(key)
        segments, seat = draw_present(self.game, rows, seats, key_rows, count)
        own = number_among(self.seats, seat)
        return Drawn(segments, seat, own, jax.random.split(key_drawn, count))

    def measured_on(self, played: Transitions) -> int:
        return min(CHECKED, played.joint.shape[1])

    def score(self, player_params: PlayerParams, samples: Drawn, played: Transitions) -> Metrics:
        """`hit` is how often the inferred goals are nearer to those that hindsight selects than to
        those it selects at the same step of another game; 0.5 is chance."""
        over_games = jax.vmap(self._target, in_axes=(None, 0, 0, 0, 0))
        seen, found = over_games(player_params, *samples)
        goals = self.part.goal.settled(found.code)  # [games, T, J, G]
        far = ((found.inferred - goals) ** 2).sum(axis=-1)
        other = ((found.inferred - jnp.roll(goals, 1, axis=0)) ** 2).sum(axis=-1)
        counts = found.known & jnp.roll(found.known, 1, axis=0) & seen.present[:, :, :1]
        hit = (far < other) + 0.5 * (far == other)
        spread = found.inferred.std(axis=0).mean(axis=-1)
        total = jnp.maximum(counts.sum(), 1)
        return {
            "hit": jnp.where(counts, hit, 0.0).sum() / total,
            "known": found.known.mean(),
            "spread": jnp.where(counts, spread, 0.0).sum() / total,
        }

    def loss(
        self, own: GoalParams, batch: Drawn, player_params: PlayerParams
    ) -> tuple[jax.Array, Metrics]:
        now = self.with_own(player_params, own)
        losses, weights = jax.vmap(lambda drawn: self._losses(now, drawn))(batch)
        totals = {
            name: value.sum() / jnp.maximum(weights[name].sum(), 1)
            for name, value in losses.items()
        }
        scales = {"kl": self.config.kl, "foresight": self.config.foresight}
        weighted = [scales.get(name, 1.0) * value for name, value in totals.items()]
        return sum(weighted, jnp.float32(0)), totals

    @property
    def relabels_until(self) -> float:
        return self.config.mixing_until * self.updates if self.config.mixing else 0.0

    def relabel(
        self,
        param_sets: PlayerParams,
        played: Transitions,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> Batch:
        """The batch with the goals that hindsight selects at some of its steps.

        The policy is then taken to have acted by these, as it would have at the time.
        """
        # Who learns from a search has acted by what was inferred.
        if self.relabels_until == 0 or batch.aim is not None:
            return batch
        rate = self.config.mixing * jnp.maximum(0.0, 1 - updates / self.relabels_until)

        def mixed() -> Batch:
            key_select, key_draw = jax.random.split(key)
            goals, known = by_set(
                self.selected_goals(param_sets, played, key_select), len(self.own_seats)
            )  # [sets, M, J, G], [sets, M, J]
            rows = (len(self.seats), known.shape[1])
            chosen = own_share(jax.random.bernoulli(key_draw, rate, rows))
            own = batch.inferred.reshape(goals.shape)
            mixed_goals = jnp.where((chosen[..., None] & known)[..., None], goals, own)
            inferred = mixed_goals.reshape(batch.inferred.shape)
            over_rows = jax.vmap(self.actor.policy_and_value, in_axes=(None, 0, 0))
            logits, value = jax.vmap(over_rows)(param_sets.policy, batch.view, inferred)
            log_prob = jnp.take_along_axis(logits, batch.action[..., None], axis=-1)[..., 0]
            return replace(batch, inferred=inferred, log_prob=log_prob, value=value)

        found: Batch = jax.lax.cond(rate > 0, mixed, lambda: batch)
        return found

    def selected_goals(
        self, param_sets: PlayerParams, played: Transitions, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The goals [T, B, n, J, G] of the learning seats n that hindsight selects in some of the
        games just played, and where it does, [T, B, n, J] bool; of the sets that learn here."""
        steps, games = played.joint.shape[:2]
        sets, k = self.own_seats.shape
        count = min(games, self.config.batch)
        key_games, key_select = jax.random.split(key)
        chosen = jax.random.permutation(key_games, games)[:count]
        segments = jax.tree.map(lambda leaf: leaf[chosen], self.rows(played))
        over_games = jax.vmap(self._target, in_axes=(None, 0, None, None, 0))
        over_seats = jax.vmap(over_games, in_axes=(None, None, 0, 0, 0))
        own = number_among(self.seats, self.own_seats)
        keys = own_share(jax.random.split(key_select, (len(self.seats), k, count)))
        over_sets = jax.vmap(over_seats, in_axes=(0, None, 0, 0, 0))
        _, found = over_sets(param_sets, segments, self.own_seats, own, keys)
        goals = self.part.goal.settled(found.code)  # [sets, k, games, T, J, G]

        def spread(leaf: jax.Array) -> jax.Array:
            by_seat = leaf.reshape(sets * k, *leaf.shape[2:])  # [n, games, T, ...]
            in_order = jnp.moveaxis(by_seat, (2, 1, 0), (0, 1, 2))  # [T, games, n, ...]
            empty = jnp.zeros((steps, games, *in_order.shape[2:]), leaf.dtype)
            return empty.at[:, chosen].set(in_order)

        return spread(goals), spread(found.known)

    def _target(
        self,
        player_params: PlayerParams,
        segment: Segment,
        seat: jax.Array,
        own: jax.Array,
        key: jax.Array,
    ) -> tuple[Seen, Target]:
        """A segment as a seat saw it, and what hindsight says of it."""
        seen = seen_by(self.game, segment, seat, own)
        return seen, select_goals(self.part, self.config, player_params, seen, key)

    def _losses(self, player_params: PlayerParams, drawn: Drawn) -> tuple[Metrics, Metrics]:
        """Sums of the named losses over a segment, and of their weights."""
        assert player_params.prior is not None
        key_select, key_draw, key_prior = jax.random.split(drawn.key, 3)
        seen, found = self._target(player_params, *drawn._replace(key=key_select))
        steps = len(seen.fresh)
        losses = jax.vmap(self.part.losses, in_axes=(None, 0, 0, 0, 0, 0, 0))(
            player_params.context,
            found.before,
            found.after,
            seen.view.planes,
            found.code,
            found.known,
            jax.random.split(key_draw, steps),
        )
        here = seen.present[:, 0]
        sums = {name: jnp.where(here, value, 0.0).sum() for name, value in losses.items()}
        weights = dict.fromkeys(losses, here.sum())
        if self.config.foresight:
            sums["foresight"], weights["foresight"] = self._foresight(
                player_params, seen, found.inferred
            )
        if self.config.from_run is not None:
            return sums, weights
        prior, weight = self._prior_losses(player_params.prior, seen, key_prior)
        sums |= {f"prior_{name}": value for name, value in prior.items()}
        return sums, weights | dict.fromkeys((f"prior_{name}" for name in prior), weight)

    def _foresight(
        self, player_params: PlayerParams, seen: Seen, inferred: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """How badly the goals [T, J, G] tell the models of the others what these do, summed over a
        segment, and how many acts count. The models themselves do not learn here."""
        assert player_params.opponents is not None
        others = seen.present.shape[1] - 1
        goals = jnp.broadcast_to(inferred, (len(inferred), others, inferred.shape[-1]))
        over_others = jax.vmap(OpponentModel.__call__)
        logits = jax.vmap(over_others, in_axes=(None, 0, 0))(
            player_params.opponents, seen.others, goals
        )
        did = jnp.take_along_axis(logits, seen.joint[:, 1:, None], axis=2)[..., 0]  # [T, others]
        counts = seen.present[:, :1] & seen.present[:, 1:] & (seen.others.legal.sum(axis=2) > 1)
        return -jnp.where(counts, did, 0.0).sum(), counts.sum()

    def _prior_losses(
        self, prior: GoalPrior, seen: Seen, key: jax.Array
    ) -> tuple[Metrics, jax.Array]:
        """Sums over a segment, of one other at each step, and how many steps count."""
        part = self.part.goal
        key_place, key_later, key_loss = jax.random.split(key, 3)
        steps, seats = seen.present.shape
        place = jax.random.randint(key_place, (steps,), 1, seats)
        ahead = part.config.ahead
        wanted = jax.random.randint(key_later, (steps,), min(1, ahead), ahead + 1)
        goes_on = jnp.take_along_axis(seen.ahead, place[:, None], axis=1)[:, 0]
        steps_now = jnp.arange(steps)
        later = steps_now + jnp.minimum(wanted, goes_on)
        view, later_view = (
            jax.tree.map(lambda leaf: leaf[when, place - 1], seen.others)  # noqa: B023
            for when in (steps_now, later)
        )

        def sample(view: View, later: View, joint: jax.Array, place: jax.Array) -> Sample:
            nothing = jnp.zeros(0)
            return act_sample(view, jnp.roll(joint, -place), nothing, nothing, later)

        samples = jax.vmap(sample)(view, later_view, seen.joint, place)
        keys = jax.random.split(key_loss, steps)
        losses = jax.vmap(part.losses, in_axes=(None, 0, 0))(prior, samples, keys)
        there = jnp.take_along_axis(seen.present, place[:, None], axis=1)[:, 0] & seen.present[:, 0]
        sums = {name: jnp.where(there, value, 0.0).sum() for name, value in losses.items()}
        return sums, there.sum()
