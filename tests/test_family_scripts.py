"""What families of co-players do, on boards worked by hand."""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game
from hopplus.players.scripted import scripted
from hopplus.players.scripted.family import NUMBERS, Member, Together, distances
from hopplus.types import View
from test_co_players import (
    CLEAR,
    COIN,
    DOWN,
    HUNT_HARE,
    HUNT_STAG,
    KEY,
    LEFT,
    RIGHT,
    SNOW,
    STAY,
    TAKES_MINE,
    TWO_AT_THE_STAG,
    UP,
)
from test_population import HUNT, everyone, small
from tiny_hop_plus import jit


def among(value: int, low: int, high: int) -> float:
    """The number that stands for a value of those from low to high."""
    return (value - low + 0.5) / (high - low + 1)


STAG, HARE, ANY = (among(aim, 0, 2) for aim in range(3))
OWN, THEIRS, ANY_COIN = STAG, HARE, ANY
DRIFT = among(0, 0, 1)


def member(name: str, game: Game, *numbers: float) -> tuple[Any, Member]:
    player: Any = scripted(f"family-{name}", game)
    drawn = jnp.array([*numbers, *[0.5] * (NUMBERS - len(numbers))], jnp.float32)
    return player, Member(drawn, player.fresh())


class Programs(NamedTuple):
    """Of a game, each compiled once."""

    acts: Any  # of all families, of whom one is seated
    fresh: tuple[Member, ...]
    view: Any
    step: Any


@cache
def programs(game: Any) -> Programs:
    families = everyone(game)
    return Programs(
        jit(lambda memory, view, n: Together(families, n).act((), memory, view, KEY)),
        tuple(one.start() for one in families),
        jit(lambda state: game.view(state, 0)),
        jit(lambda state, joint: game.step(state, joint, KEY)[0]),
    )


def seen(game: Any, text: str) -> View:
    return programs(game).view(game.parse(text))


def likely(game: Any, player: Any, memory: Member, view: View) -> tuple[Member, dict[int, float]]:
    """What it remembers then, and the chances of what it may do."""
    number = everyone(game).index(player)
    kept = list(programs(game).fresh)
    kept[number] = memory
    memories, act = programs(game).acts(tuple(kept), view, number)
    chances = np.exp(np.asarray(act.logits))
    return memories[number], {int(a): round(float(chances[a]), 3) for a in np.flatnonzero(chances)}


def does(game: Any, player: Any, memory: Member, text: str) -> dict[int, float]:
    return likely(game, player, memory, seen(game, text))[1]


def watch(
    game: Any, player: Any, memory: Member, text: str, joint: list[int]
) -> tuple[Member, View]:
    """What seat 0's player remembers after it has seen a board, and what it sees a step later."""
    memory, _ = likely(game, player, memory, seen(game, text))
    after = programs(game).step(game.parse(text), np.array(joint, np.int32))
    return memory, programs(game).view(after)


def course(
    game: Any, player: Any, memory: Any, text: str, joints: list[list[int]]
) -> list[dict[int, float]]:
    """What seat 0's player may do at first, and after each of these joint actions."""
    state, found = game.parse(text), []
    for joint in [*joints, [STAY] * game.seats]:
        memory, chances = likely(game, player, memory, programs(game).view(state))
        found.append(chances)
        state = programs(game).step(state, np.array(joint, np.int32))
    return found


def test_distances_are_those_of_walking() -> None:
    cells = jnp.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]], bool)
    expected = [[0, 1, 2, 2], [1, 2, 2, 1], [2, 2, 1, 0]]
    assert np.asarray(distances(cells)).tolist() == expected
    assert (np.asarray(distances(jnp.zeros((3, 4), bool))) >= 7).all()


def test_aims_are_a_games_own() -> None:
    def aims(game: Game) -> list[list[int]]:
        found: Any = scripted("family-devoted", game)
        return np.asarray(found.aims, int).tolist()

    assert aims(HUNT) == [[1, 0], [0, 1], [1, 1]]
    assert aims(SNOW) == [[1], [0]]
    assert aims(COIN) == [[1, 0], [0, 1], [1, 1]]
    assert aims(small("coin-v1")) == [[1, 0, 0], [0, 1, 1], [1, 1, 1]]
    assert aims(small("examples.orchard:ROW")) == [[1, 0], [0, 1], [1, 1]]


