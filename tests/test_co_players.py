"""Co-players of one game each, on boards worked by hand: what they do, and what they remember."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError, TrainConfig, make_config
from hopplus.evaluation.adaptation import lineups
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.from_run import seat_names
from hopplus.players.context.registry import make_context
from hopplus.players.scripted import mixed_names, player_names, scripted
from hopplus.types import View

KEY = jax.random.key(0)
UP, DOWN, LEFT, RIGHT, STAY = range(5)
CLEAR = HUNT_STAG = 5
HUNT_HARE = 6


@cache
def game_of(name: str, **settings: Any) -> Game:
    return make_game(make_config(name, **settings))


def likely(game: Game, player: Any, memory: Any, view: View) -> tuple[Any, dict[int, float]]:
    """What it remembers then, and the chances of what it may do."""
    memory, act = player.act((), memory, view, KEY)
    chances = np.exp(np.asarray(act.logits))
    assert chances.sum() == pytest.approx(1)
    assert not chances[~np.asarray(view.legal)].any()
    return memory, {int(a): round(float(chances[a]), 3) for a in np.flatnonzero(chances)}


def does(game: Game, player: Any, memory: Any, text: str, seat: int = 0) -> dict[int, float]:
    return likely(game, player, memory, game.view(game.parse(text), seat))[1]


def watch(game: Game, player: Any, memory: Any, text: str, joint: list[int]) -> tuple[Any, View]:
    """What seat 0's player remembers after it has seen a board, and what it sees a step later."""
    state = game.parse(text)
    memory, _ = likely(game, player, memory, game.view(state, 0))
    after, _ = game.step(state, jnp.array(joint, jnp.int32), KEY)
    return memory, game.view(after, 0)


# Stag-Hunt

HUNT = game_of("stag-hunt-v1", size=3, seats=3, hares=2)
TWO_AT_THE_STAG = "0h . . \n . 12S . \n . . h"


def test_trusting_until_it_is_let_down() -> None:
    player = scripted("trusting", HUNT)
    fresh = player.start()
    board = "0h . S \n . . . \n 1 2 h"
    assert does(HUNT, player, fresh, board) == {RIGHT: 1.0}
    left_out = player.carry(fresh, HUNT.view(HUNT.parse(board), 0))
    assert does(HUNT, player, left_out, board) == {HUNT_HARE: 1.0}
    went_home = player.carry(fresh, HUNT.view(HUNT.parse(". . S \n . . . \n 1 2 h"), 0))
    assert does(HUNT, player, went_home, board) == {RIGHT: 1.0}
    # Once is enough.
    assert player.carry(left_out, HUNT.view(HUNT.parse(". . S \n . . . \n 1 2 h"), 0))


def test_wary_until_it_has_seen_a_stag_caught() -> None:
    player = scripted("wary", HUNT)
    fresh = player.start()
    assert does(HUNT, player, fresh, TWO_AT_THE_STAG) == {HUNT_HARE: 1.0}
    for joint, seen in (([STAY, HUNT_STAG, HUNT_STAG], True), ([STAY, HUNT_STAG, STAY], False)):
        memory, after = watch(HUNT, player, fresh, TWO_AT_THE_STAG, joint)
        assert bool(player.carry(memory, after)[0]) == seen
        assert bool(likely(HUNT, player, memory, after)[0][0]) == seen
    convinced = player.carry(*watch(HUNT, player, fresh, TWO_AT_THE_STAG, [STAY, 5, 5]))
    assert does(HUNT, player, convinced, TWO_AT_THE_STAG) == {DOWN: 0.5, RIGHT: 0.5}
    # A board without a stag, after one with: that is a new episode, and nobody caught any.
    memory, _ = watch(HUNT, player, fresh, TWO_AT_THE_STAG, [STAY] * 3)
    again = player.carry(memory, HUNT.view(HUNT.parse(TWO_AT_THE_STAG), 0))
    assert not likely(HUNT, player, again, HUNT.view(HUNT.parse("0h . .\n. 1 .\n. . 2"), 0))[0][0]


# Snowdrift

SNOW = game_of("snowdrift-v1", size=3, seats=2, drifts=3, horizon=4)


def test_who_clears() -> None:
    board = "0D . . \n . . . \n 1 . D"
    for name, acts in (("clear", {CLEAR: 1.0}), ("idle", {STAY: 1.0}), ("late", {STAY: 1.0})):
        assert does(SNOW, scripted(name, SNOW), scripted(name, SNOW).start(), board) == acts
    assert does(SNOW, scripted("clear", SNOW), (), "0 . . \n . . . \n 1 . D") == {
        DOWN: 0.5,
        RIGHT: 0.5,
    }


def test_late_from_the_middle_on() -> None:
    state = SNOW.parse("0D . . \n . . . \n 1 . D")
    for steps in range(4):
        acts = likely(SNOW, scripted("late", SNOW), (), SNOW.view(state, 0))[1]
        assert acts == ({STAY: 1.0} if steps < 2 else {CLEAR: 1.0})
        state, _ = SNOW.step(state, jnp.array([STAY, STAY]), KEY)


