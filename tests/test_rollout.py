"""Rollouts: every step follows from the one before, and episodes begin afresh."""

from functools import partial
from itertools import pairwise

import jax
import numpy as np
import pytest
from scipy import stats

from hopplus.config import StagHuntConfig
from hopplus.games.game import repeat_step, views
from hopplus.games.stag_hunt import StagHunt
from hopplus.play.rollout import Play, begin, rollout, start
from hopplus.play.seating import Seating, seat_players
from hopplus.types import Trajectory

T, B = 60, 32
GAME = StagHunt(StagHuntConfig(size=5, obstacles=1, boards=4, horizon=12))
SEATING = seat_players("stag,switch,hare,random", GAME)


@pytest.fixture(scope="module")
def played() -> tuple[Play, Play, Trajectory]:
    """Games before, games after, and what happened between."""
    return play(GAME, SEATING, jax.random.split(jax.random.key(0), B))


def play(game: StagHunt, seating: Seating, keys: jax.Array) -> tuple[Play, Play, Trajectory]:
    @jax.jit
    def go(keys: jax.Array) -> tuple[Play, Play, Trajectory]:
        plays = jax.vmap(lambda key: start(game, seating, key))(keys)
        after, trajectory = rollout(game, seating, seating.init(keys[0]), plays, T)
        return plays, after, trajectory

    played: tuple[Play, Play, Trajectory] = jax.device_get(go(keys))
    return played


def test_shapes(played: tuple[Play, Play, Trajectory]) -> None:
    _, _, trajectory = played
    assert trajectory.present.shape == (T, B, 4)
    assert trajectory.act.action.shape == (T, B, 4)
    assert trajectory.act.logits.shape == (T, B, 4, 7)
    assert trajectory.outcome.reward.shape == (T, B, 4)
    assert trajectory.outcome.done.shape == (T, B)


def test_each_state_is_the_step_of_the_one_before(
    played: tuple[Play, Play, Trajectory],
) -> None:
    before, after, trajectory = played
    stepped, outcome = jax.jit(jax.vmap(jax.vmap(partial(repeat_step, GAME))))(
        trajectory.state, trajectory.act.action, trajectory.key
    )
    jax.tree.map(np.testing.assert_array_equal, outcome, trajectory.outcome)
    done = trajectory.outcome.done
    assert 0 < done.sum() < done.size
    following = jax.tree.map(
        lambda states, last: np.concatenate([states[1:], last[None]]), trajectory.state, after.state
    )

    def check(next_leaf: np.ndarray, stepped_leaf: np.ndarray) -> None:
        np.testing.assert_array_equal(next_leaf[~done], np.asarray(stepped_leaf)[~done])

    jax.tree.map(check, following, stepped)
    assert (following.steps[done] == 0).all()
    assert following.present[done].all()
    assert following.alive[done].all()
    assert (following.last_actions[done] == -1).all()
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a[0], b), trajectory.state, before.state
    )


def test_presence_and_endings(played: tuple[Play, Play, Trajectory]) -> None:
    _, _, trajectory = played
    np.testing.assert_array_equal(trajectory.present, trajectory.state.present)
    gone = ~trajectory.present
    assert gone.any()
    assert (trajectory.act.action[gone] == 4).all()
    assert (trajectory.outcome.reward[gone] == 0).all()
    assert not trajectory.outcome.left[gone].any()
    assert not trajectory.outcome.illegal.any()  # scripted players keep to the rules


def test_views_of_games_in_flight_are_those_of_their_states(
    played: tuple[Play, Play, Trajectory],
) -> None:
    _, after, _ = played
    expected = jax.jit(jax.vmap(lambda state: views(GAME, state)))(after.state)
    jax.tree.map(np.testing.assert_array_equal, after.view, expected)


def test_memory_lasts_an_episode_and_no_longer(played: tuple[Play, Play, Trajectory]) -> None:
    _, _, trajectory = played
    goal = trajectory.act.goal[:, :, 1].argmax(axis=-1)  # seat 1 switches
    episode = np.cumsum(trajectory.outcome.done, axis=0) - trajectory.outcome.done
    changes = 0
    for b in range(B):
        kinds = [set(goal[episode[:, b] == e, b].tolist()) for e in range(episode[-1, b] + 1)]
        assert all(len(kind) == 1 for kind in kinds)
        changes += sum(one != two for one, two in pairwise(kinds))
    assert changes > B / 4


def test_games_do_not_depend_on_their_neighbours() -> None:
    keys = jax.random.split(jax.random.key(0), B)
    _, _, together = play(GAME, SEATING, keys)
    _, _, few = play(GAME, SEATING, keys[5:7])
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:, 5:7], b), together, few)


def test_new_boards_are_the_same_whether_or_not_somebody_asks(
    played: tuple[Play, Play, Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made when an episode ends, or in every step, by what is cheaper on the machine."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    again = play(GAME, SEATING, jax.random.split(jax.random.key(0), B))
    for one, two in zip(*map(jax.tree.leaves, (played[1:], again[1:])), strict=True):
        if isinstance(one, np.ndarray):  # keys aside
            np.testing.assert_array_equal(one, two)


def test_fresh_games_differ(played: tuple[Play, Play, Trajectory]) -> None:
    _, _, trajectory = played
    begun = trajectory.state.steps == 0
    boards = np.concatenate([trajectory.state.seats, trajectory.state.prey], axis=-1)[begun]
    assert len(np.unique(boards, axis=0)) == len(boards)
    assert len(np.unique(boards[:, 0])) > 20


def test_fresh_games_draw_their_board_anew(played: tuple[Play, Play, Trajectory]) -> None:
    _, _, trajectory = played
    begun = trajectory.state.steps == 0
    walls = trajectory.state.walls[begun]
    which = (walls[:, None] == GAME.bank.walls).all(axis=-1)  # [episodes, boards]
    assert which.any(axis=1).all()
    assert which.any(axis=0).all()
    pieces = np.concatenate([trajectory.state.seats, trajectory.state.prey], axis=-1)[begun]
    assert not np.take_along_axis(walls, pieces, axis=1).any()


def test_seats_act_independently() -> None:
    """What one random player does says nothing about what another does."""
    game = StagHunt(StagHuntConfig(size=3, seats=3, hares=2))
    seating = seat_players("random,random,random", game)
    state = game.parse(". 0 .\n1 S 2\n. h .")  # three legal moves and stay for each

    @jax.jit
    def actions(keys: jax.Array) -> jax.Array:
        plays = jax.vmap(lambda key: begin(game, seating, state, key))(keys)
        return rollout(game, seating, ((),), plays, 1)[1].act.action[0]

    drawn = np.asarray(actions(jax.random.split(jax.random.key(1), 4000)))
    for one, two in ((0, 1), (1, 2), (0, 2)):
        table = np.zeros((7, 7))
        np.add.at(table, (drawn[:, one], drawn[:, two]), 1)
        table = table[table.any(axis=1)][:, table.any(axis=0)]
        assert table.shape == (4, 4)
        assert stats.chi2_contingency(table).pvalue > 0.001
