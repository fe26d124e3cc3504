"""What auxiliary models have in common that learn while the policy does."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.devices import split_rows
from hopplus.games.game import Game
from hopplus.learning.auxiliary.transitions import (
    Transitions,
    draw_present,
    emptied,
    empty_buffer,
    own_sample,
    present_in,
    push,
)
from hopplus.learning.ppo import Batch
from hopplus.learning.shares import own_share
from hopplus.models.part import Metrics, fit_loss
from hopplus.players.actor import Actor
from hopplus.players.parameters import PlayerParams
from hopplus.types import Params

Tree = TypeVar("Tree")
CHECKED = 128  # fresh steps of each seat that a part is measured on


Fitted: TypeAlias = tuple[Params, optax.OptState]  # [sets, ...] what a round of fitting replaces


class FitState(eqx.Module):
    """What a part keeps besides its parameters, which are in the player's."""

    optimiser: optax.OptState  # [sets, ...]
    buffer: Any  # [R, ...] play to learn from


@dataclass(frozen=True)
class AuxiliaryLearner:
    """A model that learns while the policy does, from what was just played and its buffer.

    `param_sets` are [sets, ...]: sets of parameters learn side by side, each from the play of its
    own seats. What a model says for itself is written for one set. Unless it says otherwise, its
    parameters are those of a model from outside, and it learns from samples of its seats' steps.
    """

    game: Game
    actor: Actor  # whose models these are
    config: Any  # an `AuxiliaryConfig`
    seats: np.ndarray  # [sets, k]
    updates: int  # how many there will be
    # How a round of fitting replaces what was there; a field, for the diagnosis to put another in.
    commit: Callable[[Fitted, Fitted], Fitted] = lambda old, new: new
    name: str = ""  # of its metrics and its state: the row's prefix

    @property
    def own_seats(self) -> jax.Array:
        """[sets, k] those of the sets that learn on this device."""
        return own_share(jnp.asarray(self.seats))

    def keys(self, key: jax.Array) -> jax.Array:
        """[sets] a key for each of these sets."""
        return own_share(jax.random.split(key, len(self.seats)))

    @property
    def part(self) -> Any:
        """The model, which says what its losses are."""
        return dict(self.actor.parts.outside)[self.name]

    def own(self, player_params: PlayerParams) -> Params:
        """Of a player's parameters those that are learned here."""
        return player_params.outside[self.name]

    def with_own(self, player_params: PlayerParams, own: Any) -> PlayerParams:
        """The player's parameters with these in place."""
        return replace(player_params, outside={**player_params.outside, self.name: own})

    def rows(self, played: Transitions) -> Any:
        """[M, ...] what it keeps of play [T, B, ...]; with `state` and `joint` in it."""
        # The key too: what came of a step is found by playing it again.
        return flat(Transitions(played.state, played.joint, key=played.key))

    def draw(self, rows: Any, seats: jax.Array, key: jax.Array, count: int) -> Any:
        """[count, ...] samples for a set with these seats [k], of steps where they are present."""
        drawn = draw_present(self.game, rows, seats, key, count)
        return jax.vmap(partial(own_sample, self.game))(*drawn)

    def score(self, player_params: PlayerParams, samples: Any, played: Transitions) -> Metrics:
        """How well one set foresees samples of the play that it has not learned from."""
        keys = jnp.zeros(self.measured_on(played))
        return {"held_out_loss": fit_loss(self.part, self.own(player_params), samples, keys)[0]}

    def tally(self, samples: Any) -> Metrics:
        """What is counted of a set's samples as they are learned from; nothing, unless a model
        says so."""
        return {}

    def measured_on(self, played: Transitions) -> int:
        """How many samples of that play it is measured on, of each set."""
        return CHECKED

    def loss(
        self, own: Params, batch: Any, player_params: PlayerParams
    ) -> tuple[jax.Array, Metrics]:
        """The loss of a set with its `own` parameters as they are now, and its named parts."""
        mean, sums = fit_loss(self.part, own, batch, jnp.zeros(self.config.batch))
        weight = jnp.maximum(sums.pop("weight"), 1e-8)
        return mean, {name: value / weight for name, value in sums.items()}

    @property
    def optimiser(self) -> optax.GradientTransformation:
        c = self.config
        rate: float | optax.Schedule = c.learning_rate
        if c.anneal and c.every:
            rate = optax.linear_schedule(rate, 0.0, -(-self.updates // c.every) * c.fits)
        return optax.chain(optax.clip_by_global_norm(c.gradient_norm), optax.adam(rate))

    def init_optimiser(self, own: Params) -> optax.OptState:
        """The state of a set before the first gradient step."""
        return self.optimiser.init(own)

    def count_fits(self, optimiser: optax.OptState) -> jax.Array:
        """[sets] the gradient steps that parameters have come by, as the optimiser's own state
        counts them; the fewest, where a set has several models."""
        _, count = optax.tree.get_all_with_path(optimiser, "count")[0]
        fewest: jax.Array = count.reshape(len(count), -1).min(axis=1)
        return fewest

    def init(self, param_sets: PlayerParams, played: Transitions) -> FitState:
        """With an empty buffer for play shaped as that [T, B, ...]."""
        rows = self.rows(played)
        steps = played.joint.shape[0] * played.joint.shape[1] // len(rows.joint)  # in a row
        buffer = empty_buffer(rows, -(-self.config.buffer // steps))
        return FitState(jax.vmap(self.init_optimiser)(self.own(param_sets)), buffer)

    def keep(self, buffer: Any, played: Transitions, updates: jax.Array) -> Any:
        """The buffer with the play added."""
        return push(buffer, self.rows(played), updates)

    def usable(self, buffer: Any) -> jax.Array:
        """[..., N] bool, the seats that can learn from rows of the buffer: those that are there."""
        return present_in(self.game, buffer)

    def measure(self, param_sets: PlayerParams, played: Transitions, key: jax.Array) -> Metrics:
        """How well it foresees play [T, B, ...] that it has not learned from."""
        fresh = self.rows(played)

        def of_set(player_params: PlayerParams, seats: jax.Array, key: jax.Array) -> Metrics:
            samples = self.draw(fresh, seats, key, self.measured_on(played))
            return self.score(player_params, samples, played)

        return jax.vmap(of_set)(param_sets, self.own_seats, self.keys(key))

    def fit(
        self, param_sets: PlayerParams, auxiliary: FitState, key: jax.Array
    ) -> tuple[PlayerParams, FitState, Metrics]:
        """A round of gradient steps, the mean losses [sets], and what is counted of samples."""

        def of_set(
            player_params: PlayerParams, state: optax.OptState, seats: jax.Array, key: jax.Array
        ) -> tuple[Params, optax.OptState, Metrics]:
            count = self.config.fits * self.config.batch
            samples = self.draw(auxiliary.buffer, seats, key, count)
            own, state, losses = self.descend(player_params, state, samples)
            named = {f"loss/{name}": value for name, value in losses.items()}
            return own, state, named | self.tally(samples)

        own, optimiser, found = jax.vmap(of_set)(
            param_sets, auxiliary.optimiser, self.own_seats, self.keys(key)
        )
        before = (self.own(param_sets), auxiliary.optimiser)
        own, optimiser = self.commit(before, (own, optimiser))
        kept = self.config.after_fit == "keep"
        buffer = auxiliary.buffer if kept else emptied(auxiliary.buffer)
        return self.with_own(param_sets, own), FitState(optimiser, buffer), found

    def descend(
        self, player_params: PlayerParams, state: optax.OptState, samples: Any
    ) -> tuple[Params, optax.OptState, Metrics]:
        """A gradient step for each batch of the samples [fits * batch, ...], for one set: its own
        parameters after them, and the mean losses."""
        c = self.config
        slope_of = jax.value_and_grad(self.loss, has_aux=True)
        batches = jax.tree.map(lambda leaf: leaf.reshape(c.fits, c.batch, *leaf.shape[1:]), samples)
        batches = split_rows(batches, axis=1)

        def step(
            carry: tuple[Params, optax.OptState], batch: Any
        ) -> tuple[tuple[Params, optax.OptState], Metrics]:
            own, state = carry
            (_, losses), slope = slope_of(own, batch, player_params)
            change, state = self.optimiser.update(slope, state, own)
            return (optax.apply_updates(own, change), state), losses

        carry, losses = jax.lax.scan(step, (self.own(player_params), state), batches)
        return *carry, {name: value.mean(axis=0) for name, value in losses.items()}

    def learn(
        self,
        param_sets: PlayerParams,
        auxiliary: FitState,
        played: Transitions,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[PlayerParams, FitState, Metrics]:
        """Measure it on what was just played, keep that, and fit if it is time to.

        `updates` must not be batched: then a round that is not due costs nothing.
        """
        key_measure, key_fit = jax.random.split(key)
        found = self.measure(param_sets, played, key_measure)
        auxiliary = FitState(auxiliary.optimiser, self.keep(auxiliary.buffer, played, updates))
        # [sets] of how many steps of the buffer each set's own seats can learn.
        seen = jnp.moveaxis(self.usable(auxiliary.buffer)[..., self.seats], -2, 0)
        found["fill"] = own_share(seen.reshape(len(self.seats), -1).sum(axis=1))
        every = self.config.every
        if every:
            fit = jax.jit(self.fit)  # which is traced once: for the shapes, and for the round
            shapes = jax.eval_shape(fit, param_sets, auxiliary, key_fit)[2]
            none = {name: jnp.zeros(leaf.shape, leaf.dtype) for name, leaf in shapes.items()}
            param_sets, auxiliary, fitted = jax.lax.cond(
                updates % every == 0,
                fit,
                lambda param_sets, auxiliary, key: (param_sets, auxiliary, none),
                param_sets,
                auxiliary,
                key_fit,
            )
            found |= fitted
        found["fits"] = self.count_fits(auxiliary.optimiser)
        return (
            param_sets,
            auxiliary,
            {f"{self.name}/{name}": value for name, value in found.items()},
        )

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


def flat(transitions: Tree) -> Tree:
    """[T, B, ...] as [T * B, ...]."""
    rows: Tree = jax.tree.map(
        lambda leaf: leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:]), transitions
    )
    return rows


def number_among(seats: np.ndarray, seat: jax.Array) -> jax.Array:
    """The numbers of some seats among those that learn [sets, k]."""
    return jnp.searchsorted(np.sort(seats.reshape(-1)), seat)


def by_set(tree: Tree, sets: int) -> Tree:
    """[T, B, n, ...] of the learning seats as [sets, T * B * n / sets, ...]."""

    def turned(leaf: jax.Array) -> jax.Array:
        steps, games, seats, *rest = leaf.shape
        return jnp.moveaxis(leaf, 2, 0).reshape(sets, steps * games * seats // sets, *rest)

    turned_tree: Tree = jax.tree.map(turned, tree)
    return turned_tree