def test_reciprocal_clears_one_more_than_the_others() -> None:
    player = scripted("reciprocal", SNOW)
    board = "0D . . \n . . . \n 1D . D"
    memory, after = watch(SNOW, player, player.start(), board, [CLEAR, STAY])
    assert np.asarray(player.carry(memory, after)).tolist() == [1, 0]
    assert does(SNOW, player, player.carry(memory, after), board) == {STAY: 1.0}  # also next time
    memory, after = watch(SNOW, player, player.start(), board, [CLEAR, CLEAR])
    assert does(SNOW, player, player.carry(memory, after), board) == {CLEAR: 1.0}
    # An act that is not legal is no clearing.
    memory, after = watch(SNOW, player, player.start(), "0D . . \n 1 . . \n D . D", [CLEAR, CLEAR])
    assert np.asarray(player.carry(memory, after)).tolist() == [1, 0]


# The coin game

COIN = game_of("coin-v1", size=3)
COLLECTORS = ("cooperator", "defector", "tit-for-tat", "grudger")


def test_whose_coins_are_taken() -> None:
    straight = "0 b a \n . . . \n . . 1"
    cooperator, defector = scripted("cooperator", COIN), scripted("defector", COIN)
    assert does(COIN, cooperator, (), straight) == {DOWN: 1.0}  # around the other's
    assert does(COIN, defector, (), straight) == {RIGHT: 1.0}
    assert does(COIN, cooperator, (), "0 b . \n b . . \n . . 1") == {STAY: 1.0}  # none of its own
    # The other seat's own coins are `b`.
    assert does(COIN, cooperator, (), "0 . . \n . . . \n a b 1", seat=1) == {LEFT: 1.0}


TAKES_MINE = ("0 . . \n . b . \n . a 1", [STAY, LEFT])


def test_tit_for_tat_pays_back_coin_for_coin() -> None:
    player = scripted("tit-for-tat", COIN)
    near = "0 b . \n . . . \n a . 1"
    assert does(COIN, player, player.start(), near) == {DOWN: 1.0}
    memory, after = watch(COIN, player, player.start(), *TAKES_MINE)
    wronged = player.carry(memory, after)
    assert (int(wronged.wrongs), int(wronged.repaid)) == (1, 0)
    assert not wronged.coins.any()  # the next board is another one
    assert does(COIN, player, wronged, near) == {RIGHT: 1.0}
    memory, after = watch(COIN, player, wronged, near, [RIGHT, STAY])
    even = player.carry(memory, after)
    assert (int(even.wrongs), int(even.repaid)) == (1, 1)
    assert does(COIN, player, even, near) == {DOWN: 1.0}
    # What it takes while nobody owes it anything is no credit.
    memory, after = watch(COIN, player, player.start(), near, [RIGHT, STAY])
    assert int(player.carry(memory, after).repaid) == 0


def test_grudger_never_forgives_in_a_trial() -> None:
    player = scripted("grudger", COIN)
    near = "0 b . \n . . . \n a . 1"
    assert does(COIN, player, player.start(), near) == {DOWN: 1.0}
    memory = player.carry(*watch(COIN, player, player.start(), *TAKES_MINE))
    for _ in range(2):
        assert does(COIN, player, memory, near) == {RIGHT: 1.0}
        memory = player.carry(*watch(COIN, player, memory, near, [RIGHT, STAY]))
    # Another who takes a coin of its own does no wrong.
    harmless = watch(COIN, player, player.start(), "0 . . \n . . . \n a b 1", [STAY, LEFT])
    assert does(COIN, player, player.carry(*harmless), near) == {DOWN: 1.0}


def test_mixtures_are_of_a_games_own_co_players() -> None:
    snow, coin = ("clear", "idle", "reciprocal", "late"), tuple(COLLECTORS)
    hunters = ("stag", "hare", "random")
    assert [mixed_names(game) for game in (HUNT, SNOW, COIN)] == [hunters, snow, coin]
    more = [mixed_names(game, "conditional") for game in (HUNT, SNOW, COIN)]
    assert more == [(*hunters, "trusting", "wary"), snow, coin]
    config = TrainConfig(
        game=make_config("stag-hunt-v1"), train_against="conditional", context="oracle"
    )
    assert seat_names(config) == ["learn", *["stag|hare|random|trusting|wary"] * 3]
    # Who each is, and what it is after: some of them remember the trial.
    assert make_context(make_game(config.game), config).size == 3 * (5 + 2)
    assert lineups(["conditional"], COIN) == [(name,) for name in coin]
    assert len(lineups(["all", "conditional"], HUNT)) == 15


def test_a_drift_is_cleared_by_one_player() -> None:
    assert scripted("drift", SNOW) == scripted("clear", SNOW)
    assert scripted("noisy-drift:0.5", SNOW) == scripted("noisy-clear:0.5", SNOW)


def test_names_belong_to_games() -> None:
    known = {game.name: set(player_names(game)) for game in (HUNT, SNOW, COIN)}
    assert {"trusting", "wary", "grudge", "noisy-wary:P"} <= known["stag-hunt-v1"]
    assert {"clear", "idle", "late", "reciprocal"} <= known["snowdrift-v1"]
    assert {"cooperator", "defector", "tit-for-tat", "grudger"} <= known["coin-v1"]
    assert not known["coin-v1"] & {"trusting", "clear", "grudge", "stag"}
    with pytest.raises(ConfigError, match="no player is called 'wary'"):
        scripted("wary", COIN)
    assert scripted("noisy-grudger:0.25", COIN).name == "noisy-grudger:0.25"
    assert scripted("noisy-grudger:0.25", COIN).carries
