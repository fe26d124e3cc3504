"""What the parts that learn beside the policy have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.config import AuxiliaryConfig
from hopplus.games.game import Game
from hopplus.learning.auxiliary.replay_buffer import capacity, pushed
from hopplus.learning.auxiliary.transitions import Transitions, empty_rows, present_in
from hopplus.learning.ppo import Batch
from hopplus.models.part import Metrics, Part, fit_loss
from hopplus.players.actor import Actor
from hopplus.players.parameters import PlayerParams
from hopplus.types import Params, Sample

Tree = TypeVar("Tree")
CHECKED = 128  # fresh steps of each seat that a part is measured on


class FitState(eqx.Module):
    """What a part keeps besides its parameters, which are in the player's."""

    optimiser: optax.OptState  # [sets, ...]
    buffer: Any  # [R, ...] play to learn from


@dataclass(frozen=True)
class AuxiliaryLearner:
    """A model that learns while the policy does, from what was just played and its buffer.

    `param_sets` are [sets, ...]: all of it is written for sets of parameters side by side, each
    with the
    play of its own seats.
    """

    game: Game
    actor: Actor  # whose models these are
    config: Any  # an `OnlineConfig`
    seats: np.ndarray  # [sets, k]
    updates: int  # how many there will be
    name: ClassVar[str]  # in `AUXILIARY_MODELS`, and of its metrics

    @property
    def optimiser(self) -> optax.GradientTransformation:
        return optimiser_of(self.config, self.updates)

    def init(self, param_sets: PlayerParams, played: Transitions) -> FitState:
        """With an empty buffer for play shaped as that [T, B, ...]."""
        rows = self.rows(played)
        count = len(rows.joint)
        steps = played.joint.shape[0] * played.joint.shape[1] // count  # in a row
        size = capacity(-(-self.config.buffer // steps), count)
        return FitState(self.init_optimiser(param_sets), empty_rows(rows, size))

    def init_optimiser(self, param_sets: PlayerParams) -> optax.OptState:
        """[sets, ...] its state before the first gradient step."""
        raise NotImplementedError

    def rows(self, played: Transitions) -> Any:
        """[M, ...] what it keeps of play [T, B, ...]; with `state` and `joint` in it."""
        raise NotImplementedError

    def keep(self, buffer: Any, played: Transitions, updates: jax.Array) -> Any:
        """The buffer with the play added."""
        return pushed(buffer, self.rows(played), updates)

    def fill(self, buffer: Any) -> jax.Array:
        """[sets] int32, at how many steps of the buffer each set's own seats were present."""
        seen = jnp.moveaxis(present_in(self.game, buffer)[..., self.seats], -2, 0)
        return seen.reshape(len(self.seats), -1).sum(axis=1)

    def measure(self, param_sets: PlayerParams, played: Transitions, key: jax.Array) -> Metrics:
        """How well it foresees play [T, B, ...] that it has not learned from."""
        raise NotImplementedError

    def fit(
        self, param_sets: PlayerParams, auxiliary: FitState, key: jax.Array
    ) -> tuple[PlayerParams, FitState, Metrics]:
        """A round of gradient steps, and the mean losses [sets]."""
        raise NotImplementedError

    @property
    def relabels_until(self) -> float:
        """The number of updates after which `relabel` changes nothing any more."""
        return 0.0

    def relabel(
        self,
        param_sets: PlayerParams,
        played: Transitions,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> Batch:
        """The batch [sets, M, ...] that the policy learns from, with what this model knows of it in
        hindsight; as it is, for a model that knows nothing."""
        return batch


def optimiser_of(config: AuxiliaryConfig, updates: int) -> optax.GradientTransformation:
    """That of a part, in a run of so many updates."""
    rate: float | optax.Schedule = config.learning_rate
    if config.anneal and config.every:
        steps = -(-updates // config.every) * config.fits
        rate = optax.linear_schedule(config.learning_rate, 0.0, steps)
    return optax.chain(optax.clip_by_global_norm(config.gradient_norm), optax.adam(rate))


def learned(
    part: AuxiliaryLearner,
    param_sets: PlayerParams,
    auxiliary: FitState,
    played: Transitions,
    updates: jax.Array,
    key: jax.Array,
) -> tuple[PlayerParams, FitState, Metrics]:
    """Measure a part on what was just played, keep that, and fit if it is time to.

    `updates` must not be batched: then a round that is not due costs nothing.
    """
    key_measure, key_fit = jax.random.split(key)
    found = part.measure(param_sets, played, key_measure)
    auxiliary = FitState(auxiliary.optimiser, part.keep(auxiliary.buffer, played, updates))
    every = part.config.every
    sets = len(jax.tree.leaves(param_sets)[0])
    if every:
        fit = jax.jit(part.fit)  # which is traced once: for the shapes, and for the round
        shapes = jax.eval_shape(fit, param_sets, auxiliary, key_fit)[2]
        none = {name: jnp.zeros(leaf.shape) for name, leaf in shapes.items()}
        param_sets, auxiliary, losses = jax.lax.cond(
            updates % every == 0,
            fit,
            lambda param_sets, auxiliary, key: (param_sets, auxiliary, none),
            param_sets,
            auxiliary,
            key_fit,
        )
        rounds = updates // every + 1
    else:
        losses, rounds = {}, jnp.int32(0)
    counts = {
        "fill": part.fill(auxiliary.buffer),
        "fits": jnp.full(sets, rounds * part.config.fits),
    }
    found |= {f"loss/{name}": value for name, value in losses.items()} | counts
    return param_sets, auxiliary, {f"{part.name}/{name}": value for name, value in found.items()}


def descend(
    loss: Callable[[Params, Tree], tuple[jax.Array, Metrics]],
    optimiser: optax.GradientTransformation,
    params: Params,
    state: optax.OptState,
    batches: Tree,
) -> tuple[Params, optax.OptState, Metrics]:
    """A gradient step for each of the batches [fits, ...], for one set; the mean losses."""

    def step(
        carry: tuple[Params, optax.OptState], batch: Tree
    ) -> tuple[tuple[Params, optax.OptState], Metrics]:
        params, state = carry
        (_, losses), slope = jax.value_and_grad(loss, has_aux=True)(params, batch)
        change, state = optimiser.update(slope, state, params)
        return (optax.apply_updates(params, change), state), losses

    (params, state), losses = jax.lax.scan(step, (params, state), batches)
    return params, state, {name: value.mean(axis=0) for name, value in losses.items()}


def fitted(
    part: Part,
    config: AuxiliaryConfig,
    optimiser: optax.GradientTransformation,
    params: Params,
    state: optax.OptState,
    samples: Sample,
) -> tuple[Params, optax.OptState, Metrics]:
    """A round of gradient steps of one model on samples [fits * batch, ...] for it."""

    def loss(params: Params, batch: Sample) -> tuple[jax.Array, Metrics]:
        mean, sums = fit_loss(part, params, batch, jnp.zeros(config.batch))
        return mean, means(sums)

    return descend(loss, optimiser, params, state, in_batches(samples, config))


def in_batches(samples: Tree, config: AuxiliaryConfig) -> Tree:
    """[fits * batch, ...] as [fits, batch, ...]."""
    batches: Tree = jax.tree.map(
        lambda leaf: leaf.reshape(config.fits, config.batch, *leaf.shape[1:]), samples
    )
    return batches


def means(sums: Metrics) -> Metrics:
    """Named sums over samples, with the `weight` of these, as means."""
    weight = jnp.maximum(sums["weight"], 1e-8)
    return {name: value / weight for name, value in sums.items() if name != "weight"}


def flat(transitions: Tree) -> Tree:
    """[T, B, ...] as [T * B, ...]."""
    rows: Tree = jax.tree.map(
        lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), transitions
    )
    return rows


def seats_by_set(seats: np.ndarray, shared: bool) -> np.ndarray:
    """[sets, k] the seats of each set of parameters."""
    return seats[None, :] if shared else seats[:, None]


def by_set(tree: Tree, sets: int) -> Tree:
    """[T, B, n, ...] of the learning seats as [sets, T * B * n / sets, ...]."""

    def turned(leaf: jax.Array) -> jax.Array:
        steps, games, seats, *rest = leaf.shape
        return jnp.moveaxis(leaf, 2, 0).reshape(sets, steps * games * seats // sets, *rest)

    turned_tree: Tree = jax.tree.map(turned, tree)
    return turned_tree
