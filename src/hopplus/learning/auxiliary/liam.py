"""LIAM's encoder and decoder, learned while playing from what the others saw and did, which nobody
needs to know in play. The policy's loss does not reach them."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hopplus.config import LiamConfig
from hopplus.games.game import views
from hopplus.learning.auxiliary.hindsight import Segment, segments_of
from hopplus.learning.auxiliary.learner import AuxiliaryLearner, number_among
from hopplus.learning.auxiliary.transitions import Transitions, draw_present, present_in
from hopplus.models.history import recalled
from hopplus.models.part import Metrics
from hopplus.players.context.liam import Liam, LiamContext
from hopplus.players.parameters import PlayerParams

CHECKED = 8  # games of each set that it is measured on


class Drawn(NamedTuple):
    """Segments [batch] with the seat that looks at each, and its number among those who learn."""

    segment: Segment
    seat: jax.Array
    own: jax.Array


@dataclass(frozen=True)
class LiamLearner(AuxiliaryLearner):
    """Each set of parameters learns from what its own seats saw, game by game."""

    config: LiamConfig

    @property
    def part(self) -> LiamContext:
        context = self.actor.context
        assert isinstance(context, LiamContext)  # which is what is learned here
        return context

    def own(self, player_params: PlayerParams) -> Liam:
        own: Liam = player_params.context
        return own

    def with_own(self, player_params: PlayerParams, own: Liam) -> PlayerParams:
        return replace(player_params, context=own)

    def rows(self, played: Transitions) -> Segment:
        return segments_of(played, self.part.carries)

    def draw(self, rows: Segment, seats: jax.Array, key: jax.Array, count: int) -> Drawn:
        """[count] games, each looked at by an own seat of the set that is present at all."""
        segments, seat = draw_present(self.game, rows, seats, key, count)
        return Drawn(segments, seat, number_among(self.seats, seat))

    def measured_on(self, played: Transitions) -> int:
        return min(CHECKED, played.joint.shape[1])

    def score(self, player_params: PlayerParams, samples: Drawn, played: Transitions) -> Metrics:
        """Mean losses on play it has not learned from."""
        found = self.loss(self.own(player_params), samples, player_params)[1]
        return {f"held_out_{name}": value for name, value in found.items()}

    def loss(
        self, own: Liam, batch: Drawn, player_params: PlayerParams
    ) -> tuple[jax.Array, Metrics]:
        losses, counts = jax.vmap(self._losses, in_axes=(None, 0))(own, batch)
        means = {
            name: jnp.where(counts[name], value, 0.0).sum() / jnp.maximum(counts[name].sum(), 1)
            for name, value in losses.items()
        }
        return self.config.observation * means["observation"] + means["action"], means

    def _losses(self, own: Liam, drawn: Drawn) -> tuple[Metrics, Metrics]:
        """[T, N - 1] of a segment, and which count: of others that are present while the seat is,
        and of actions those that were a choice."""
        game, segment = self.game, drawn.segment
        order = (drawn.seat + jnp.arange(game.seats)) % game.seats
        seen = jax.vmap(lambda state: views(game, state))(segment.state)  # [T, N, ...]
        mine, others = (
            jax.tree.map(lambda leaf: leaf[:, which], seen)  # noqa: B023
            for which in (order[0], order[1:])
        )
        memory = segment.memory[drawn.own]
        _, after = recalled(own.history, memory, mine, segment.fresh)
        contexts = jax.vmap(own.embedding)(after)
        joint = segment.joint[:, order[1:]]
        losses = jax.vmap(self.part.losses, in_axes=(None, 0, 0, 0))(own, contexts, others, joint)
        present = present_in(game, segment)[:, order]
        there = present[:, :1] & present[:, 1:]
        return losses, {"observation": there, "action": there & (others.legal.sum(axis=2) > 1)}
