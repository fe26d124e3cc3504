"""The coin game: its rules by hand, against plain Python, and its chance."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plain_coin as plain
from board_checks import (
    assert_equal,
    assert_same_views,
    assert_uniform,
    at,
    compiled,
    parse_all,
    plain_rules,
    play_layout,
    random_layouts,
)
from hopplus.config import CoinConfig, ConfigError
from hopplus.games.coin import CoinGame
from hopplus.games.game import views
from hopplus.types import Outcome

UP, DOWN, LEFT, RIGHT, STAY = range(5)
SMALL = CoinConfig(size=3, seats=3, coins=2, horizon=5)
ACTIONS = np.array([-1, *[UP, DOWN, LEFT, RIGHT] * 4, STAY, 5, 6, 7, 8])
TRANSITIONS = 20_000  # over all settings, at least

SETTINGS = {  # and how many games of each
    "default": (CoinConfig(), 90),
    "full": (CoinConfig(size=3, seats=3, coins=6, horizon=30), 90),
    "full, four seats, wide": (CoinConfig(height=2, width=5, seats=4, coins=6), 90),
    "a row": (CoinConfig(height=1, width=7, coins=3, reward=0.3, harm=0.7), 90),
    "nearly full": (CoinConfig(size=4, seats=2, coins=12, harm=0.0), 90),
    "four seats, tall": (CoinConfig(height=5, width=3, seats=4, coins=5, harm=3.0), 90),
    "short": (CoinConfig(size=3, seats=4, coins=1, horizon=4), 630),
    "large, obstacles": (CoinConfig(height=6, width=8, seats=3, coins=20, obstacles=3), 90),
}
STEPS = 28


def play(
    text: str, *joints: tuple[int, ...], config: CoinConfig = SMALL
) -> tuple[Any, Outcome, Any]:
    return play_layout(config, text, *joints)


# By hand


def test_own_coin_harms_nobody() -> None:
    state, outcome, _ = play("0 a . \n 1 . . \n 2 . b", (RIGHT, STAY, STAY))
    assert outcome.reward.tolist() == [1.0, 0.0, 0.0]
    assert outcome.took.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert outcome.taken.tolist() == [1, 0, 0]
    assert not outcome.left.any()
    assert not outcome.done
    assert (state.coins[1], state.owners[1]) == (8, 1)  # the other one stays


def test_the_owner_is_harmed_by_another() -> None:
    _, outcome, _ = play("0 c . \n 1 . . \n 2 . b", (RIGHT, STAY, STAY))
    assert outcome.reward.tolist() == [1.0, 0.0, -2.0]
    assert outcome.took.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]  # two seats after its own
    assert outcome.taken.tolist() == [0, 0, 1]


def test_takers_share_and_the_owner_among_them_is_harmed_in_part() -> None:
    text = "0 c 1 \n . 2 . \n b . ."
    assert play(text, (RIGHT, LEFT, STAY))[1].reward.tolist() == [0.5, 0.5, -2.0]
    _, outcome, _ = play(text, (RIGHT, STAY, UP))
    assert outcome.reward.tolist() == [0.5, 0.0, 0.5 - 2 / 2]
    assert outcome.taken.tolist() == [1, 0, 0]  # its owner is among the takers
    _, outcome, _ = play(text, (RIGHT, LEFT, UP))
    np.testing.assert_allclose(outcome.reward, [1 / 3, 1 / 3, 1 / 3 - 2 * 2 / 3], atol=1e-6)
    assert outcome.took.tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_harms_by_two_coins_add_up() -> None:
    _, outcome, _ = play("0 c . \n 1 c . \n . . 2", (RIGHT, RIGHT, STAY))
    assert outcome.reward.tolist() == [1.0, 1.0, -4.0]
    _, outcome, _ = play("0 b . \n 1 a . \n . . 2", (RIGHT, RIGHT, STAY))
    assert outcome.reward.tolist() == [-1.0, -1.0, 0.0]
    assert outcome.taken.tolist() == [0, 1, 1]


def test_players_swap_places_and_share_cells() -> None:
    state, outcome, _ = play("0 1 . \n a . . \n . b 2", (RIGHT, LEFT, STAY))
    assert state.seats.tolist() == [1, 0, 8]
    assert outcome.reward.tolist() == [0.0, 0.0, 0.0]
    assert state.coins.tolist() == [3, 7]
    state, _, _ = play("0 1 . \n a . . \n . b 2", (RIGHT, STAY, STAY))
    assert state.seats.tolist() == [1, 1, 8]


def test_illegal_actions_count_as_stay() -> None:
    state, outcome, _ = play("0 # a \n b 1 . \n . . 2", (RIGHT, UP, RIGHT))  # walls, the edge
    assert outcome.illegal.tolist() == [True, True, True]
    assert state.seats.tolist() == [0, 4, 8]
    assert state.last_actions.tolist() == [STAY] * 3
    _, outcome, _ = play("0 # a \n b 1 . \n . . 2", (-1, 5, 2**30))
    assert outcome.illegal.tolist() == [True, True, True]
    _, outcome, _ = play("0 # a \n b 1 . \n . . 2", (DOWN, STAY, UP))
    assert outcome.illegal.tolist() == [False, False, False]
    assert outcome.reward.tolist() == [1.0, -2.0, 0.0]


def test_coins_come_back_where_there_is_room() -> None:
    """One cell is left for each: those that the takers came from."""
    config = CoinConfig(height=2, width=3, seats=2, coins=2, horizon=5)
    state, outcome, _ = play("0 # # \n a 1 b", (DOWN, RIGHT), config=config)
    assert outcome.reward.tolist() == [1.0, 1.0]
    assert sorted(state.coins.tolist()) == [0, 4]
    state, outcome, _ = play("0 # # \n a 1 b", (STAY, RIGHT), config=config)
    assert state.coins.tolist() == [3, 4]
    assert state.owners[0] == 0


def test_only_the_horizon_ends_it() -> None:
    joints = [(STAY, STAY, STAY)] * 5
    text = "0 . a \n 1 . b \n 2 . ."
    assert [bool(play(text, *joints[:n])[1].done) for n in range(1, 6)] == [False] * 4 + [True]


def test_view_of_a_seat() -> None:
    game = CoinGame(replace(SMALL, coins=3))
    see = jax.jit(lambda state: views(game, state))
    state = game.parse("0 . a \n # 1 b \n c . 2")
    seen = see(state)
    assert seen.planes.shape == (3, 3, 3, 7)
    # Seat 1 sees itself, seat 2, seat 0, obstacles, its own coins, those of seat 2, of seat 0.
    marks = {tuple(place) for place in np.argwhere(np.asarray(seen.planes[1])).tolist()}
    pieces = {(1, 1, 0), (2, 2, 1), (0, 0, 2), (1, 0, 3)}
    assert marks == pieces | {(1, 2, 4), (2, 0, 5), (0, 2, 6)}
    assert seen.legal.tolist()[1] == [True, True, False, True, True]
    assert seen.last_actions.tolist() == [[-1] * 3] * 3
    state, _ = jax.jit(game.step)(state, jnp.array([RIGHT, UP, RIGHT]), jax.random.key(0))
    seen = see(state)
    assert seen.last_actions[1].tolist() == [UP, STAY, RIGHT]
    assert seen.time.tolist() == [np.float32(1 / 5)] * 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 . a \n 1 b . \n . . .", "lacks seat 2"),
        ("0 . a \n 1 . . \n 2 . .", "has 1 coins"),
        ("0 b a \n 1 b . \n 2 . .", "has 3 coins"),
        ("0 ab . \n 1 . . \n 2 . .", "two coins in a cell"),
        ("0 a d \n 1 . . \n 2 . .", "'d' in row 1, column 3"),  # there is no fourth seat
        ("0 a D \n 1 . . \n 2 . .", "'D' in row 1, column 3"),
        ("0 a b \n 1 . . \n 2 . 2", "appears twice"),
        ("012 a b \n # # # \n # # #", "cell"),  # a coin could not come back
    ],
)
def test_broken_layouts_are_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        CoinGame(SMALL).parse(text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seats": 5}, "game.seats is 5 but must be from 2 to 4"),
        ({"coins": 0}, "game.coins is 0"),
        ({"coins": 24}, "5x5 has 25 cells but 2 seats, 24 coins"),
        ({"harm": -1.0}, "game.harm is -1.0"),
        ({"reward": float("inf")}, "game.reward is inf"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        CoinConfig(**settings)


# Against plain Python


def coins_of(state: Any, columns: int) -> list[plain.Coin]:
    lying = zip(state.coins.tolist(), state.owners.tolist(), strict=True)
    return [plain.Coin(divmod(cell, columns), owner) for cell, owner in lying]


def assert_same_state(state: Any, expected: plain.Board, columns: int) -> None:
    assert [divmod(cell, columns) for cell in state.seats.tolist()] == expected.where
    assert coins_of(state, columns) == expected.coins
    walls = {divmod(int(cell), columns) for cell in np.flatnonzero(state.walls)}
    assert walls == expected.obstacles
    assert state.steps == expected.steps
    assert state.last_actions.tolist() == expected.last_actions


def assert_same_outcome(outcome: Any, board: plain.Board, expected: plain.Result) -> None:
    # The plain rules reckon in 64 bits: rounding may lie between.
    np.testing.assert_allclose(outcome.reward, expected.rewards, rtol=1e-6, atol=1e-6)
    assert outcome.done == expected.done
    assert outcome.illegal.tolist() == expected.illegal
    seats = len(board.where)
    taken, took = [0] * seats, [[0] * seats for _ in range(seats)]
    for coin, takers in zip(board.coins, expected.takers, strict=True):
        if takers:
            taken[min((coin.owner - seat) % seats for seat in takers)] += 1
        for seat in takers:
            took[seat][(coin.owner - seat) % seats] += 1
    assert outcome.taken.tolist() == taken
    assert outcome.took.tolist() == took
    assert not outcome.left.any()


@pytest.mark.parametrize("name", SETTINGS)
def test_no_difference(name: str) -> None:
    config, games = SETTINGS[name]
    rules, (game, player) = plain_rules(plain.Rules, config), compiled(config)
    texts = random_layouts(config, games, seed=1)
    steps = min(STEPS, config.horizon)
    joints = np.random.default_rng(2).choice(ACTIONS, (steps, games, config.seats))
    start = parse_all(game, texts)
    seen, states, outcomes = player(start, joints, 0)
    taken = 0
    for n, text in enumerate(texts):
        board = plain.read(rules, text)
        assert game.show(at(start, n)) == plain.write(rules, board)
        expected = []
        for t, joint in enumerate(joints[:, n].tolist()):
            expected.append([plain.view(rules, board, seat) for seat in range(config.seats)])
            after = at(states, t, n)
            takers = plain.takers_of(board, plain.moved(rules, board, joint)[2])
            lying = coins_of(after, config.columns)
            back = {number: lying[number] for number, here in enumerate(takers) if here}
            before, (board, result) = board, plain.step(rules, board, joint, back)
            assert_same_state(after, board, config.columns)
            assert_same_outcome(at(outcomes, t, n), before, result)
            taken += len(back)
        assert_same_views(at(seen, slice(None), n), expected)
    assert steps * games >= TRANSITIONS / len(SETTINGS)
    assert taken >= 100


# Chance

KEYS = 24_000


def test_starts_are_all_alike() -> None:
    config = CoinConfig(size=2, seats=2, coins=1)
    state = jax.jit(jax.vmap(CoinGame(config).init))(jax.random.split(jax.random.key(3), KEYS))
    cells = np.concatenate([state.seats, state.coins], axis=1)  # [B, 3], 24 arrangements of 4
    assert (np.diff(np.sort(cells, axis=1)) > 0).all()
    first, second, third = cells.T
    second_rank = second - (second > first)
    third_rank = third - (third > first) - (third > second)
    arrangement = (first * 3 + second_rank) * 2 + third_rank
    assert_uniform(arrangement * 2 + state.owners[:, 0], 48)


def come_back(text: str, joint: tuple[int, ...], config: CoinConfig) -> Any:
    """The states [KEYS] after a step with many keys."""
    game = CoinGame(config)
    state, keys = game.parse(text), jax.random.split(jax.random.key(4), KEYS)
    step = jax.jit(jax.vmap(lambda key: game.step(state, jnp.asarray(joint), key)[0]))
    once, again = jax.device_get((step(keys), step(keys)))
    assert_equal(once, again)  # the key says it all
    return once


def test_a_coin_comes_back_anywhere_all_alike() -> None:
    config = CoinConfig(size=3, seats=3, coins=3)
    state = come_back("0 a . \n 1 # . \n 2 c b", (RIGHT, STAY, STAY), config)
    room = [0, 2, 5]  # not on the wall, a seat or a coin
    assert set(np.unique(state.coins[:, 0])) == set(room)
    assert_uniform(np.searchsorted(room, state.coins[:, 0]) * 3 + state.owners[:, 0], 9)


def test_two_coins_come_back_on_cells_of_their_own() -> None:
    """The first and the last by number, and one in between that stays."""
    config = CoinConfig(height=2, width=4, seats=2, coins=3)
    state = come_back("0 a . . \n 1 b # b", (RIGHT, RIGHT), config)
    assert (state.coins[:, 2] == 7).all()
    assert (state.owners[:, 2] == 1).all()
    room = [0, 2, 3, 4]
    first, second = (np.searchsorted(room, state.coins[:, n]) for n in (0, 1))
    assert (first != second).all()
    arrangement = first * 3 + second - (second > first)
    assert_uniform((arrangement * 2 + state.owners[:, 0]) * 2 + state.owners[:, 1], 48)


def test_what_comes_back_is_left_to_the_key() -> None:
    """Not to what a state holds besides: time, the last actions, whose the coin was."""
    config = CoinConfig(size=3, seats=3, coins=3)
    one = come_back("0 a . \n 1 # . \n 2 c b", (RIGHT, STAY, STAY), config)
    two = come_back("1 a . \n 0 # . \n 2 c b", (STAY, RIGHT, STAY), config)
    np.testing.assert_array_equal(one.coins[:, 0], two.coins[:, 0])
    np.testing.assert_array_equal(one.owners[:, 0], two.owners[:, 0])
