"""Trials: one player among others who stay the same for several episodes."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.evaluation.crossplay import Member, around, make_table
from hopplus.games.game import Game
from hopplus.learning.rollout import Play, rollout, start
from hopplus.players.actor import Actor
from hopplus.players.mixture import Mixture
from hopplus.players.planner import Planner
from hopplus.players.player import Player
from hopplus.players.seating import Seating
from hopplus.types import Params


def mixtures(game: Game) -> list[tuple[str, ...]]:
    """All combinations of the game's scripted players for the seats beside one's own."""
    kinds = (*game.targets, "random")
    return list(combinations_with_replacement(kinds, game.seats - 1))


def turned(company: Sequence[str], seat: int) -> list[str]:
    """Names for all seats, with those of the company in the seats after `seat`, in order; the name
    in the seat itself means nothing."""
    names = [company[0], *company]
    return [names[(place - seat) % len(names)] for place in range(len(names))]


def for_trials(player: Player, episodes: int) -> Player:
    """The same player, with a memory that lasts for so many episodes if it has one for trials."""
    if isinstance(player, Planner):
        actor = for_trials(player.actor, episodes)
        assert isinstance(actor, Actor)
        return replace(player, actor=actor)
    if isinstance(player, Actor) and player.parts.memory:
        memory = replace(player.parts.memory, trial=episodes)
        return replace(player, parts=replace(player.parts, memory=memory))
    return player


@eqx.filter_jit
def play_trials(
    game: Game,
    seating: Seating,
    params: tuple[Params, ...],
    keys: jax.Array,
    choices: jax.Array,
    episodes: int,
) -> jax.Array:
    """[B, episodes, N] returns of the first episodes of each of [B] trials, with [N] ones of the
    mixtures seated throughout."""

    def begun(key: jax.Array) -> Play:
        return replace(start(game, seating, key), memory=seating.seated(choices))

    plays = jax.vmap(begun)(keys)
    trajectory = rollout(game, seating, params, plays, episodes * game.horizon)[1]
    done = trajectory.outcome.done.astype(jnp.int32)  # [T, B]
    number = jnp.cumsum(done, axis=0) - done  # episodes over before each step
    which = number[..., None] == jnp.arange(episodes)  # [T, B, E]
    reward = trajectory.outcome.reward  # [T, B, N]
    return jnp.einsum("tbe,tbn->ben", which.astype(reward.dtype), reward, precision="highest")


class Trials:
    """One program that seats anyone of some members, for trials of so many episodes."""

    def __init__(self, game: Game, members: Sequence[Member], episodes: int) -> None:
        self.game, self.episodes = game, episodes
        self.table = make_table([self._lasting(member) for member in members])
        mixture = Mixture(self.table.kinds, trial=episodes)
        self.seating = Seating((mixture,) * game.seats)

    def _lasting(self, member: Member) -> Member:
        players = tuple(for_trials(player, self.episodes) for player in member.players)
        return replace(member, players=players)

    def returns(
        self, focal: Member, company: Member, seat: int, trials: int, key: jax.Array
    ) -> np.ndarray:
        """[trials, episodes] returns of the focal member's player in that seat."""
        members = [self._lasting(member) for member in around(focal, company, seat)]
        params, choices = self.table.seated(members)
        keys = jax.random.split(key, trials)
        found = play_trials(self.game, self.seating, params, keys, choices, self.episodes)
        return np.asarray(found[:, :, seat], np.float64)
