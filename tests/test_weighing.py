"""Members of `family-weighing` on boards worked by hand: each weight by itself."""

import pytest

from test_co_players import CLEAR, COIN, DOWN, HUNT_HARE, LEFT, RIGHT, SNOW, STAY, UP
from test_family_scripts import CORNERS, among, course, does, member
from test_population import HUNT

NONE = 0.5  # the number of a weight of nothing


def worths(first: float, second: float = 0.0) -> tuple[float, float]:
    """The two numbers that stand for what two aims are worth, from -1 to 1."""
    number = (first + 1) / 2
    return number, ((second + 1) / 2 - number) % 1.0


def weight(value: float) -> float:
    """The number that stands for a weight from -2 to 2."""
    return (1 + (abs(value) + 1) / 3 * (1 if value > 0 else -1)) / 2


@pytest.mark.parametrize(
    ("stag", "hare", "distance", "acts"),
    [
        (0.5, -0.5, 0.0, {RIGHT: 1.0}),
        (-0.5, 0.5, 0.0, {HUNT_HARE: 1.0}),
        (-0.5, -0.5, 0.0, {STAY: 1.0}),  # nothing is worth anything
        (0.5, 0.3, 0.0, {RIGHT: 1.0}),
        (0.5, 0.3, 1.0, {HUNT_HARE: 1.0}),  # two steps of six cost a third: 0.17 is less than 0.3
    ],
)
def test_kinds_and_distance(
    stag: float, hare: float, distance: float, acts: dict[int, float]
) -> None:
    weighs = member("weighing", HUNT, *worths(stag, hare), NONE, 0.0, NONE, distance, 0.0)
    assert does(HUNT, *weighs, CORNERS) == acts


@pytest.mark.parametrize(
    ("stag", "hare", "company", "within", "board", "acts"),
    [
        (-0.5, -0.9, 2, 1, "0h . S \n . . 1 \n . 2 h", {RIGHT: 1.0}),
        (-0.5, -0.9, 2, 0, "0h . S \n . . 1 \n . 2 h", {STAY: 1.0}),
        (-0.5, 0.5, 0.4, 1, "0h . S \n . . 1 \n . 2 h", {DOWN: 0.5, RIGHT: 0.5}),  # the far hare
        (-0.9, 0.5, -2, 0, "0 . 1 \n . S . \n h 2 h", {DOWN: 1.0}),
        (-0.9, 0.5, -2, 1, "0 . 1 \n . S . \n h 2 h", {STAY: 1.0}),
    ],
)
def test_others_near_a_thing(
    stag: float, hare: float, company: float, within: int, board: str, acts: dict[int, float]
) -> None:
    asked = (weight(company), among(within, 0, 2))
    weighs = member("weighing", HUNT, *worths(stag, hare), *asked, NONE, 0.0, 0.0)
    assert does(HUNT, *weighs, board) == acts


def test_what_others_walk_to() -> None:
    board = "0h . S \n . . . \n . 1 2"
    for stag, hare, lead, acts in (
        (-0.5, 0.5, 2, [{HUNT_HARE: 1.0}, {RIGHT: 1.0}]),
        (-0.5, 0.5, 0.9, [{HUNT_HARE: 1.0}] * 2),  # 0.4 is less than 0.5
        (0.5, -0.5, -2, [{RIGHT: 1.0}, {STAY: 1.0}]),
    ):
        weighs = member("weighing", HUNT, *worths(stag, hare), NONE, 0.0, weight(lead), 0.0, 0.0)
        assert course(HUNT, *weighs, board, [[STAY, RIGHT, STAY]]) == acts
    # Who goes for its own coin makes one's own worth more.
    board = "0 b a \n . . . \n . . 1"
    for move, acts in ((LEFT, [{STAY: 1.0}, {DOWN: 1.0}]), (UP, [{STAY: 1.0}, {RIGHT: 1.0}])):
        weighs = member("weighing", COIN, *worths(-0.5, -0.5), NONE, 0.0, weight(2), 0.0, 0.0)
        assert course(COIN, *weighs, board, [[STAY, move]]) == acts


def test_one_kind_and_random_acts() -> None:
    for worth, acts in ((0.5, {CLEAR: 1.0}), (-0.5, {STAY: 1.0})):
        weighs = member("weighing", SNOW, *worths(worth), NONE, 0.0, NONE, 0.0, 0.5)
        assert does(SNOW, *weighs, "0D . . \n . . . \n 1D . D") == acts
    weighs = member("weighing", HUNT, *worths(0.5, -0.5), NONE, 0.0, NONE, 0.0, 1.0)
    chances = does(HUNT, *weighs, CORNERS)
    assert len(chances) > 2
    assert chances[RIGHT] == pytest.approx(0.7 + chances[STAY], abs=2e-3)  # 0.3 of any legal act
