"""The rules by hand: one small position per rule, its numbers worked out on paper."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conftest import compiled_game
from hopplus.config import ConfigError, StagHuntConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt
from hopplus.types import Outcome

UP, DOWN, LEFT, RIGHT, STAY, STAG, HARE = range(7)
SMALL = StagHuntConfig(size=3, seats=3, stags=1, hares=2)


def play(
    text: str, *joints: tuple[int, ...], config: StagHuntConfig = SMALL
) -> tuple[Any, Outcome, StagHunt]:
    """Play joint actions from a layout; the last state and outcome, and the game."""
    compiled = compiled_game(config)
    state = jax.tree.map(lambda leaf: leaf[None], compiled.game.parse(text))
    for joint in joints:
        state, outcome = compiled.step(state, jnp.asarray([joint]))
    state, outcome = jax.tree.map(lambda leaf: np.asarray(leaf)[0], (state, outcome))
    return state, outcome, compiled.game


def seen_from(game: StagHunt, state: Any) -> Any:
    """What every seat sees, by one program instead of one for every operation."""
    return jax.jit(lambda state: views(game, state))(state)


def test_moves_walls_and_edges() -> None:
    text = """
    0 # .
    1 S .
    2 h h
    """
    state, outcome, game = play(text, (RIGHT, LEFT, DOWN))  # a wall, the edge, the edge
    assert outcome.illegal.tolist() == [True, True, True]
    assert state.last_actions.tolist() == [STAY, STAY, STAY]
    assert game.show(state) == game.show(game.parse(text))
    state, outcome, game = play(text, (DOWN, RIGHT, RIGHT), (DOWN, UP, RIGHT))
    assert game.show(state) == game.show(game.parse(". # . \n . 1S . \n 0 h 2h"))
    assert outcome.illegal.tolist() == [False, True, False]  # seat 1 ran into the wall


def test_two_share_a_stag_and_leave() -> None:
    state, outcome, _ = play(". . . \n 01S 2h . \n . . h", (STAG, STAG, HARE))
    assert outcome.reward.tolist() == [5.0, 5.0, 1.0]
    assert outcome.left.tolist() == [True, True, True]
    assert outcome.taken.tolist() == [1, 1]
    assert outcome.took.tolist() == [[1, 0], [1, 0], [0, 1]]
    assert outcome.done  # nobody is left
    assert not state.present.any()
    assert state.alive.tolist() == [False, False, True]


def test_lone_stag_hunter_gets_nothing() -> None:
    state, outcome, _ = play("0S . . \n 1 . 2 \n . h h", (STAG, UP, STAY))
    assert outcome.reward.tolist() == [0.0, 0.0, 0.0]
    assert not outcome.illegal.any()
    # Hunts are resolved before anyone moves: seat 1 arrives too late, and both try again.
    assert state.seats.tolist()[:2] == [0, 0]
    state, outcome, _ = play("0S . . \n 1 . 2 \n . h h", (STAG, UP, STAY), (STAG, STAG, STAY))
    assert outcome.reward.tolist() == [5.0, 5.0, 0.0]
    assert not outcome.done


def test_hare_is_shared_by_its_hunters_and_not_by_bystanders() -> None:
    _, outcome, _ = play("012h . . \n . . . \n . S h", (HARE, STAY, HARE))
    assert outcome.reward.tolist() == [0.5, 0.0, 0.5]
    assert outcome.left.tolist() == [True, False, True]


def test_hunting_what_is_not_there_is_illegal() -> None:
    _, outcome, _ = play("0S 1h 2 \n . . . \n . . h", (HARE, STAG, STAG))
    assert outcome.illegal.tolist() == [True, True, True]
    assert outcome.reward.tolist() == [0.0, 0.0, 0.0]


def test_who_has_left_may_only_stay() -> None:
    state, outcome, game = play("0h . . \n 1 . 2 \n . h S", (HARE, STAY, STAY), (DOWN, STAY, STAY))
    assert outcome.illegal.tolist() == [True, False, False]
    assert state.last_actions.tolist() == [-1, STAY, STAY]
    seen = seen_from(game, state)
    assert seen.legal[0].tolist() == [False] * 4 + [True, False, False]
    assert not seen.planes[1, :, :, 2].any()  # seat 0 is the second other of seat 1


def test_strength_splits_in_proportion() -> None:
    config = StagHuntConfig(size=3, seats=3, stags=1, hares=2, strength=(1, 0.5, 2.5))
    _, outcome, _ = play("012S . . \n . . . \n . h h", (STAG, STAG, STAG), config=config)
    assert outcome.reward.tolist() == [2.5, 1.25, 6.25]
    _, outcome, _ = play("012S . . \n . . . \n . h h", (STAY, STAG, STAG), config=config)
    np.testing.assert_allclose(outcome.reward, [0, 10 / 6, 50 / 6], rtol=1e-6)


def test_time_reward_goes_to_those_present() -> None:
    config = StagHuntConfig(size=3, seats=3, stags=1, hares=2, time_reward=-0.25)
    text = "0h . . \n 1 . 2 \n . h S"
    _, outcome, _ = play(text, (HARE, STAY, STAY), config=config)
    assert outcome.reward.tolist() == [0.75, -0.25, -0.25]
    _, outcome, _ = play(text, (HARE, STAY, STAY), (STAY, STAY, STAY), config=config)
    assert outcome.reward.tolist() == [0.0, -0.25, -0.25]


def test_more_hunters_needed() -> None:
    config = StagHuntConfig(size=3, seats=3, stags=1, hares=2, stag_hunters=3)
    _, outcome, _ = play("012S . . \n . . . \n . h h", (STAG, STAG, STAY), config=config)
    assert not outcome.taken.any()
    _, outcome, _ = play("012S . . \n . . . \n . h h", (STAG, STAG, STAG), config=config)
    np.testing.assert_allclose(outcome.reward, [10 / 3] * 3, rtol=1e-6)


@pytest.mark.parametrize(("grace", "length"), [(None, 6), (0, 2), (1, 3), (3, 5)])
def test_endings(grace: int | None, length: int) -> None:
    config = StagHuntConfig(size=3, seats=3, stags=1, hares=2, horizon=6, grace=grace)
    joints = [(STAY, STAY, STAY), (HARE, STAY, STAY)] + [(STAY, STAY, STAY)] * 4
    text = "0h . . \n 1 . 2 \n . h S"
    ends = [bool(play(text, *joints[:n], config=config)[1].done) for n in range(1, 7)]
    assert ends.index(True) + 1 == length


def test_last_prey_ends_it() -> None:
    _, outcome, _ = play("0h . . \n 1 . 2 \n . . .", (HARE, STAY, STAY))
    assert outcome.done


def test_view_of_a_seat() -> None:
    game = StagHunt(SMALL)
    state = game.parse("0 . S \n # 1h . \n . . 2")
    seen = seen_from(game, state)
    # Seat 1 sees itself first, then seat 2, then seat 0, obstacles, stags, hares.
    marks = {tuple(place) for place in np.argwhere(np.asarray(seen.planes[1])).tolist()}
    assert marks == {(1, 1, 0), (2, 2, 1), (0, 0, 2), (1, 0, 3), (0, 2, 4), (1, 1, 5)}
    assert seen.planes.dtype == jnp.float32
    assert seen.legal[1].tolist() == [True, True, False, True, True, False, True]
    assert seen.time[1] == 0.0
    assert seen.last_actions.tolist() == [[-1] * 3] * 3
    state, _ = jax.jit(game.step)(state, jnp.array([RIGHT, HARE, LEFT]), jax.random.key(0))
    seen = seen_from(game, state)
    assert seen.last_actions[1].tolist() == [HARE, LEFT, RIGHT]
    assert seen.time[0] == np.float32(1 / 35)


def test_sight_hides_what_is_far() -> None:
    game = StagHunt(StagHuntConfig(size=4, seats=2, stags=1, hares=2, sight=1))
    seen = seen_from(game, game.parse("0 . h . \n . S . . \n . . 1 . \n . . . h"))
    marks = {tuple(place) for place in np.argwhere(np.asarray(seen.planes[0])).tolist()}
    assert marks == {(0, 0, 0), (1, 1, 3)}
    marks = {tuple(place) for place in np.argwhere(np.asarray(seen.planes[1])).tolist()}
    assert marks == {(2, 2, 0), (1, 1, 3), (3, 3, 4)}


@pytest.mark.parametrize(
    ("config", "best"),
    [
        (StagHuntConfig(), 12.0),
        (StagHuntConfig(size=8, stags=2), 20.0),
        (StagHuntConfig(seats=5, size=5, stags=2, hares=4), 21.0),
        (StagHuntConfig(stag_reward=1.0, hare_reward=1.0), 4.0),  # hares pay better
        (StagHuntConfig(hares=1, stags=0), 1.0),
        (StagHuntConfig(stag_hunters=3), 11.0),
        (StagHuntConfig(time_reward=-1.0), 8.0),
        (StagHuntConfig(time_reward=0.1, horizon=10), 16.0),
    ],
)
def test_best_joint_return(config: StagHuntConfig, best: float) -> None:
    assert StagHunt(config).best_joint_return == pytest.approx(best)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": 2}, "2x2 has 4 cells but 4 seats, 1 stags, 4 hares"),
        ({"size": 0}, "game.size is 0 but must be from 1 to 32"),
        ({"seats": 9}, "game.seats is 9 but must be from 2 to 8"),
        ({"hares": -1}, "game.hares is -1"),
        ({"stags": 0, "hares": 0}, "at least 1"),
        ({"stag_hunters": 5}, "--game.stag-hunters is 5"),
        ({"stag_reward": float("nan")}, "--game.stag-reward is nan"),
        ({"hare_reward": -1.0}, "--game.hare-reward is -1.0"),
        ({"time_reward": float("inf")}, "--game.time-reward is inf"),
        ({"strength": (1, 2)}, "one number for each of the 4 seats"),
        ({"strength": (1, 2, 0, 1)}, "above 0 for every seat"),
        ({"strength": (1, 0.123456789, 1, 1)}, "small whole numbers"),
        ({"horizon": 0}, "game.horizon is 0"),
        ({"grace": -1}, "game.grace is -1"),
        ({"sight": -2}, "game.sight is -2"),
        ({"boards": 0}, "game.boards is 0"),
        ({"board_seed": -1}, "--game.board-seed is -1"),
        ({"name": "chess"}, "game.name is 'chess'"),
        ({"size": 4.0}, "game.size is 4.0 but must be a whole number"),
        ({"grace": 2**31 - 1}, "game.grace is 2147483647"),
        ({"stag_reward": 1e300}, "--game.stag-reward is 1e+300"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        StagHuntConfig(**settings)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 . . \n . S .", "has 2 rows but the board has 3"),
        ("0 . . \n . S \n . . .", "row 2 of the layout has 2 cells"),
        ("0 . . \n . S . \n . . x", "'x' in row 3, column 3"),
        ("0 . . \n . S . \n . . 3", "'3' in row 3, column 3 of the layout is not a seat from 0"),
        ("0 . . \n . S . \n . . 0", "appears twice"),
        ("0 . . \n . S . \n . . S", "has 2 S but the game is set to 1"),
        ("0 . . \n . . . \n . . .", "at least one seat and one thing"),
        ("0# . . \n . S . \n . . .", "'#' in row 1, column 1"),
        ("", "has 0 rows"),
    ],
)
def test_broken_layouts_are_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        StagHunt(SMALL).parse(text)
    assert words in str(error.value)


def test_layout_of_the_rules_reads_and_writes() -> None:
    game = StagHunt(StagHuntConfig(size=3, stags=2, hares=1))
    text = "0  .  S\n#  1h .\n2  .  3S"
    assert game.show(game.parse(text)) == text
