"""The record of a trial, on boards worked by hand."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import ConfigError, TrainConfig
from hopplus.games import make_game
from hopplus.players.context.record import RecordContext
from hopplus.players.context.registry import make_context
from test_co_players import CLEAR, COIN, HUNT_HARE, LEFT, SNOW, STAY
from test_family_scripts import programs
from test_population import HUNT


def record(game: Any, *episodes: tuple[str, list[list[int]]]) -> np.ndarray:
    """[N, 3 K + 2] what seat 0 is told of everyone after these episodes, of which the last goes on;
    the numbers are those of what was taken, not their logarithms."""
    context, run = RecordContext(game.config), programs(game)
    memory, view = context.start(), None
    for number, (board, joints) in enumerate(episodes):
        memory = memory if view is None else context.carry(memory, view)
        state = game.parse(board)
        view = run.view(state)
        for joint in joints:
            memory, _ = context.infer((), memory, view)
            state = run.step(state, np.array(joint, np.int32))
            view = run.view(state)
        assert memory.episodes == number
    assert view is not None
    told = np.asarray(context.infer((), memory, view)[1])
    assert len(told) == context.size
    assert told[-1] == pytest.approx((len(episodes) - 1) / len(episodes))
    assert (
        np.asarray(context.about_others(jnp.asarray(told))).tolist()
        == told[:-1].reshape(game.seats, -1)[1:].tolist()
    )
    return np.round(np.expm1(told[:-1].reshape(game.seats, -1)), 4)


CATCH = ("0h . S \n . 1h . \n . . 2", [[STAY, HUNT_HARE, STAY], [HUNT_HARE, STAY, STAY]])
QUIET = ("0h . S \n . 1h . \n . . 2", [[STAY] * 3])


def test_what_was_taken_in_this_episode_and_in_those_before() -> None:
    """Columns: stags and hares now; stags, hares and when in the last episode; the same on
    average."""
    told = record(HUNT, CATCH)
    assert told[:, :2].tolist() == [[0, 1], [0, 1], [0, 0]]
    assert not told[:, 2:].any()  # nothing is known of episodes before the first
    told = record(HUNT, CATCH, QUIET)
    assert told[:, :2].tolist() == [[0, 0]] * 3
    # One step of eight, two, and never.
    assert told[:, 2:5].tolist() == [[0, 1, 0.25], [0, 1, 0.125], [0, 0, 1]]
    np.testing.assert_array_equal(told[:, 5:], told[:, 2:5])
    told = record(HUNT, CATCH, QUIET, CATCH)
    assert told[:, :2].tolist() == [[0, 1], [0, 1], [0, 0]]
    assert told[:, 2:5].tolist() == [[0, 0, 1]] * 3
    assert told[:, 5:].tolist() == [[0, 0.5, 0.625], [0, 0.5, 0.5625], [0, 0, 1]]


def test_where_things_are_taken_again_and_again() -> None:
    told = record(SNOW, ("0D . . \n . . . \n 1D . D", [[CLEAR, STAY], [STAY, CLEAR]]))
    assert told[:, 0].tolist() == [1, 1]
    told = record(COIN, ("0 . . \n . . . \n a b 1", [[STAY, LEFT], [STAY, LEFT]]))
    assert told[1, :2].tolist() == [1, 1]  # its own coin, then one of seat 0
    assert not told[0, :2].any()
    # When it took something *first*, though it took a second thing later.
    both = ("0 . . \n . . . \n a b 1", [[STAY, LEFT], [STAY, LEFT]])
    told = record(COIN, both, ("0 . . \n . . . \n a b 1", []))
    np.testing.assert_allclose(told[1, 2:5], [1, 1, 1 / COIN.horizon], atol=1e-4)


def test_names_and_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    config = TrainConfig(trial=2, context="record")
    assert isinstance(make_context(make_game(config.game), config), RecordContext)
    with pytest.raises(ConfigError, match="a record of what was taken needs a board"):
        make_context(_Boardless(), config)  # type: ignore[arg-type]
    assert main(["train", "ppo", "--context", "recrod", "--steps", "1"]) == 2
    assert "record" in capsys.readouterr().err


class _Boardless:
    name, has_board = "spread", False
