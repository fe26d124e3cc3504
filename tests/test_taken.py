"""What others turned out to be after, and models of them that are told so."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.learning.auxiliary.opponent import OpponentLearner
from hopplus.learning.auxiliary.transitions import Transitions
from hopplus.players.context.belief import goals_taken
from hopplus.types import Outcome
from tiny_hop_plus import OPPONENT, PPO, jit, same
from tiny_search import GAME_MADE, actor_of, mind_of

STAG, HARE = 0, 1


def test_goals_taken_by_hand() -> None:
    """Two games of five steps. In the first, seat 1 takes a hare in the second step and seat 2 a
    stag in the third, with which the episode ends; seat 0 a stag in the next. In the second game
    nothing is taken but hares by seat 2 up to the fourth step, and a stag in the last."""
    took = np.zeros((5, 2, 3, 2), np.int32)
    took[1, 0, 1, HARE] = took[2, 0, 2, STAG] = took[4, 0, 0, STAG] = 1
    took[2:4, 1, 2, HARE] = took[4, 1, 2, STAG] = 1
    done = np.zeros((5, 2), bool)
    done[2, 0] = True
    nothing = jnp.zeros((5, 2, 3))
    outcome = Outcome(nothing, nothing, jnp.asarray(done), nothing, jnp.asarray(took), nothing)
    goals = np.asarray(goals_taken(outcome, np.array([1, 0])))
    assert goals.shape == (5, 2, 2, 4)
    none, stag, hare = [0, 0], [1, 0], [0, 1]
    # Of seat 0, up to and with the step, and of seats 1 and 2; nothing is known across an end.
    of_seats = [
        [none, none, none, stag, stag],
        [hare, hare, none, none, none],
        [stag, stag, stag, none, none],
    ]
    for step in range(5):
        zero, one, two = (seat[step] for seat in of_seats)
        assert goals[step, 0, 0].tolist() == two + zero  # the others of seat 1, from it on
        assert goals[step, 0, 1].tolist() == one + two
        last = stag if step == 4 else hare
        assert goals[step, 1, 0].tolist() == last + none
        assert goals[step, 1, 1].tolist() == none + last


def test_nothing_is_a_goal_as_well() -> None:
    """Where the episode is seen to end: of those who took nothing to that end."""
    took = np.zeros((4, 1, 2, 2), np.int32)
    took[0, 0, 1, HARE] = took[3, 0, 1, STAG] = 1
    done = jnp.array([[False], [False], [True], [False]])
    nothing = jnp.zeros((4, 1, 2))
    outcome = Outcome(nothing, nothing, done, nothing, jnp.asarray(took), nothing)
    goals = np.asarray(goals_taken(outcome, np.array([0, 1]), none=True))[:, 0]
    assert goals[:, 0].tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert goals[:, 1].tolist() == [[0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0]]  # not seen


def test_models_learn_nothing_of_those_who_were_not_seen_to_take_anything() -> None:
    """Of all play, half of which tells what the second other was after."""
    actor = actor_of("opponent", "belief")
    online = OpponentLearner(GAME_MADE, actor, OPPONENT, np.arange(3)[:, None], 1)
    param_sets = jax.tree.map(
        lambda *one: jnp.stack(one), *(mind_of(actor, seed) for seed in range(3))
    )
    rows, games = PPO.unroll, PPO.games
    starts = jit(jax.vmap(jax.vmap(GAME_MADE.init)))
    states = starts(jax.random.split(jax.random.key(2), (rows, games)))
    joints = jnp.full((rows, games, 3), 4)  # all stay

    @jit
    def fit(inferred: jax.Array) -> Any:
        transitions = Transitions(states, joints, inferred=inferred)
        empty = online.init(param_sets, transitions)
        auxiliary = replace(empty, buffer=online.keep(empty.buffer, transitions, jnp.int32(0)))
        after, _, losses = online.fit(param_sets, auxiliary, jax.random.key(0))
        return after.opponents, losses, online.measure(param_sets, transitions, jax.random.key(1))

    unknown = jnp.zeros((rows, games, 3, 4))
    known = unknown.at[:, : games // 2, :, 2 + HARE].set(1.0)
    models, losses, found = fit(unknown)
    assert same(models, param_sets.opponents)
    assert not losses["loss/cross_entropy"].any()
    assert not found["count"].any()
    models, losses, found = fit(known)
    for before, after in zip(*map(jax.tree.leaves, (param_sets.opponents, models)), strict=True):
        np.testing.assert_array_equal(before[:, 0], after[:, 0])
        assert (before[:, 1] != after[:, 1]).any()
    assert np.isfinite(losses["loss/cross_entropy"]).all()
    assert (losses["loss/cross_entropy"] > 0).all()
    count = found["count"].sum(axis=2)  # by other
    assert not count[:, 0].any()
    assert (count[:, 1] > 10).all()
