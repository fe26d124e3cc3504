"""Does a game treat its seats alike? Its rules, exactly; and what comes of playing it.

A board can be turned: seat k's own view of it shows k as the first seat, so the state that this
view shows is the same board with the seats renamed. Rules that treat seats alike do to the
turned board what they do to the board.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.diagnosis.seats.ordering import Ordering, compare_episodes
from hopplus.evaluation.evaluate import evaluate, first_episodes
from hopplus.games.game import Game, has_board, repeat_step, views
from hopplus.play.rollout import begin, rollout, start
from hopplus.play.seating import Seating
from hopplus.players.scripted import scripted
from hopplus.types import State

CLOSE = 1e-5  # rewards that differ by less are equal


@dataclass(frozen=True)
class Symmetry:
    """Steps played on boards and on the same boards turned."""

    steps: int
    different: int  # steps after which anything differed
    known: bool  # whether a view shows all that the rules depend on, so that boards can be turned
    example: str  # one step that differed, in words


def turn(game: Game, state: State, by: jax.Array | int) -> State:
    """The same board with seat `by` as the first, the next as the second, and so on."""
    return game.seen(game.view(state, by))


@eqx.filter_jit
def _random_play(game: Game, keys: jax.Array) -> tuple[State, jax.Array, jax.Array]:
    """[T, B] states of random play, joint actions that need not be legal, and the steps' keys."""
    seating = Seating((scripted("random", game),) * game.seats)
    params = seating.init(keys[0])
    plays = jax.vmap(lambda key: start(game, seating, key))(keys)
    trajectory = rollout(game, seating, params, plays, game.horizon)[1]
    shape = trajectory.act.action.shape
    joint = jax.random.randint(keys[0], shape, 0, len(game.action_names))
    played = jnp.where(jnp.arange(shape[0])[:, None, None] % 2 == 0, joint, trajectory.act.action)
    return trajectory.state, played, trajectory.key


@eqx.filter_jit
def _differ(
    game: Game, states: State, joints: jax.Array, keys: jax.Array, by: jax.Array
) -> tuple[jax.Array, ...]:
    """Of steps [M, ...]: [M] bool whether one does something else on the turned board; both rewards
    [M, N], in the order of the board as it was."""
    order = (by + jnp.arange(game.seats)) % game.seats

    def one(state: State, joint: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        # The same key on both boards: what is left to chance must not depend on names either.
        after, outcome = repeat_step(game, state, joint, key)
        after_turned, outcome_turned = repeat_step(game, turn(game, state, by), joint[order], key)
        differs = outcome_turned.done != outcome.done
        differs |= (jnp.abs(outcome_turned.reward - outcome.reward[order]) > CLOSE).any()
        for name in ("left", "illegal", "took"):
            differs |= (getattr(outcome, name)[order] != getattr(outcome_turned, name)).any()
        seen = jax.tree.map(lambda leaf: leaf[order], views(game, after))
        same = jax.tree.map(lambda a, b: (a == b).all(), seen, views(game, after_turned))
        differs |= ~jnp.stack(jax.tree.leaves(same)).all()
        return differs, outcome.reward, outcome_turned.reward[jnp.argsort(order)]

    return jax.vmap(one)(states, joints, keys)


def compare_turns(game: Game, seed: int, games: int = 128) -> Symmetry:
    """Play steps of random games on every turn of their boards."""
    if not has_board(game):
        return Symmetry(0, 0, False, "")
    keys = jax.random.split(jax.random.key(seed), games)
    state, joint, key = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), _random_play(game, keys)
    )
    as_seen = np.asarray(_differ(game, state, joint, key, jnp.int32(0))[0])
    count = len(as_seen)
    if as_seen.any():  # what a seat sees does not show everything
        return Symmetry(count, 0, False, "")
    different, example = 0, ""
    for by in range(1, game.seats):
        found = _differ(game, state, joint, key, jnp.int32(by))
        differs, reward, other = (np.asarray(part) for part in found)
        different += int(differs.sum())
        if differs.any() and not example:
            where = int(np.argmax(differs))
            example = _example(game, state, joint, where, by, reward[where], other[where])
    return Symmetry(count * (game.seats - 1), different, True, example)


def _example(
    game: Game,
    state: State,
    joint: jax.Array,
    where: int,
    by: int,
    reward: np.ndarray,
    other: np.ndarray,
) -> str:
    board = game.show(jax.tree.map(lambda leaf: leaf[where], state))
    acts = ", ".join(game.action_names[action] for action in np.asarray(joint[where]))
    return (
        f"{board}\nactions of seats 0 to {game.seats - 1}: {acts}\n"
        f"rewards: {_rounded(reward)}; with seat {by} named first: {_rounded(other)}"
    )


def _rounded(rewards: np.ndarray) -> list[float]:
    return [round(float(reward), 3) for reward in rewards]


@dataclass(frozen=True)
class Placement:
    """Players of one kind in all seats, on boards and all their turns."""

    players: str
    episodes: int
    by_name: Ordering  # of boards, each the mean over all its turns
    by_place: Ordering | None  # None where boards cannot be turned


@eqx.filter_jit
def _turned_plays(game: Game, seating: Seating, params: Any, keys: jax.Array) -> jax.Array:
    """[E, N, N] returns of each seat's name, for each turn of each of E boards."""
    seats = game.seats

    def of_board(key: jax.Array) -> jax.Array:
        key_game, key_play = jax.random.split(key)
        state = game.init(key_game)

        def play(by: jax.Array, key: jax.Array) -> Any:
            return begin(game, seating, turn(game, state, by), key)

        plays = jax.vmap(play)(jnp.arange(seats), jax.random.split(key_play, seats))
        trajectory = rollout(game, seating, params, plays, game.horizon)[1]
        return first_episodes(trajectory).returns

    return jax.vmap(of_board)(keys)


def compare_placement(
    game: Game, player: str, seed: int, episodes: int, turning: bool = True
) -> Placement:
    """Play at least that many episodes with one kind of player in all seats; told apart are the
    name of a seat and the place it was dealt, if boards can be turned."""
    seats = game.seats
    seating = Seating((scripted(player, game),) * seats)
    params = seating.init(jax.random.key(seed))
    key = jax.random.fold_in(jax.random.key(seed), 1)
    if not turning:
        played = evaluate(game, seating, params, key, episodes).returns.astype(np.float64)
        return Placement(player, episodes, compare_episodes(played), None)
    boards = -(-episodes // seats)
    keys = jax.random.split(key, boards)
    found = _turned_plays(game, seating, params, keys)
    returns = np.asarray(found, np.float64)  # [E, turns, N]
    # On the board turned by k, the name n sits where seat n + k was dealt.
    turn, name = np.meshgrid(np.arange(seats), np.arange(seats), indexing="ij")
    by_place = np.zeros_like(returns)
    by_place[:, turn, (name + turn) % seats] = returns[:, turn, name]
    return Placement(
        player,
        boards * seats,
        compare_episodes(returns.mean(axis=1)),
        compare_episodes(by_place.mean(axis=1)),
    )
