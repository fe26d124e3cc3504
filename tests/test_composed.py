"""Members of `family-composed` on boards worked by hand: each place and each condition."""

import pytest

from test_co_players import CLEAR, DOWN, HUNT_HARE, RIGHT, SNOW, STAY
from test_family_scripts import (
    CORNERS,
    HARE,
    STAG,
    among,
    course,
    does,
    likely,
    member,
    seen,
    watch,
)
from test_population import HUNT

ANYWHERE, NEAR, AWAY, HALF = (among(place, 0, 3) for place in range(4))
CLOSE, LATE, TAKEN, IDLE, FAILED = (among(condition, 0, 4) for condition in range(5))
OTHER = among(1, 1, 2)  # the next aim after the first: hare after stag, anything after hare
NEVER = (TAKEN, among(3, 1, 3))  # others do not take three things on these boards
TURNS, WAITS = 0.9, 0.1


@pytest.mark.parametrize(
    ("aim", "place", "distance", "acts"),
    [
        (HARE, ANYWHERE, 0.5, {DOWN: 1.0}),
        (HARE, NEAR, among(0, 0, 2), {STAY: 1.0}),  # nobody stands on a hare
        (HARE, NEAR, among(1, 0, 2), {DOWN: 1.0}),
        (HARE, AWAY, among(0, 0, 2), {DOWN: 1.0}),
        (HARE, AWAY, among(1, 0, 2), {STAY: 1.0}),
        (STAG, AWAY, among(0, 0, 2), {DOWN: 0.5, RIGHT: 0.5}),
        (HARE, HALF, 0.1, {STAY: 1.0}),  # the upper half, with the middle row
        (STAG, HALF, 0.1, {DOWN: 0.5, RIGHT: 0.5}),
        (HARE, HALF, 0.9, {DOWN: 1.0}),  # the left one
    ],
)
def test_places(aim: float, place: float, distance: float, acts: dict[int, float]) -> None:
    board = "0 . 1 \n . S . \n h 2 h"
    composed = member("composed", HUNT, aim, OTHER, place, distance, *NEVER, TURNS)
    assert does(HUNT, *composed, board) == acts


@pytest.mark.parametrize(("waits", "acts"), [(TURNS, {HUNT_HARE: 1.0}), (WAITS, {STAY: 1.0})])
def test_while_another_is_near(waits: float, acts: dict[int, float]) -> None:
    hunting = {RIGHT: 1.0}
    for within, expected in ((1, hunting), (2, acts)):
        asked = (CLOSE, among(within, 1, 2), waits)
        composed = member("composed", HUNT, STAG, OTHER, ANYWHERE, 0.5, *asked)
        assert does(HUNT, *composed, CORNERS) == expected  # the nearest is two steps away


def test_from_a_time_on() -> None:
    composed = member("composed", HUNT, STAG, OTHER, ANYWHERE, 0.5, LATE, among(2, 2, 4), TURNS)
    acts = course(HUNT, *composed, CORNERS, [[STAY] * 3] * 3)
    assert acts == [{RIGHT: 1.0}] * 2 + [{HUNT_HARE: 1.0}] * 2


def test_after_others_have_taken_something() -> None:
    """And what it takes itself does not count."""
    asked = (TAKEN, among(1, 1, 3), TURNS)
    composed = member("composed", HUNT, STAG, OTHER, ANYWHERE, 0.5, *asked)
    acts = course(HUNT, *composed, "0h . S \n . 1h . \n . . 2", [[STAY, HUNT_HARE, STAY]])
    assert acts == [{RIGHT: 1.0}, {HUNT_HARE: 1.0}]
    clears = member("composed", SNOW, among(0, 0, 1), 0.5, ANYWHERE, 0.5, *asked)
    acts = course(SNOW, *clears, "0D . . \n . . . \n 1D . D", [[CLEAR, STAY], [STAY, CLEAR]])
    assert acts == [{CLEAR: 1.0}, {DOWN: 1.0}, {STAY: 1.0}]


def test_after_taking_nothing_for_long() -> None:
    asked = (IDLE, among(2, 2, 4), TURNS)
    clears = member("composed", SNOW, among(0, 0, 1), 0.5, ANYWHERE, 0.5, *asked)
    stay = [STAY, STAY]
    acts = course(SNOW, *clears, "0D . . \n . . . \n 1 . D", [[CLEAR, STAY], stay, stay])
    wants = {DOWN: 0.5, RIGHT: 0.5}
    assert acts == [{CLEAR: 1.0}, wants, wants, {STAY: 1.0}]


def test_after_an_episode_in_which_it_took_nothing() -> None:
    player, memory = member("composed", HUNT, STAG, OTHER, ANYWHERE, 0.5, FAILED, 0.5, TURNS)
    begun, acts = likely(HUNT, player, memory, seen(HUNT, CORNERS))
    assert acts == {RIGHT: 1.0}
    later = player.carry(begun, seen(HUNT, CORNERS))
    assert does(HUNT, player, later, CORNERS) == {HUNT_HARE: 1.0}
    # With a hare of its own there was nothing to regret.
    caught = player.carry(begun, watch(HUNT, player, memory, CORNERS, [HUNT_HARE, STAY, STAY])[1])
    assert does(HUNT, player, caught, CORNERS) == {RIGHT: 1.0}
