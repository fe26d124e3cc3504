"""Members of `family-weighing` on boards worked by hand: each weight by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.players.mixture import Mixture
from hopplus.players.scripted import scripted
from test_co_players import CLEAR, COIN, DOWN, HUNT_HARE, LEFT, RIGHT, SNOW, STAY, UP
from test_family_scripts import (
    CORNERS,
    THREE,
    THREE_COINS,
    among,
    course,
    does,
    likely,
    member,
    seen,
    watch,
)
from test_population import HUNT

NONE = 0.5  # the number of a weight of nothing
STAG, HARE = 0, 1
NEVER = (0.5, 0.5, 0.5, 0.0)  # what others take changes nothing


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
    weighs = member("weighing", HUNT, *worths(stag, hare), NONE, 0.0, NONE, distance, 0.0, *NEVER)
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
    weighs = member("weighing", HUNT, *worths(stag, hare), *asked, NONE, 0.0, 0.0, *NEVER)
    assert does(HUNT, *weighs, board) == acts


def test_what_others_walk_to() -> None:
    board = "0h . S \n . . . \n . 1 2"
    for stag, hare, lead, acts in (
        (-0.5, 0.5, 2, [{HUNT_HARE: 1.0}, {RIGHT: 1.0}]),
        (-0.5, 0.5, 0.9, [{HUNT_HARE: 1.0}] * 2),  # 0.4 is less than 0.5
        (0.5, -0.5, -2, [{RIGHT: 1.0}, {STAY: 1.0}]),
    ):
        asked = (*worths(stag, hare), NONE, 0.0, weight(lead), 0.0, 0.0, *NEVER)
        weighs = member("weighing", HUNT, *asked)
        assert course(HUNT, *weighs, board, [[STAY, RIGHT, STAY]]) == acts
    # Who goes for its own coin makes one's own worth more.
    board = "0 b a \n . . . \n . . 1"
    for move, acts in ((LEFT, [{STAY: 1.0}, {DOWN: 1.0}]), (UP, [{STAY: 1.0}, {RIGHT: 1.0}])):
        asked = (*worths(-0.5, -0.5), NONE, 0.0, weight(2), 0.0, 0.0, *NEVER)
        weighs = member("weighing", COIN, *asked)
        assert course(COIN, *weighs, board, [[STAY, move]]) == acts
    for move, act in ((LEFT, RIGHT), (UP, DOWN)):  # of three: to its own; to that of seat 2
        weighs = member("weighing", THREE, *asked)
        acts = course(THREE, *weighs, THREE_COINS, [[STAY, move, STAY]])
        assert acts == [{STAY: 1.0}, {act: 1.0}]


def test_one_kind() -> None:
    for worth, acts in ((0.5, {CLEAR: 1.0}), (-0.5, {STAY: 1.0})):
        weighs = member("weighing", SNOW, *worths(worth), NONE, 0.0, NONE, 0.0, 0.0, *NEVER)
        assert does(SNOW, *weighs, "0D . . \n . . . \n 1D . D") == acts


def test_random_acts_and_rest() -> None:
    def chances(number: float) -> dict[int, float]:
        asked = (*worths(0.5, -0.5), NONE, 0.0, NONE, 0.0, number, *NEVER)
        return does(HUNT, *member("weighing", HUNT, *asked), CORNERS)

    assert chances(0.5) == {RIGHT: 1.0}
    noisy = chances(0.5 + 0.2)  # 0.24 of any legal act
    assert len(noisy) > 2
    assert noisy[RIGHT] == pytest.approx(0.76 + noisy[STAY], abs=2e-3)
    assert chances(0.75 + 0.2) == {RIGHT: 0.4, STAY: 0.6}


def test_what_others_have_taken() -> None:
    """Once others have hunted hares, so many as were drawn, it wants the stag no more in this
    trial."""
    board, takes = "0h . S \n . 1h . \n . . 2", [[STAY, HUNT_HARE, STAY], [STAY] * 3]
    changes = worths(-2 / 3, 0.5)  # numbers of the weights: as if of -1 to 1
    for times, watched, acts in (
        (1, HARE, [{RIGHT: 1.0}, {HUNT_HARE: 1.0}, {HUNT_HARE: 1.0}]),
        (2, HARE, [{RIGHT: 1.0}] * 3),
        (1, STAG, [{RIGHT: 1.0}] * 3),
    ):
        asked = (*worths(0.5, 0.1), NONE, 0.0, NONE, 0.0, 0.0)
        moved = (among(watched, 0, 2), *changes, 0.5 + among(times, 1, 3) / 2)
        player, memory = member("weighing", HUNT, *asked, *moved)
        assert course(HUNT, player, memory, board, takes) == acts
    # And in the next episode still.
    player, memory = member("weighing", HUNT, *asked, among(HARE, 0, 2), *changes, 0.55)
    memory, after = watch(HUNT, player, memory, board, [STAY, HUNT_HARE, STAY])
    later = player.carry(memory, after)
    assert likely(HUNT, player, later, seen(HUNT, board))[1] == {HUNT_HARE: 1.0}
    assert does(HUNT, player, memory, board) == {RIGHT: 1.0}  # before it has seen that


def test_it_is_drawn_more_often() -> None:
    families = tuple(scripted(f"family-{n}", HUNT) for n in ("shy", "composed", "weighing", "slow"))
    keys = jax.random.split(jax.random.key(0), 4000)
    drawn = np.asarray(jax.vmap(Mixture(families).draw)(keys))
    np.testing.assert_allclose(np.bincount(drawn) / 4000, np.array([1, 4, 12, 1]) / 18, atol=0.03)
    for absent in range(4):  # as without it
        rest = [one for one in range(4) if one != absent]
        fewer = Mixture(tuple(families[one] for one in rest))
        found = jax.vmap(lambda key, n=absent: Mixture(families).draw(key, jnp.int32(n)))(keys)
        assert np.array_equal(np.array(rest)[np.asarray(jax.vmap(fewer.draw)(keys))], found)
