"""The parts beside the policy, together: what each learns in an update, and what the policy learns
from besides real play."""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import TrainConfig
from hopplus.games.game import Game
from hopplus.learning.dreams import Dreams
from hopplus.learning.moments import Moments
from hopplus.learning.online import Beside, OnlinePart, by_set, learned, seats_by_set
from hopplus.learning.online_goal import OnlineGoal
from hopplus.learning.online_opponent import OnlineOpponent
from hopplus.learning.online_world import OnlineWorld
from hopplus.learning.ppo import Batch, mean_of
from hopplus.models.part import Metrics
from hopplus.players.actor import Actor
from hopplus.players.context.goals import GoalsContext
from hopplus.players.mind import Mind


class Kept(eqx.Module):
    """What the parts need to go on, besides the minds."""

    parts: dict[str, Beside]
    starts: Moments | None  # [R, ...] moments to imagine from
    observed: jax.Array  # [sets, 2] float32, the least and the largest reward so far


@dataclass(frozen=True)
class BesidePolicy:
    """Whatever of opponents, goals, world and imagination is switched on; nothing for plain PPO."""

    actor: Actor
    seats: np.ndarray  # [sets, k] the seats of each set of parameters
    parts: tuple[OnlinePart, ...]
    dreams: Dreams | None
    updates: int  # how many there will be
    initial: dict[str, Any]  # parts of minds that were learned before, by field, without sets

    def known(self, minds: Mind) -> Mind:
        """Fresh minds [sets, ...] with what was learned before in its place."""

        def tiled(fresh: jax.Array, learned: jax.Array) -> jax.Array:
            return jnp.broadcast_to(learned, fresh.shape)

        return replace(
            minds,
            **{
                name: jax.tree.map(tiled, getattr(minds, name), learned)
                for name, learned in self.initial.items()
            },
        )

    def init(self, minds: Mind, played: Moments) -> Kept:
        """Empty buffers for play shaped as that [T, B, ...]."""
        return Kept(
            parts={part.name: part.init(minds, played) for part in self.parts},
            starts=self.dreams.init(played) if self.dreams else None,
            observed=jnp.tile(jnp.array([jnp.inf, -jnp.inf]), (len(self.seats), 1)),
        )

    def learn(
        self,
        minds: Mind,
        kept: Kept,
        played: Moments,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[Mind, Kept, Batch, Metrics]:
        """Let every part learn from what was played; give what the policy learns from: the batch
        of real steps [sets, M, ...], and imagined ones behind them."""
        metrics = source_metrics(batch)
        beside = dict(kept.parts)
        for number, part in enumerate(self.parts):
            own_key = jax.random.fold_in(key, number)
            minds, beside[part.name], found = learned(
                part, minds, beside[part.name], played, updates, own_key
            )
            metrics |= found
        key_mix, key_dream = jax.random.split(jax.random.fold_in(key, len(self.parts)))
        kept = replace(kept, parts=beside, observed=_widened(kept.observed, batch))
        batch = self._mixed(minds, played, batch, updates, key_mix)
        if self.dreams is None:
            return minds, kept, batch, metrics
        assert kept.starts is not None
        kept = replace(kept, starts=self.dreams.keep(kept.starts, played, updates))
        gate = metrics["world/error"] <= self.dreams.config.gate
        dreamt, found = self._dreamt(minds, kept, gate, updates, key_dream)
        real = replace(batch, imagined=jnp.zeros_like(batch.present))
        together: Batch = jax.tree.map(
            lambda one, two: jnp.concatenate([one, two], axis=1), real, dreamt
        )
        return minds, kept, together, metrics | found

    def _dreamt(
        self, minds: Mind, kept: Kept, gate: jax.Array, updates: jax.Array, key: jax.Array
    ) -> tuple[Batch, Metrics]:
        """Imagined steps [sets, rows, ...]; blank ones while it is too early for any."""
        assert self.dreams is not None
        assert kept.starts is not None
        given = (minds, kept.starts, kept.observed, gate, key)
        dream = jax.jit(self.dreams.__call__)  # which is traced once: for the shapes, and to dream
        shapes = jax.eval_shape(dream, *given)

        def blank(*_: object) -> tuple[Batch, Metrics]:
            batch, found = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
            return replace(batch, imagined=jnp.ones_like(batch.imagined)), found

        ready = updates >= -(-self.dreams.config.warm_up // self.dreams.ppo.steps)
        found: tuple[Batch, Metrics] = jax.lax.cond(ready, dream, blank, *given)
        return found

    def _mixed(
        self, minds: Mind, played: Moments, batch: Batch, updates: jax.Array, key: jax.Array
    ) -> Batch:
        """The batch with the goals that hindsight selects at some of its steps.

        The policy is then taken to have acted by these, as it would have at the time.
        """
        goal = next((part for part in self.parts if isinstance(part, OnlineGoal)), None)
        if goal is None or goal.config.mixing * goal.config.mixing_until == 0:
            return batch
        if batch.aim is not None:  # a search has acted by what was inferred
            return batch
        until = goal.config.mixing_until * self.updates
        rate = goal.config.mixing * jnp.maximum(0.0, 1 - updates / until)

        def mixed() -> Batch:
            key_select, key_draw = jax.random.split(key)
            goals, known = by_set(
                goal.selected_goals(minds, played, key_select), len(self.seats)
            )  # [sets, M, J, G], [sets, M, J]
            chosen = jax.random.bernoulli(key_draw, rate, known.shape[:2])
            own = batch.inferred.reshape(goals.shape)
            told = jnp.where((chosen[..., None] & known)[..., None], goals, own)
            inferred = told.reshape(batch.inferred.shape)
            over_rows = jax.vmap(self.actor.judge, in_axes=(None, 0, 0))
            logits, value = jax.vmap(over_rows)(minds.policy, batch.view, inferred)
            log_prob = jnp.take_along_axis(logits, batch.action[..., None], axis=-1)[..., 0]
            return replace(batch, inferred=inferred, log_prob=log_prob, value=value)

        found: Batch = jax.lax.cond(rate > 0, mixed, lambda: batch)
        return found


def source_metrics(batch: Batch) -> Metrics:
    """[sets] what real steps are like, to hold imagined ones against."""
    mean = jax.vmap(mean_of)
    return {
        "real/reward": mean(batch.reward, batch.present),
        "real/return": mean(batch.returns, batch.valued),
        "real/value": mean(batch.value, batch.valued),
    }


def _widened(observed: jax.Array, batch: Batch) -> jax.Array:
    """[sets, 2] the range of rewards with those of present steps."""
    least = jnp.where(batch.present, batch.reward, jnp.inf).min(axis=1)
    most = jnp.where(batch.present, batch.reward, -jnp.inf).max(axis=1)
    return jnp.stack(
        [jnp.minimum(observed[:, 0], least), jnp.maximum(observed[:, 1], most)], axis=1
    )


def make_beside(
    config: TrainConfig,
    game: Game,
    actor: Actor,
    seats: np.ndarray,
    initial: dict[str, Any],
) -> BesidePolicy:
    """The parts that a configuration switches on, for the seats that learn."""
    by_set = seats_by_set(seats, actor.shares_params)
    made: list[OnlinePart] = []
    parts = actor.parts
    if parts.opponent:
        made.append(
            OnlineOpponent(
                game, parts.opponent, actor.context, config.opponent, by_set, config.updates
            )
        )
    if isinstance(actor.context, GoalsContext):
        made.append(OnlineGoal(game, actor.context, config.goal, by_set, config.updates))
    if parts.world:
        made.append(OnlineWorld(game, parts.world, config.world, by_set, config.updates))
    dreams = None
    if "imagination" in config.parts:
        dreams = Dreams(game, actor, config.imagine, config.ppo, by_set)
    return BesidePolicy(actor, by_set, tuple(made), dreams, config.updates, initial)