THREE = small("coin-v1")
THREE_COINS = "0 . . a \n . . . . \n . . . c \n b . 1 2"
CORNERS = "0h . S \n . . . \n 1 2 h"


def test_devoted() -> None:
    assert does(HUNT, *member("devoted", HUNT, STAG), CORNERS) == {RIGHT: 1.0}
    assert does(HUNT, *member("devoted", HUNT, HARE), CORNERS) == {HUNT_HARE: 1.0}
    between = "h 0 S \n . . . \n 1 2 h"
    assert does(HUNT, *member("devoted", HUNT, ANY), between) == {LEFT: 0.5, RIGHT: 0.5}
    straight = "0 b a \n . . . \n . . 1"
    assert does(COIN, *member("devoted", COIN, OWN), straight) == {DOWN: 1.0}  # around the other's
    assert does(COIN, *member("devoted", COIN, THEIRS), straight) == {RIGHT: 1.0}
    drift = "0D . . \n . . . \n 1 . D"
    assert does(SNOW, *member("devoted", SNOW, DRIFT), drift) == {CLEAR: 1.0}
    assert does(SNOW, *member("devoted", SNOW, 0.9), drift) == {STAY: 1.0}


def test_goals_are_told() -> None:
    view = seen(HUNT, CORNERS)
    for number, goal in ((STAG, [1, 0]), (HARE, [0, 1]), (ANY, [0, 0])):
        player, memory = member("devoted", HUNT, number)
        assert player.after(view, player.aim(memory.numbers[0])).goal.tolist() == goal


def test_shifting_from_a_time_on() -> None:
    shifting = member("shifting", HUNT, STAG, among(1, 1, 2), among(2, 1, 4))
    acts = course(HUNT, *shifting, CORNERS, [[STAY] * 3] * 3)
    assert acts == [{RIGHT: 1.0}] * 2 + [{HUNT_HARE: 1.0}] * 2


def test_alternating_by_episodes() -> None:
    for each, expected in ((1, "shsh"), (2, "sshh")):
        player, memory = member("alternating", HUNT, STAG, among(1, 1, 2), among(each, 1, 3))
        for aim in expected:
            acts = {RIGHT: 1.0} if aim == "s" else {HUNT_HARE: 1.0}
            assert does(HUNT, player, memory, CORNERS) == acts
            memory = player.carry(memory, seen(HUNT, CORNERS))


def test_homebound_until_the_next_episode() -> None:
    board = "0 . h \n . . S \n 1 2 ."
    assert does(HUNT, *member("homebound", HUNT, HARE, among(1, 1, 2)), board) == {STAY: 1.0}
    player, memory = member("homebound", HUNT, HARE, among(2, 1, 2))
    memory, acts = likely(HUNT, player, memory, seen(HUNT, board))
    assert acts == {RIGHT: 1.0}
    away = ". 0 . \n . S h \n 1 2 ."  # the hare is two steps from here, but three from home
    assert does(HUNT, player, memory, away) == {STAY: 1.0}
    moved_house = player.carry(memory, seen(HUNT, away))
    assert does(HUNT, player, moved_house, away) == {DOWN: 0.5, RIGHT: 0.5}


def test_territorial() -> None:
    board = "1 2 h \n . 0 S \n h . ."
    up_right, down_left = {UP: 0.5, RIGHT: 0.5}, {DOWN: 0.5, LEFT: 0.5}
    for half, acts in enumerate((up_right, down_left, down_left, up_right)):
        player, memory = member("territorial", HUNT, HARE, among(half, 0, 3))
        assert does(HUNT, player, memory, board) == acts


