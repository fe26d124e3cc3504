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
from hopplus.learning.auxiliary_models import AUXILIARY_MODELS
from hopplus.learning.dreams import Dreams
from hopplus.learning.moments import Moments
from hopplus.learning.online import Beside, OnlinePart, learned, seats_by_set
from hopplus.learning.ppo import Batch, mean_of
from hopplus.models.part import Metrics
from hopplus.players.actor import Actor
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
            # By its number: a model learns the same whether others learn after it or not.
            own_key = jax.random.fold_in(key, number)
            minds, beside[part.name], found = learned(
                part, minds, beside[part.name], played, updates, own_key
            )
            metrics |= found
        key_mix, key_dream = jax.random.split(jax.random.fold_in(key, len(self.parts)))
        # Rewards that were real, to which imagined ones can be clipped.
        kept = replace(kept, parts=beside, observed=_widened(kept.observed, batch))
        for part in self.parts:  # of which one at most draws anything by the key
            batch = part.relabel(minds, played, batch, updates, key_mix, self.actor.judge)
        if self.dreams is None:
            return minds, kept, batch, metrics
        assert kept.starts is not None
        kept = replace(kept, starts=self.dreams.keep(kept.starts, played, updates))
        # Measured on this very play before it was fitted to: a set whose world model cannot foresee
        # its own steps must not learn from what it imagines with it.
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
    sets = seats_by_set(seats, actor.shares_params)
    made = []
    for name, settings in config.fitted.items():
        learner = AUXILIARY_MODELS[name].learner
        assert learner is not None
        made.append(learner(game, actor, settings, sets, config.updates))
    dreams = None
    if "imagination" in config.parts:
        dreams = Dreams(game, actor, config.imagine, config.ppo, sets)
    return BesidePolicy(actor, sets, tuple(made), dreams, initial)
