"""Markov Snowdrift: its rules by hand, and against plain Python."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plain_snowdrift as plain
from board_checks import (
    assert_same_views,
    assert_uniform,
    at,
    compiled,
    parse_all,
    plain_rules,
    play_layout,
    random_layouts,
)
from hopplus.config import ConfigError, SnowdriftConfig
from hopplus.games.game import views
from hopplus.games.snowdrift import Snowdrift
from hopplus.types import Outcome

UP, DOWN, LEFT, RIGHT, STAY, CLEAR = range(6)
SMALL = SnowdriftConfig(size=3, seats=3, drifts=2, horizon=5)
ACTIONS = [-1, UP, DOWN, LEFT, RIGHT, STAY, *[CLEAR] * 6, 6, 7, 8]
TRANSITIONS = 20_000  # over all settings, at least

SETTINGS = {  # and how many games of each
    "default": (SnowdriftConfig(), 120),
    "two seats, wide": (SnowdriftConfig(height=2, width=5, seats=2, drifts=4, horizon=15), 320),
    "eight seats, tall": (SnowdriftConfig(height=6, width=4, seats=8, drifts=5), 170),
    "a row": (SnowdriftConfig(height=1, width=9, seats=3, drifts=2), 300),
    "full": (SnowdriftConfig(size=3, seats=3, drifts=6, reward=0.5, cost=7.0), 200),
    "rewards": (SnowdriftConfig(size=4, seats=7, drifts=3, reward=0.1, cost=0.0), 380),
    "short": (SnowdriftConfig(size=5, seats=4, drifts=6, horizon=6), 500),
    "costs in thirds": (SnowdriftConfig(size=6, seats=6, drifts=9, cost=0.7, obstacles=2), 115),
}
STEPS = 28


def play(
    text: str, *joints: tuple[int, ...], config: SnowdriftConfig = SMALL
) -> tuple[Any, Outcome, Any]:
    return play_layout(config, text, *joints)


# By hand


def test_everybody_is_rewarded_and_the_clearer_pays() -> None:
    state, outcome, game = play("0D . 1 \n . D . \n . 2 .", (CLEAR, DOWN, STAY))
    assert outcome.reward.tolist() == [2.0, 6.0, 6.0]
    assert outcome.took.tolist() == [[1], [0], [0]]
    assert outcome.taken.tolist() == [1]
    assert not outcome.illegal.any()
    assert not outcome.left.any()
    assert not outcome.done
    assert game.show(state) == "0 . .\n. D 1\n. 2 ."
    assert jax.device_get(game.present(state)).all()


def test_clearers_of_a_drift_share_its_cost() -> None:
    text = "012D . . \n . D . \n . . ."
    assert play(text, (CLEAR, STAY, CLEAR))[1].reward.tolist() == [4.0, 6.0, 4.0]
    _, outcome, _ = play(text, (CLEAR, CLEAR, CLEAR))
    np.testing.assert_allclose(outcome.reward, [6 - 4 / 3] * 3, rtol=1e-6)
    assert outcome.taken.tolist() == [1]


def test_two_drifts_at_once_are_paid_for_apart() -> None:
    _, outcome, _ = play("0D . . \n . 12D . \n . . .", (CLEAR, CLEAR, CLEAR))
    assert outcome.reward.tolist() == [8.0, 10.0, 10.0]
    assert outcome.took.tolist() == [[1], [1], [1]]
    assert outcome.taken.tolist() == [2]
    assert outcome.done  # no drift is left


def test_clearing_is_resolved_before_anyone_moves() -> None:
    state, outcome, _ = play("0D 1D . \n . . . \n . . 2", (RIGHT, CLEAR, CLEAR))
    assert outcome.reward.tolist() == [6.0, 2.0, 6.0]  # seat 0 comes too late, and off its own
    assert state.seats.tolist() == [1, 1, 8]
    assert outcome.illegal.tolist() == [False, False, True]
    assert state.last_actions.tolist() == [RIGHT, CLEAR, STAY]


def test_a_cleared_drift_does_not_come_back() -> None:
    text = "0D . D \n . . . \n . 1 2"
    state, outcome, game = play(text, (CLEAR, STAY, STAY), (CLEAR, STAY, STAY))
    assert outcome.reward.tolist() == [0.0, 0.0, 0.0]
    assert outcome.illegal.tolist() == [True, False, False]
    assert state.last_actions.tolist() == [STAY, STAY, STAY]
    assert game.show(state).count("D") == 1


def test_moves_walls_and_edges() -> None:
    text = "0 # D \n 1 . . \n 2 . ."
    state, outcome, game = play(text, (RIGHT, LEFT, DOWN))  # a wall, the edge, the edge
    assert outcome.illegal.tolist() == [True, True, True]
    assert game.show(state) == game.show(game.parse(text))
    state, outcome, game = play(text, (-1, 6, 2**30))
    assert outcome.illegal.tolist() == [True, True, True]
    assert state.last_actions.tolist() == [STAY] * 3
    state, outcome, game = play(text, (DOWN, RIGHT, RIGHT), (DOWN, UP, UP))
    assert game.show(state) == game.show(game.parse(". # D \n . 12 . \n 0 . ."))
    assert outcome.illegal.tolist() == [False, True, False]  # seat 1 ran into the wall


def test_the_horizon_ends_it() -> None:
    joints = [(STAY, STAY, STAY)] * 5
    text = "0D . D \n . . . \n . 1 2"
    assert [bool(play(text, *joints[:n])[1].done) for n in range(1, 6)] == [False] * 4 + [True]


def test_view_of_a_seat() -> None:
    game = Snowdrift(SMALL)
    see = jax.jit(lambda state: views(game, state))
    state = game.parse("0 . D \n # 1D . \n . . 2")
    seen = see(state)
    assert seen.planes.shape == (3, 3, 3, 5)
    # Seat 1 sees itself first, then seat 2, then seat 0, obstacles, drifts.
    marks = {tuple(place) for place in np.argwhere(np.asarray(seen.planes[1])).tolist()}
    assert marks == {(1, 1, 0), (2, 2, 1), (0, 0, 2), (1, 0, 3), (0, 2, 4), (1, 1, 4)}
    assert seen.legal.tolist()[1] == [True, True, False, True, True, True]
    assert seen.legal.tolist()[0] == [False, False, False, True, True, False]
    assert seen.last_actions.tolist() == [[-1] * 3] * 3
    state, _ = jax.jit(game.step)(state, jnp.array([RIGHT, CLEAR, LEFT]), jax.random.key(0))
    seen = see(state)
    assert seen.last_actions[1].tolist() == [CLEAR, LEFT, RIGHT]
    assert not seen.planes[:, 1, 1, 4].any()
    assert seen.time.tolist() == [np.float32(1 / 5)] * 3


def test_best_joint_return_of_the_rules() -> None:
    assert Snowdrift(SnowdriftConfig()).best_joint_return == 120.0
    assert Snowdrift(SnowdriftConfig(cost=30.0)).best_joint_return == 0.0  # better left alone


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 . . \n . D . \n . . 2", "lacks seat 1"),
        ("0 D D \n . D . \n 1 . 2", "has 3 D but the game is set to 2"),
        ("0 . . \n . DD . \n 1 . 2", "D"),  # [1] one on a cell
        ("0 . . \n . S . \n 1 . 2", "'S' in row 2, column 2"),
        ("0 . . \n . D . \n 1 . 3", "'3' in row 3, column 3 of the layout is not a seat from 0"),
        ("0 1 2 \n . D .", "has 2 rows"),
    ],
)
def test_broken_layouts_are_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Snowdrift(SMALL).parse(text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": 3}, "3x3 has 9 cells but 4 seats, 6 drifts"),
        ({"seats": 9}, "game.seats is 9 but must be from 2 to 8"),
        ({"seats": 1}, "game.seats is 1"),
        ({"drifts": 0}, "game.drifts is 0"),
        ({"cost": -1.0}, "game.cost is -1.0"),
        ({"reward": float("nan")}, "game.reward is nan"),
        ({"horizon": 0}, "game.horizon is 0"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SnowdriftConfig(**settings)


# Against plain Python


def assert_same_state(state: Any, expected: plain.Board, columns: int) -> None:
    def cells(numbers: Any) -> list[tuple[int, int]]:
        return [divmod(int(number), columns) for number in numbers]

    assert cells(state.seats) == expected.where
    assert cells(state.drifts[state.there]) == expected.drifts
    assert set(cells(np.flatnonzero(state.walls))) == expected.obstacles
    assert state.steps == expected.steps
    assert state.last_actions.tolist() == expected.last_actions


def assert_same_outcomes(outcome: Any, expected: list[plain.Result]) -> None:
    """Of some steps [T]. The plain rules reckon in 64 bits: rounding may lie between."""
    told = [result.rewards for result in expected]
    np.testing.assert_allclose(outcome.reward, told, rtol=1e-6, atol=1e-6)
    assert outcome.done.tolist() == [result.done for result in expected]
    assert outcome.illegal.tolist() == [result.illegal for result in expected]
    assert outcome.taken.tolist() == [[len(result.cleared)] for result in expected]
    assert outcome.took[..., 0].tolist() == [result.clearers for result in expected]
    assert not outcome.left.any()


@pytest.mark.parametrize("name", SETTINGS)
def test_no_difference(name: str) -> None:
    config, games = SETTINGS[name]
    rules, (game, player) = plain_rules(plain.Rules, config), compiled(config)
    texts = random_layouts(config, games, seed=1)
    steps = min(STEPS, config.horizon)
    rng = np.random.default_rng(2)
    joints = rng.choice(ACTIONS, (steps, games, config.seats))
    start = parse_all(game, texts)
    seen, states, outcomes = player(start, joints, 0)
    compared = 0
    for n, text in enumerate(texts):
        board = plain.read(rules, text)
        assert game.show(at(start, n)) == plain.write(rules, board)
        expected: list[list[plain.View]] = []
        results: list[plain.Result] = []
        while not (results and results[-1].done) and len(results) < steps:
            expected.append([plain.view(rules, board, seat) for seat in range(config.seats)])
            board, result = plain.step(rules, board, joints[len(results), n].tolist())
            assert_same_state(at(states, len(results), n), board, config.columns)
            results.append(result)
        assert_same_views(at(seen, slice(len(results)), n), expected)
        assert_same_outcomes(at(outcomes, slice(len(results)), n), results)
        compared += len(results)
    assert compared >= TRANSITIONS / len(SETTINGS)


def test_starts_are_all_alike() -> None:
    config = SnowdriftConfig(size=2, seats=2, drifts=1)
    state = jax.jit(jax.vmap(Snowdrift(config).init))(jax.random.split(jax.random.key(3), 24_000))
    cells = np.concatenate([state.seats, state.drifts], axis=1)  # [B, 3], 24 arrangements of 4
    assert state.there.all()
    assert (np.diff(np.sort(cells, axis=1)) > 0).all()
    first, second, third = cells.T
    second_rank = second - (second > first)
    third_rank = (third > first).astype(int) + (third > second)
    assert_uniform((first * 3 + second_rank) * 2 + (third - third_rank), 24)