def test_follower() -> None:
    board = "0h . S \n . . . \n . 1 2"
    for reach, acts in ((4, {RIGHT: 1.0}), (3, {HUNT_HARE: 1.0})):  # it comes to be 4 steps away
        follower = member("follower", HUNT, HARE, among(reach, 1, 4))
        before, after = course(HUNT, *follower, board, [[STAY, RIGHT, STAY]])
        assert before == {HUNT_HARE: 1.0}  # nobody has acted yet
        assert after == acts
    # To go for its own coin is followed by going for one's own, and else for others'.
    board = "0 b a \n . . . \n . . 1"
    for move, acts in ((LEFT, {DOWN: 1.0}), (UP, {RIGHT: 1.0})):
        follower = member("follower", COIN, ANY_COIN, among(4, 1, 4))
        assert course(COIN, *follower, board, [[STAY, move]])[1] == acts
    # Who takes with another act than a move stands still.
    follower = member("follower", HUNT, STAG, among(4, 1, 4))
    board = "0h . S \n . 1h . \n . . 2"
    assert course(HUNT, *follower, board, [[STAY, HUNT_HARE, STAY]])[1] == {RIGHT: 1.0}  # it left
    board = "0 . 1S \n . . . \n h . 2"
    follower = member("follower", HUNT, HARE, among(4, 1, 4))
    assert course(HUNT, *follower, board, [[STAY, HUNT_STAG, STAY]]) == [{DOWN: 1.0}, {RIGHT: 1.0}]


def test_follower_where_several_are_followed_to() -> None:
    # Of two coins that are as near the follower's own is what the other is taken to go for.
    follower = member("follower", COIN, ANY_COIN, among(4, 1, 4))
    board = "a . b \n . . . \n 0 1 ."
    assert course(COIN, *follower, board, [[STAY, UP]])[1] == {UP: 0.5, RIGHT: 0.5}  # to b
    # Of three seats, kinds are called as the one calls them who is followed.
    for move, acts in ((LEFT, {RIGHT: 1.0}), (UP, {DOWN: 1.0})):  # to its own; to that of seat 2
        follower = member("follower", THREE, ANY_COIN, among(6, 1, 6))
        assert course(THREE, *follower, THREE_COINS, [[STAY, move, STAY]])[1] == acts


def test_cautious() -> None:
    alone, near = CORNERS, "0h . S \n . . 1 \n . 2 h"
    for within, meanwhile, board, acts in (
        (1, 0.2, alone, {HUNT_HARE: 1.0}),
        (1, 0.8, alone, {STAY: 1.0}),
        (1, 0.8, near, {RIGHT: 1.0}),
        (0, 0.8, near, {STAY: 1.0}),
    ):
        cautious = member("cautious", HUNT, STAG, meanwhile, among(within, 0, 1))
        assert does(HUNT, *cautious, board) == acts


def test_shy() -> None:
    board = "0 . 1 \n . S . \n h 2 h"
    for within, acts in ((0, {DOWN: 1.0}), (1, {STAY: 1.0})):
        assert does(HUNT, *member("shy", HUNT, HARE, among(within, 0, 2)), board) == acts


def test_impatient_without_taking_anything() -> None:
    stay = [STAY, STAY]
    wants = {DOWN: 0.5, RIGHT: 0.5}
    impatient = member("impatient", SNOW, DRIFT, 0.5, 0.5)  # two steps, in so short a game
    acts = course(SNOW, *impatient, "0 . . \n . . . \n 1 . D", [stay] * 3)
    assert acts == [wants, wants, {STAY: 1.0}, {STAY: 1.0}]
    acts = course(SNOW, *impatient, "0D . . \n . . . \n 1 . D", [[CLEAR, STAY], stay, stay])
    assert acts == [{CLEAR: 1.0}, wants, wants, {STAY: 1.0}]
    # What another takes, and a stag that is hunted in vain, are no success.
    acts = course(SNOW, *impatient, "0 . . \n . . . \n 1D . D", [stay, [STAY, CLEAR], stay])
    assert acts[2:] == [{STAY: 1.0}] * 2
    impatient = member("impatient", HUNT, STAG, among(1, 1, 2), 0.5)
    in_vain = [[HUNT_STAG, STAY, STAY]] * 2
    acts = course(HUNT, *impatient, "0S h . \n . 1 . \n . . 2", in_vain)
    assert acts == [{HUNT_STAG: 1.0}] * 2 + [{RIGHT: 1.0}]


