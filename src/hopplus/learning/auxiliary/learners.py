"""The auxiliary models together: what each learns in an update, and what the policy learns
from besides real play."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError, PPOConfig, TrainConfig
from hopplus.games.game import Game
from hopplus.learning.auxiliary.imagined_rollouts import ImaginedRollouts, act_without_goals
from hopplus.learning.auxiliary.learner import AuxiliaryLearner, FitState
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS, warm_starts
from hopplus.learning.auxiliary.transitions import Transitions
from hopplus.learning.ppo import Batch, minibatch_rows, replay_rows, source_metrics
from hopplus.learning.shares import own_share
from hopplus.models.part import Metrics
from hopplus.players.actor import Actor
from hopplus.players.context.context import Context
from hopplus.players.parameters import PlayerParams
from hopplus.types import Params


class AuxiliaryState(eqx.Module):
    """What the parts need to go on, besides the parameters."""

    parts: dict[str, FitState]
    starts: Transitions | None  # [R, ...] to imagine from
    observed: jax.Array  # [sets, 2] float32, the least and the largest reward so far


@dataclass(frozen=True)
class AuxiliaryLearners:
    """Whatever of opponents, goals, world and imagination is switched on; nothing for plain PPO."""

    seats: np.ndarray  # [sets, k] the seats of each set of parameters
    parts: tuple[AuxiliaryLearner, ...]
    imagined_rollouts: ImaginedRollouts | None
    warm_start: Mapping[str, Params]  # of models learned before, by name; without sets

    def known(self, param_sets: PlayerParams) -> PlayerParams:
        """Fresh parameters [sets, ...] with what was learned before in its place."""
        for name, learned in self.warm_start.items():
            field = warm_starts()[name].field
            fresh = getattr(param_sets, field)
            tiled = jax.tree.map(lambda new, old: jnp.broadcast_to(old, new.shape), fresh, learned)
            changed: dict[str, Any] = {field: tiled}
            param_sets = replace(param_sets, **changed)
        return param_sets

    def init(self, param_sets: PlayerParams, played: Transitions) -> AuxiliaryState:
        """Empty buffers for play shaped as that [T, B, ...]."""
        return AuxiliaryState(
            parts={part.name: part.init(param_sets, played) for part in self.parts},
            starts=self.imagined_rollouts.init(played) if self.imagined_rollouts else None,
            observed=own_share(jnp.tile(jnp.array([jnp.inf, -jnp.inf]), (len(self.seats), 1))),
        )

    def draw_minibatches(self, key: jax.Array, c: PPOConfig, through_time: bool) -> jax.Array:
        """[minibatches, ...] rows of a batch, for one pass over its real and its imagined ones."""
        real, rollouts = c.steps * self.seats.shape[1], self.imagined_rollouts
        rows = minibatch_rows(key, real, c.minibatches, c.games, through_time)
        if rollouts is None:
            return rows
        key = jax.random.fold_in(key, 1)
        more = minibatch_rows(key, rollouts.rows, c.minibatches, rollouts.replicas, True)
        return jnp.concatenate([rows, real + more], axis=1)  # each has its share of them

    def replay(self, context: Context, params: Params, part: Batch, c: PPOConfig) -> Batch:
        """Whole games of a set with the context as its parameters have it now: rows [k * T * g] of
        real ones, then [H * l] of imagined ones."""
        replay = partial(replay_rows, context, params)
        seats, rollouts = self.seats.shape[1], self.imagined_rollouts
        if rollouts is None:
            return replace(part, inferred=replay(part, seats, c.unroll))
        horizon = rollouts.config.horizon
        real = len(part.action) - horizon * (rollouts.replicas // c.minibatches)
        played, imagined = (
            jax.tree.map(lambda leaf: leaf[rows], part)  # noqa: B023
            for rows in (slice(real), slice(real, None))
        )
        inferred = [replay(played, seats, c.unroll), replay(imagined, 1, horizon)]
        return replace(part, inferred=jnp.concatenate(inferred))

    @jax.named_scope("models")
    def learn(
        self,
        param_sets: PlayerParams,
        state: AuxiliaryState,
        played: Transitions,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[PlayerParams, AuxiliaryState, Batch, Metrics]:
        """Let every part learn from what was played; give what the policy learns from: the batch
        of real steps [sets, M, ...], and imagined ones behind them."""
        metrics = jax.vmap(partial(source_metrics, "real"))(batch, batch.present, batch.valued)
        auxiliary = dict(state.parts)
        for number, part in enumerate(self.parts):
            # By its number: a model learns the same whether others learn after it or not.
            own_key = jax.random.fold_in(key, number)
            param_sets, auxiliary[part.name], found = part.learn(
                param_sets, auxiliary[part.name], played, updates, own_key
            )
            metrics |= found
        key_mix, key_imagined = jax.random.split(jax.random.fold_in(key, len(self.parts)))
        # Rewards that were real, to which imagined ones can be clipped.
        state = replace(state, parts=auxiliary, observed=_widened(state.observed, batch))
        for part in self.parts:  # of which one at most draws anything by the key
            batch = part.relabel(param_sets, played, batch, updates, key_mix)
        imagined_rollouts = self.imagined_rollouts
        if imagined_rollouts is None:
            return param_sets, state, batch, metrics
        assert state.starts is not None
        starts = imagined_rollouts.keep(state.starts, played, updates)
        # Measured on this very play before it was fitted to: a set whose world model cannot foresee
        # its own steps must not learn from what it imagines with it.
        gate = metrics["world/error"] <= imagined_rollouts.config.gate
        late = [metrics["real/reward"], jnp.sqrt(metrics["real/reward_variance"])]
        known = jnp.concatenate([state.observed, jnp.stack(late, axis=1)], axis=1)
        imagined_batch, found = imagined_rollouts.imagine(
            param_sets, starts, known, gate, updates, key_imagined
        )
        real = replace(batch, imagined=jnp.zeros_like(batch.present))
        together: Batch = jax.tree.map(
            lambda one, two: jnp.concatenate([one, two], axis=1), real, imagined_batch
        )
        counted = together.present.sum(axis=1)
        metrics["real/share"] = batch.present.sum(axis=1) / jnp.maximum(counted, 1)
        return param_sets, replace(state, starts=starts), together, metrics | found


def _widened(observed: jax.Array, batch: Batch) -> jax.Array:
    """[sets, 2] the range of rewards with those of present steps."""
    least = jnp.where(batch.present, batch.reward, jnp.inf).min(axis=1)
    most = jnp.where(batch.present, batch.reward, -jnp.inf).max(axis=1)
    return jnp.stack(
        [jnp.minimum(observed[:, 0], least), jnp.maximum(observed[:, 1], most)], axis=1
    )


def make_auxiliary_learners(
    config: TrainConfig,
    game: Game,
    actor: Actor,
    seats: np.ndarray,
    warm_start: Mapping[str, Params],
) -> AuxiliaryLearners:
    """The parts that a configuration switches on, for the seats that learn."""
    sets = seats[None, :] if actor.shares_params else seats[:, None]
    made: list[AuxiliaryLearner] = []
    for name, settings in config.fitted.items():
        row = AUXILIARY_MODELS[name]
        if row.prefix in (one.name for one in made):
            raise ConfigError(f"--parts has two models whose metrics are called {row.prefix}/...")
        assert row.learner is not None
        made.append(row.learner(game, actor, settings, sets, config.updates, name=row.prefix))
    imagined_rollouts = None
    if config.imagines:
        imagined_rollouts = ImaginedRollouts(
            game, actor, config.imagine, config.ppo, sets, config.updates
        )
        if config.imagine.goals == "zero":
            imagined_rollouts = replace(imagined_rollouts, act=act_without_goals)
    return AuxiliaryLearners(sets, tuple(made), imagined_rollouts, warm_start)
