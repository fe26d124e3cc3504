"""Episodes watched from their start, with what everyone expected of the others."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, views
from hopplus.learning.rollout import Play, rollout, step_keys
from hopplus.players.insight import actor_of, foreseen
from hopplus.players.mixture import Mixture
from hopplus.players.player import Player
from hopplus.players.seating import Seating
from hopplus.types import Memory, Params, State, Trajectory, View

LEAST = 1e-9  # probability of what was thought impossible, so that it has a logarithm


class Watched(eqx.Module):
    """One episode of each of B games; what stands behind its end is not of it."""

    trajectory: Trajectory  # [T, B, ...]
    after: State  # [T, B, ...] after the step
    keys: jax.Array  # [T, B, N] keys of the acts
    legal: jax.Array  # [T, B, N, A] bool
    choice: jax.Array  # [T, B, N] int32, who of a mixture sits there; 0 where there is none
    expected: jax.Array  # [T, B, N, N, A] float32, how likely a seat thinks each other acts so
    modelled: jax.Array  # [T, B, N] bool, the seat has models of the others, or all that is zero

    @property
    def of_episode(self) -> jax.Array:
        """[T, B] bool, the steps up to the episode's end."""
        done = self.trajectory.outcome.done.astype(jnp.int32)
        return jnp.cumsum(done, axis=0) - done == 0

    @property
    def returns(self) -> jax.Array:
        """[B, N]"""
        reward = self.trajectory.outcome.reward
        return jnp.where(self.of_episode[..., None], reward, 0.0).sum(axis=0)

    @property
    def told(self) -> jax.Array:
        """[T, B, N, N] bool, where a seat that is present has a model of another who has a choice
        and the step is of the episode."""
        present = self.trajectory.present & self.of_episode[..., None]
        chooses = present & (self.legal.sum(axis=-1) > 1)
        apart = ~np.eye(present.shape[-1], dtype=bool)
        looks = present & self.modelled
        return looks[..., :, None] & chooses[..., None, :] & apart

    @property
    def surprise(self) -> jax.Array:
        """[B] mean of minus the log-likelihood of what the others did; nan where nobody has models
        or nobody a choice."""
        action = self.trajectory.act.action[:, :, None, :, None]
        likely = jnp.take_along_axis(self.expected, action, axis=-1)[..., 0]
        missed = jnp.where(self.told, -jnp.log(jnp.maximum(likely, LEAST)), 0.0)
        return missed.sum(axis=(0, 2, 3)) / self.told.sum(axis=(0, 2, 3))


class Sitting(NamedTuple):
    """Someone who may sit in a seat."""

    player: Player
    params: Params  # one set


def sitting(seating: Seating, params: tuple[Params, ...]) -> list[list[Sitting]]:
    """[N] whoever may sit in each seat: the player, or those of its mixture."""
    seats: list[list[Sitting]] = [[] for _ in seating.players]
    for (player, numbers), sets in zip(seating.groups, params, strict=True):
        for place, seat in enumerate(numbers):
            own = of_place(sets, 0 if player.shares_params else place)
            if isinstance(player, Mixture):
                pairs = zip(player.players, own, strict=True)
                seats[seat] = [Sitting(one, params) for one, params in pairs]
            else:
                seats[seat] = [Sitting(player, own)]
    return seats


def memories(seating: Seating, memory: tuple[Memory, ...], axis: int) -> list[Memory]:
    """[N] the memory of whoever sits in each seat, from those of each distinct player, with its
    seats along an axis."""
    seats: list[Memory] = [None] * len(seating.players)
    for (_, numbers), kept in zip(seating.groups, memory, strict=True):
        for place, seat in enumerate(numbers):
            seats[seat] = jax.tree.map(lambda leaf: jnp.take(leaf, place, axis), kept)  # noqa: B023
    return seats


def of_place(tree: Params, place: int) -> Params:
    return jax.tree.map(lambda leaf: leaf[place], tree)


@eqx.filter_jit
def watch(game: Game, seating: Seating, params: tuple[Params, ...], plays: Play) -> Watched:
    """Play games [B, ...] to the horizon, and look into everyone."""
    trajectory = rollout(game, seating, params, plays, game.horizon)[1]
    after = jax.vmap(jax.vmap(game.step))(trajectory.state, trajectory.act.action)[0]

    def split(keys: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        keys, _, acting = jax.vmap(lambda key: step_keys(game, key))(keys)
        return keys, acting

    _, keys = jax.lax.scan(split, plays.key, None, length=game.horizon)
    seen = jax.vmap(jax.vmap(lambda state: views(game, state)))(trajectory.state)
    kept = memories(seating, trajectory.memory, axis=2)
    choice, expected, modelled = [], [], []
    for seat, someone in enumerate(sitting(seating, params)):
        who = _choice(seating.players[seat], kept[seat], keys[:, :, seat])
        own = jax.tree.map(lambda leaf: leaf[:, :, seat], (seen, trajectory.act.inferred))  # noqa: B023
        each = [_expected(game, one, seat, *own, seen.legal) for one in someone]
        models = np.array([one.params.opponents is not None if _learned(one) else False for one in someone])
        choice.append(who)
        modelled.append(jnp.asarray(models)[who])
        chosen = jax.nn.one_hot(who, len(someone))
        expected.append(jnp.einsum("tbk,ktboa->tboa", chosen, jnp.stack(each), precision="highest"))
    return Watched(
        trajectory=trajectory,
        after=after,
        keys=keys,
        legal=seen.legal,
        choice=jnp.stack(choice, axis=2),
        expected=jnp.stack(expected, axis=2),
        modelled=jnp.stack(modelled, axis=2),
    )


def _learned(one: Sitting) -> bool:
    return actor_of(one.player) is not None


def _choice(player: Player, memory: Memory, keys: jax.Array) -> jax.Array:
    """[T, B] who of a mixture sits there."""
    if not isinstance(player, Mixture):
        return jnp.zeros(keys.shape, jnp.int32)
    return jax.vmap(jax.vmap(lambda memory, key: player.chosen(memory, key)[0]))(memory, keys)


def _expected(
    game: Game, one: Sitting, seat: int, view: View, inferred: jax.Array, legal: jax.Array
) -> jax.Array:
    """[T, B, N, A] what someone who sits in a seat expects of the others, by their seats; zero of
    itself, and of all without models of them."""
    actor = actor_of(one.player)
    if actor is None or one.params.opponents is None:
        return jnp.zeros(legal.shape)

    def at(view: View, inferred: jax.Array, legal: jax.Array) -> jax.Array:
        told = inferred[: actor.parts.goal_size]
        others = foreseen(actor, one.params, view, jnp.roll(legal, -seat, axis=0), told)
        own_first = jnp.concatenate([jnp.zeros((1, legal.shape[1])), others])
        return jnp.roll(own_first, seat, axis=0)

    return jax.vmap(jax.vmap(at))(view, inferred, legal)
