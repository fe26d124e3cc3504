"""Learned players in any order: do returns follow the player, or the place?"""

from dataclasses import dataclass
from itertools import permutations
from math import factorial

import equinox as eqx
import jax
import numpy as np

from hopplus.diagnosis.seats.ordering import Ordering, compare_episodes, compare_runs
from hopplus.evaluation.evaluate import first_episodes
from hopplus.games.game import Game
from hopplus.play.rollout import begin, rollout
from hopplus.play.seating import Seating
from hopplus.players.actor import Actor
from hopplus.players.parameters import PlayerParams

MOST = 24  # orders that a board is played in


@dataclass(frozen=True)
class Permuted:
    """Players of S runs, each board played by them in the same orders."""

    episodes: int
    by_player: Ordering  # of runs: the player that learned in seat 0, in seat 1, ...
    by_place: Ordering  # of boards, each the mean over orders and runs
    apart: Ordering  # of boards, the players of the first run


def list_orders(seats: int, seed: int) -> np.ndarray:
    """[P, N] who sits in each place: all orders, or where there are too many drawn ones with all
    their turns, so that everyone sits everywhere equally often."""
    if factorial(seats) <= MOST:
        return np.array(list(permutations(range(seats))))
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(seats) for _ in range(max(1, MOST // seats))]
    return np.array([np.roll(order, by) for order in drawn for by in range(seats)])


@eqx.filter_jit
def _play_orders(
    game: Game,
    actor: Actor,
    param_sets: PlayerParams,
    orders: np.ndarray,
    key: jax.Array,
    boards: int,
) -> jax.Array:
    """[S, P, E, N] returns by place, of players [S, N, ...] on the same E boards."""
    seating = Seating((actor,) * game.seats)
    key_boards, key_play = jax.random.split(key)
    states = jax.vmap(game.init)(jax.random.split(key_boards, boards))
    shape = (len(jax.tree.leaves(param_sets)[0]), len(orders), boards)

    def in_order(players: PlayerParams, order: jax.Array, keys: jax.Array) -> jax.Array:
        seated = jax.tree.map(lambda leaf: leaf[order], players)
        plays = jax.vmap(lambda state, key: begin(game, seating, state, key))(states, keys)
        trajectory = rollout(game, seating, (seated,), plays, game.horizon)[1]
        returns: jax.Array = first_episodes(trajectory).returns
        return returns

    def of_run(run: tuple[PlayerParams, jax.Array]) -> jax.Array:
        players, keys = run
        return jax.lax.map(lambda now: in_order(players, *now), (orders, keys))

    # One after the other: parameters of its own for every game would be many.
    return jax.lax.map(of_run, (param_sets, jax.random.split(key_play, shape)))


def compare_permuted(
    game: Game, actor: Actor, param_sets: PlayerParams, seed: int, episodes: int
) -> Permuted:
    """Play at least that many episodes with the players [S, N, ...] of all runs together, or as
    many as the tests need."""
    orders = list_orders(game.seats, seed)
    runs = len(jax.tree.leaves(param_sets)[0])
    boards = max(3 * game.seats, -(-episodes // (runs * len(orders))))
    found = _play_orders(game, actor, param_sets, orders, jax.random.key(seed), boards)
    by_place = np.asarray(found, np.float64)  # [S, P, E, N]
    # Of each player, what came of the place it sat in.
    places = np.argsort(orders, axis=1)[None, :, None, :]
    by_player = np.take_along_axis(by_place, np.broadcast_to(places, by_place.shape), axis=3)
    return Permuted(
        by_place[..., 0].size,
        compare_runs(by_player.mean(axis=(1, 2))),
        compare_episodes(by_place.mean(axis=(0, 1))),
        compare_episodes(by_player[0].mean(axis=0)),
    )
