"""What somebody is predicted to go for, worked out by hand."""

import numpy as np
import pytest

from hopplus.config import CoinConfig, StagHuntConfig
from hopplus.evaluation.replay.readable import distances, predicted_targets
from hopplus.evaluation.replay.replays import plain_board
from hopplus.games import make_game
from hopplus.games.game import Game

UP, DOWN, LEFT, RIGHT, STAY, STAG, HARE = range(7)
HUNT = make_game(StagHuntConfig(size=3, seats=2, stags=1, hares=2))
COIN = make_game(CoinConfig(size=3, seats=2, coins=2))
BOARD = """
    0 . S
    h # .
    . h 1
"""


def predicted(game: Game, **acts: float) -> list[float]:
    names = [name.replace("-", "_").replace(" ", "_") for name in game.action_names]
    return [acts.get(name, 0.0) for name in names]


def read(game: Game, text: str, seat: int, acts: list[float]) -> dict[str, object] | None:
    state = game.parse(text)
    legal = np.asarray(game.view(state, seat).legal).tolist()
    return predicted_targets(game, plain_board(game, state), seat, acts, legal)


def test_kinds_are_those_of_the_nearest_things() -> None:
    """Seat 0 may go right, go down or stay: the stag is two to the right, a hare one below, the
    other hare further. Of 0.7 a third is chance: 0.3667 of 0.6667."""
    acts = predicted(HUNT, right=0.7, down=0.2, stay=0.1)
    assert read(HUNT, BOARD, 0, acts) == {"kinds": [0.55, 0.0], "cell": [0, 2], "share": 0.55}
    # The way to either hare begins below: the nearer one is named.
    acts = predicted(HUNT, right=0.2, down=0.8)
    assert read(HUNT, BOARD, 0, acts) == {"kinds": [0.0, 0.7], "cell": [1, 0], "share": 0.7}


def test_whom_every_action_is_alike_goes_for_nothing() -> None:
    """Though two of three actions lead to the stag."""
    acts = predicted(HUNT, right=1 / 3, down=1 / 3, stay=1 / 3)
    board = "0 . .\n. . .\n1 . S"
    assert read(HUNT, board, 0, acts) == {"kinds": [0.0, None], "cell": None, "share": None}


def test_who_stands_there_hunts_or_waits() -> None:
    acts = [0.1, 0.0, 0.0, 0.0, 0.3, 0.6, 0.0]
    board = "0S . .\n. . .\n1 . ."  # right, down, stay, hunt the stag: two of four
    assert read(HUNT, board, 0, acts) == {"kinds": [0.8, None], "cell": [0, 0], "share": 0.8}


def test_a_way_around_obstacles_and_none_at_all() -> None:
    steps = distances((2, 3), frozenset({(0, 1), (1, 1)}), (0, 0))
    assert steps == {(0, 0): 0, (1, 0): 1}
    board = "0 # S\n. # .\n1 # ."  # nobody can reach the stag
    assert read(HUNT, board, 0, predicted(HUNT, down=1.0)) == {
        "kinds": [None, None],
        "cell": None,
        "share": None,
    }


def test_who_has_left_goes_for_nothing() -> None:
    assert read(HUNT, ". . S\n. . .\n1 . .", 0, predicted(HUNT, up=1.0)) is None


@pytest.mark.parametrize(("seat", "kinds"), [(0, [0.75, 0.0]), (1, [0.0, 0.75])])
def test_coins_are_called_as_their_seat_calls_them(seat: int, kinds: list[float]) -> None:
    """A coin of seat 0 is to the left of either, and one of seat 1 to the right."""
    own, other = (target.letter for target in COIN.targets.values())
    board = f"{1 - seat} . .\n{own} {seat} {other}\n. . ."
    found = read(COIN, board, seat, predicted(COIN, left=0.8, right=0.2))
    assert found == {"kinds": kinds, "cell": [1, 0], "share": 0.75}
