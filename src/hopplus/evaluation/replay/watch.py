"""Episodes watched from their start, with what everyone expected of the others."""

from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, views
from hopplus.play.introspection import actor_of, predict_others, predicts, telling
from hopplus.play.lineup import Lineup
from hopplus.play.rollout import Play, rollout, states_after
from hopplus.play.seating import Seating, Sitter
from hopplus.players.mixture import Mixture
from hopplus.players.player import Player
from hopplus.program_cache import kept_jit
from hopplus.types import Params, State, Trajectory, View

LEAST = 1e-9  # probability of what was thought impossible, so that it has a logarithm


class Watched(eqx.Module):
    """One episode of each of B games; what stands behind its end is not of it."""

    trajectory: Trajectory  # [T, B, ...], without memories
    after: State  # [T, B, ...] after the step
    legal: jax.Array  # [T, B, N, A] bool
    expected: jax.Array  # [T, B, N, N, A] float32, how likely a seat thinks each other acts so
    choice: jax.Array  # [T, B, N] int32, who of a mixture sits there; 0 where there is none
    modelled: jax.Array  # [T, B, N] bool, the seat has models of the others, or expects nothing

    @property
    @eqx.filter_jit
    def of_episode(self) -> jax.Array:
        """[T, B] bool, the steps up to the episode's end."""
        done = self.trajectory.outcome.done.astype(jnp.int32)
        return jnp.cumsum(done, axis=0) - done == 0

    @property
    @eqx.filter_jit
    def returns(self) -> jax.Array:
        """[B, N]"""
        reward = self.trajectory.outcome.reward
        return jnp.where(self.of_episode[..., None], reward, 0.0).sum(axis=0)

    @property
    @eqx.filter_jit
    def modelling(self) -> jax.Array:
        """[T, B, N, N] bool, where a seat that is present has a model of another who has a choice
        and the step is of the episode."""
        present = self.trajectory.present & self.of_episode[..., None]
        chooses = present & (self.legal.sum(axis=-1) > 1)
        apart = ~np.eye(present.shape[-1], dtype=bool)
        looks = present & self.modelled
        return looks[..., :, None] & chooses[..., None, :] & apart

    @property
    @eqx.filter_jit
    def surprise(self) -> jax.Array:
        """[B] mean of minus the log-likelihood of what the others did; nan where nobody has models
        or nobody a choice."""
        action = self.trajectory.act.action[:, :, None, :, None]
        likely = jnp.take_along_axis(self.expected, action, axis=-1)[..., 0]
        missed = jnp.where(self.modelling, -jnp.log(jnp.maximum(likely, LEAST)), 0.0)
        return missed.sum(axis=(0, 2, 3)) / self.modelling.sum(axis=(0, 2, 3))


def game_of(seen: Watched, place: int) -> Watched:
    """One of the games [T, ...], on the host."""
    one: Watched = jax.tree.map(lambda leaf: np.asarray(leaf)[:, place], seen)
    return one


class Sitting(NamedTuple):
    """Someone who may sit in a seat."""

    player: Player
    params: Params  # one set


def anyone(player: Sitter) -> tuple[Player, ...]:
    """The player, or those of a mixture."""
    return player.players if isinstance(player, Mixture) else (player,)


def sitting(seating: Seating, params: tuple[Params, ...]) -> list[list[Sitting]]:
    """[N] whoever may sit in each seat: the player, or those of its mixture."""
    seats: list[list[Sitting]] = [[] for _ in seating.players]
    for (player, numbers), sets in zip(seating.groups, params, strict=True):
        for place, seat in enumerate(numbers):
            one = 0 if player.shares_params else place
            own = jax.tree.map(lambda leaf: leaf[one], sets)  # noqa: B023
            each = player.unpack(own) if isinstance(player, Mixture) else (own,)
            seats[seat] = [Sitting(*pair) for pair in zip(anyone(player), each, strict=True)]
    return seats


def seated(lineup: Lineup) -> tuple[Seating, tuple[Params, ...]]:
    """Everyone as they sit, those who have learned before with what they have learned.

    Players that differ in their names alone are one, which compiles in a fraction of the time.
    """
    players = tuple(telling(player) for player in lineup.seating.players)
    seating = replace(lineup.seating, players=players)

    def known(player: Sitter) -> Params:
        if isinstance(player, Mixture):
            return player.pack([known(one) for one in player.players])
        return lineup.trained.get(player.name, ())

    own = [known(player) for player in lineup.seating.players]
    stacked = tuple(
        jax.tree.map(
            lambda *leaves: np.stack(leaves),
            *[own[seat] for seat in (seats[:1] if player.shares_params else seats)],
        )
        for player, seats in seating.groups
    )
    return seating, stacked


def watch(game: Game, seating: Seating, params: tuple[Params, ...], plays: Play) -> Watched:
    """Play games [B, ...] to the horizon, and look into everyone."""
    return watch_steps(game, seating, params, plays, game.horizon)[1]


@kept_jit
def watch_steps(
    game: Game, seating: Seating, params: tuple[Params, ...], plays: Play, steps: int
) -> tuple[Play, Watched]:
    """So many steps of games under way [B, ...], and a look into everyone; with the games after
    them."""
    plays_after, trajectory = rollout(game, seating, params, plays, steps)
    after = states_after(game, trajectory)

    choices = plays.choice
    seen = jax.vmap(jax.vmap(lambda state: views(game, state)))(trajectory.state)
    expected, modelled = [], []
    for seat, someone in enumerate(sitting(seating, params)):
        view: View = jax.tree.map(lambda leaf: leaf[:, :, seat], seen)  # noqa: B023
        inferred = trajectory.act.inferred[:, :, seat]
        each = jnp.stack([_expected(one, seat, view, inferred, seen.legal) for one in someone])
        chosen = jax.nn.one_hot(choices[:, seat], len(someone))  # [B, options]
        expected.append(jnp.einsum("bk,ktboa->tboa", chosen, each, precision="highest"))
        models = [bool((actor := actor_of(one)) and predicts(actor, own)) for one, own in someone]
        modelled.append(jnp.asarray(models)[choices[:, seat]])
    return plays_after, Watched(
        trajectory=replace(trajectory, memory=()),
        after=after,
        legal=seen.legal,
        expected=jnp.stack(expected, axis=2),
        choice=jnp.tile(choices, (steps, 1, 1)),
        modelled=jnp.tile(jnp.stack(modelled, axis=1), (steps, 1, 1)),
    )


def _expected(
    one: Sitting, seat: int, view: View, inferred: jax.Array, legal: jax.Array
) -> jax.Array:
    """[T, B, N, A] what someone who sits in a seat expects of the others, by their seats; zero of
    itself, and of all without models of them."""
    actor = actor_of(one.player)
    if actor is None or not predicts(actor, one.params):
        return jnp.zeros(legal.shape)

    def at(view: View, inferred: jax.Array, legal: jax.Array) -> jax.Array:
        known = inferred[: actor.context.size]
        others = predict_others(actor, one.params, view, jnp.roll(legal, -seat, axis=0), known)
        own_first = jnp.concatenate([jnp.zeros((1, legal.shape[1])), others])
        return jnp.roll(own_first, seat, axis=0)

    return jax.vmap(jax.vmap(at))(view, inferred, legal)