NEAR = "0 b . \n . . . \n a . 1"


def test_resentful_for_as_long_as_was_drawn() -> None:
    for needs, lasts, expected in ((1, 1, "yyn"), (1, 2, "yyyn"), (2, 1, "nnn"), (1, 4, "yyyyyy")):
        player, memory = member("resentful", COIN, among(needs, 1, 3), among(lasts, 1, 4))
        assert does(COIN, player, memory, NEAR) == {DOWN: 1.0}
        memory, after = watch(COIN, player, memory, *TAKES_MINE)
        memory, _ = likely(COIN, player, memory, after)
        for resents in expected:  # in this episode, in the next, ...
            acts = {RIGHT: 1.0} if resents == "y" else {DOWN: 1.0}
            quiet = player.next_episode(memory.kept)  # nothing was seen before that board
            told = Member(memory.numbers, replace(memory.kept, things=quiet.things))
            assert does(COIN, player, told, NEAR) == acts
            memory = Member(memory.numbers, quiet)


def test_what_wrongs_are_by_game() -> None:
    hare = member("resentful", HUNT, among(1, 1, 3), 0.9)
    acts = course(HUNT, *hare, "0h . S \n . 1h . \n . . 2", [[STAY, HUNT_HARE, STAY]])
    assert acts == [{RIGHT: 1.0}, {HUNT_HARE: 1.0}]
    # Where all gain by what one does, it is wronged who has done it more often than the others.
    board = "0D . . \n . . . \n 1D . D"
    for other, then in ((STAY, {STAY: 1.0}), (CLEAR, {DOWN: 0.5, RIGHT: 0.5})):
        clearing = member("resentful", SNOW, among(1, 1, 3), 0.9)
        assert course(SNOW, *clearing, board, [[CLEAR, other]])[1] == then


def test_grateful_when_others_cooperate() -> None:
    for joint, needs, thanks in (([5, 5], 2, True), ([5, 5], 3, False), ([5, STAY], 1, False)):
        player, memory = member("grateful", HUNT, among(needs, 1, 3), among(1, 1, 4))
        assert does(HUNT, player, memory, TWO_AT_THE_STAG) == {HUNT_HARE: 1.0}
        memory, after = watch(HUNT, player, memory, TWO_AT_THE_STAG, [STAY, *joint])
        acts = {DOWN: 0.5, RIGHT: 0.5} if thanks else {HUNT_HARE: 1.0}
        assert does(HUNT, player, player.carry(memory, after), TWO_AT_THE_STAG) == acts
    player, memory = member("grateful", COIN, among(1, 1, 3), among(1, 1, 4))
    assert does(COIN, player, memory, NEAR) == {RIGHT: 1.0}
    memory = player.carry(*watch(COIN, player, memory, "0 . . \n . . . \n a b 1", [STAY, LEFT]))
    assert does(COIN, player, memory, NEAR) == {DOWN: 1.0}


def test_erratic_all_the_time_or_in_bursts() -> None:
    half = {DOWN: 0.125, RIGHT: 0.125, STAY: 0.125, HUNT_HARE: 0.625}  # a half, and a quarter of it
    for bursts, expected in ((0.9, [half] * 3), (0.1, [{HUNT_HARE: 1.0}, half, {HUNT_HARE: 1.0}])):
        erratic = member("erratic", HUNT, HARE, 4 / 9, bursts, among(1, 1, 5))
        assert course(HUNT, *erratic, CORNERS, [[STAY] * 3] * 2) == expected
    anything = dict.fromkeys(half, 0.25)
    assert does(HUNT, *member("erratic", HUNT, HARE, 1.0, 0.9), CORNERS) == anything


def test_lazy_and_slow() -> None:
    stay, acts = {STAY: 1.0}, {HUNT_HARE: 1.0}
    joints = [[STAY] * 3] * 3
    lazy = member("lazy", HUNT, HARE, among(2, 1, 4))
    assert course(HUNT, *lazy, CORNERS, joints) == [stay, stay, acts, acts]
    slow = member("slow", HUNT, HARE, among(3, 2, 4))
    assert course(HUNT, *slow, CORNERS, joints) == [acts, stay, stay, acts]
