"""HOP's belief: worked by hand, told by hunters whose ways are known, blind to who they are."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import FOR_EVER, BeliefConfig, ConfigError, make_config
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import Seating
from hopplus.players.context.belief import BeliefContext, BeliefMemory
from hopplus.players.scripted import Seek, scripted
from hopplus.types import View
from tiny_hop_plus import GAME, jit, same
from tiny_search import GAME_MADE, actor_of, mind_of
from toy_game import Coins

RIGHT, STAY, HUNT_STAG, HUNT_HARE = 3, 4, 5, 6
STAG, HARE = 0, 1
CONFIG = BeliefConfig(discount=0.5, floor=0.2)
PART = BeliefContext(GAME, CONFIG)


class Table(eqx.Module):
    """A body that reads nothing but the goal: [N - 1, K, A] probabilities of the actions."""

    chances: jax.Array

    def __call__(self, view: View, extra: jax.Array) -> jax.Array:
        return jnp.log(extra[-2:] @ self.chances)


class Hunter(eqx.Module):
    """A body that knows how hunters walk: what the one with the goal would do."""

    seat: jax.Array  # [N - 1] so that there is one for each other

    def __call__(self, view: View, extra: jax.Array) -> jax.Array:
        seekers: Any = [scripted(kind, GAME_MADE) for kind in ("stag", "hare")]
        ways = jnp.stack([seeker.probabilities(view) for seeker in seekers])
        return jnp.log(extra[-2:] @ ways)


class Said(eqx.Module):
    """A head that says what the body does."""

    def __call__(self, features: jax.Array) -> jax.Array:
        return features


class Known(eqx.Module):
    """In the place of opponent models."""

    body: Table | Hunter
    head: Said = Said()


# Of the first other: with the stag as its goal, right, stay and hunting are alike ...
CHANCES = jnp.zeros((2, 2, 7)).at[0, STAG, jnp.array([RIGHT, STAY, HUNT_STAG, HUNT_HARE])].set(0.25)
CHANCES = CHANCES.at[0, HARE, RIGHT].set(0.75).at[0, HARE, STAY].set(0.25)
# ... and the second does not move for the one and does for the other.
CHANCES = CHANCES.at[1, STAG, STAY].set(1.0).at[1, HARE, RIGHT].set(1.0)
TABLE: Any = Known(Table(CHANCES))


@jit
def infer(memory: BeliefMemory, view: View, models: Any = TABLE) -> tuple[BeliefMemory, jax.Array]:
    memory, belief = PART.infer(models, memory, view)
    return memory, PART.about_others(belief)


@jit
def stepped(state: Any, joint: jax.Array) -> tuple[Any, View]:
    """The next state, and what the first seat sees of it."""
    after, _ = GAME_MADE.step(state, joint, jax.random.key(0))
    return after, GAME_MADE.view(after, 0)


def open_board() -> tuple[Any, View]:
    """All can stay and go right, the first other can hunt stags and hares too."""
    state = replace(GAME_MADE.parse("0 . .\n1Sh . .\n2 . h"), steps=jnp.int32(0))
    return state, jit(lambda state: GAME_MADE.view(state, 0))(state)


def seen_step(part: BeliefContext, board: str, joint: list[int]) -> tuple[BeliefMemory, View]:
    """A fresh memory of a board, and what the first seat sees after a step from there."""
    state = GAME_MADE.parse(board)
    before = jit(lambda state: GAME_MADE.view(state, 0))(state)
    seen = replace(part.start(), cell=part._cells(before), things=part._things(before))
    return seen, stepped(state, jnp.array(joint))[1]


def chance(belief: jax.Array) -> np.ndarray:
    found: np.ndarray = np.exp(np.asarray(belief))
    return found


def test_it_is_multiplied_by_how_likely_each_act_was() -> None:
    """With a floor of 0.2 among seven actions: 0.8 p + 0.2 / 7."""
    state, view = open_board()
    memory, believed = infer(PART.start(), view)
    np.testing.assert_allclose(believed, 0.5)  # nobody has acted yet
    state, view = stepped(state, jnp.array([STAY, RIGHT, RIGHT]))
    memory, believed = infer(memory, view)
    few = 0.2 / 7
    first = np.array([0.8 * 0.25 + few, 0.8 * 0.75 + few])
    second = np.array([few, 0.8 + few])
    np.testing.assert_allclose(believed, [first / first.sum(), second / second.sum()], rtol=1e-5)
    # The first is in the middle of the board now, where all may stay or go right but not hunt:
    # only these two of the table's actions are left, alike with the stag as the goal.
    state, view = stepped(state, jnp.array([RIGHT, STAY, STAY]))
    memory, believed = infer(memory, view)
    first *= [0.8 * 0.5 + few, 0.8 * 0.25 + few]
    second *= [0.8 + few, few]
    np.testing.assert_allclose(believed, [first / first.sum(), second / second.sum()], rtol=1e-5)
    np.testing.assert_allclose(believed[1], 0.5, rtol=1e-5)  # one for each
    np.testing.assert_allclose(chance(memory.belief), believed, rtol=1e-5)
    assert not memory.counts.any()


def test_nothing_follows_from_those_who_do_not_act() -> None:
    """Who has left, and acts that were seen by nobody who knew what to expect."""
    state, view = open_board()
    _, later = stepped(state, jnp.array([STAY, RIGHT, RIGHT]))
    _, believed = infer(PART.start(), later)
    np.testing.assert_allclose(believed, 0.5)
    memory, _ = infer(PART.start(), view)
    state, view = stepped(state, jnp.array([STAY, HUNT_HARE, STAY]))
    memory, last = infer(memory, view)
    few = 0.2 / 7
    expected = np.array([0.8 * 0.25 + few, few])  # its last act is one that only a stag hunter does
    np.testing.assert_allclose(last[0], expected / expected.sum(), rtol=1e-5)
    assert memory.there.tolist() == [False, True]
    for _ in range(2):
        state, view = stepped(state, jnp.array([STAY, STAY, STAY]))
        memory, believed = infer(memory, view)
        np.testing.assert_array_equal(believed[0], last[0])
        assert believed[1, STAG] > last[1, STAG]
        assert memory.counts.tolist() == [[0, 1], [0, 0]]  # once


def test_what_leavers_took_is_counted_and_older_times_discounted() -> None:
    counts = jnp.array([[2.0, 4.0], [1.0, 1.0]])
    cases: list[tuple[str, list[int], list[list[float]]]] = [
        ("0 . .\n12S . .\n. h h", [STAY, HUNT_STAG, HUNT_STAG], [[2, 2], [1.5, 0.5]]),
        ("0 . .\n1h 2S .\n. . h", [STAY, HUNT_HARE, HUNT_STAG], [[1, 3], [1, 1]]),  # one in vain
        ("0 . .\n1h 2h .\n. . S", [STAY, STAY, HUNT_HARE], [[2, 4], [0.5, 1.5]]),
        ("0 . .\n1h 2h .\n. . S", [RIGHT, STAY, STAY], [[2, 4], [1, 1]]),
    ]
    for board, joint, expected in cases:
        memory, view = seen_step(PART, board, joint)
        memory = replace(memory, counts=counts)
        after, _ = infer(memory, view)
        np.testing.assert_allclose(after.counts, expected)
        # At an episode's end the last step counts as well, and the next begins with that.
        begun = PART.carry(memory, view)
        np.testing.assert_allclose(begun.counts, expected)
        often = np.array(expected) + 1
        np.testing.assert_allclose(
            chance(begun.belief), often / often.sum(axis=1, keepdims=True), rtol=1e-6
        )
        assert not begun.there.any()
        forgetful = BeliefContext(GAME, replace(CONFIG, across=False))
        assert same(forgetful.carry(memory, view), PART.start())


def test_who_stays_to_the_end_has_taken_nothing() -> None:
    part = BeliefContext(GAME, replace(CONFIG, none=True))
    assert part.kinds == 3
    counts = jnp.array([[2.0, 4.0, 6.0], [1.0, 1.0, 3.0]])
    memory, view = seen_step(part, "0 . .\n1h 2h .\n. . S", [STAY, STAY, HUNT_HARE])
    memory = replace(memory, counts=counts)
    expected = np.array([[1, 2, 4], [0.5, 1.5, 1.5]])  # the first stayed, the second took a hare
    begun = part.carry(memory, view)
    np.testing.assert_allclose(begun.counts, expected)
    often = expected + 1
    shares = often / often.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chance(begun.belief), shares, rtol=1e-6)


def test_what_is_walked_onto_is_taken_though_nobody_leaves() -> None:
    """In a game whose things come back: by what is gone from the cell that another came to."""
    game = Coins()
    part = BeliefContext(make_config("toy_game:ROW"), replace(CONFIG, none=True))
    state = game.parse("1 g .\n. 0 .\n. . s")
    before = game.view(state, 0)
    seen = replace(part.start(), cell=part._cells(before), things=part._things(before))

    def counted(memory: BeliefMemory, joint: list[int]) -> tuple[list[float], bool]:
        after, _ = game.step(state, jnp.array(joint), jax.random.key(1))
        counts, took = part._counted(memory, game.view(after, 0))
        ended = part.carry(memory, game.view(after, 0)).counts
        np.testing.assert_allclose(ended, counts + jnp.array([0, 0, 1]) * ~took[:, None])
        return counts[0].tolist(), bool(took[0])

    assert counted(seen, [STAY, RIGHT]) == ([1, 0, 0], True)
    assert counted(seen, [STAY, STAY]) == ([0, 0, 0], False)
    assert counted(seen, [0, STAY]) == ([0, 0, 0], False)  # it is gone, but another took it
    # Who has taken something before was not idle, though it is there to the end.
    assert counted(replace(seen, took=jnp.array([True])), [STAY, STAY]) == ([0, 0, 0], True)


def test_who_they_are_makes_no_difference() -> None:
    """Two others who change seats, with the models of them, change their places in the belief."""
    swapped: Any = Known(Table(CHANCES[::-1]))
    turned = np.array([0, 2, 1])
    state, view = open_board()
    other = replace(state, seats=state.seats[turned])
    other_view = jit(lambda state: GAME_MADE.view(state, 0))(other)
    memory, other_memory = PART.start(), PART.start()
    for joint in ([STAY, RIGHT, RIGHT], [RIGHT, STAY, STAY], [STAY, RIGHT, STAY]):
        memory, one = infer(memory, view)
        other_memory, two = infer(other_memory, other_view, swapped)
        np.testing.assert_allclose(one[::-1], two, rtol=1e-6)
        state, view = stepped(state, jnp.array(joint))
        other, other_view = stepped(other, jnp.array(joint)[turned])
    assert np.abs(one[0] - one[1]).max() > 0.05


# Hunters

STEPS, GAMES = 48, 32


def hunting(names: dict[str, str]) -> Any:
    """A program: play of one who believes, beside a stag and a hare hunter, by other names."""
    believer = replace(actor_of("opponent", "belief"), name=names["learn"])
    hunters: list[Any] = [scripted(kind, GAME_MADE) for kind in ("stag", "hare")]
    for number, hunter in enumerate(hunters):
        assert isinstance(hunter, Seek)
        hunters[number] = replace(hunter, name=names[hunter.name])
    seating = Seating((believer, *hunters), trial=FOR_EVER)
    player_params = mind_of(believer)
    player_params = replace(player_params, opponents=Known(Hunter(jnp.arange(2.0))))
    params = (jax.tree.map(lambda leaf: leaf[None], player_params), (), ())

    def play(key: jax.Array) -> Any:
        keys = jax.random.split(key, GAMES)
        plays = jax.vmap(lambda key: start(GAME_MADE, seating, key))(keys)
        return rollout(GAME_MADE, seating, params, plays, STEPS)[1]

    return play


SELF = {"learn": "learn", "stag": "stag", "hare": "hare"}


@pytest.fixture(scope="module")
def hunted() -> Any:
    return jax.device_get(jit(hunting(SELF))(jax.random.key(0)))


def test_hunters_are_told_apart(hunted: Any) -> None:
    """In the first episode of each game, by how they walk alone. Later ones begin with what was
    seen before: hares for the one and, for want of another hunter, little for the other."""
    believed = hunted.act.inferred[:, :, 0].reshape(STEPS, GAMES, 2, 2)
    ended = np.cumsum(hunted.outcome.done, axis=0) - hunted.outcome.done
    steps, there = hunted.state.steps, hunted.present
    right = np.stack([believed[:, :, 0, STAG], believed[:, :, 1, HARE]], axis=2)
    np.testing.assert_allclose(right[0], 0.5)
    for other in range(2):
        late = (ended == 0) & (steps >= 2) & there[:, :, 1 + other]
        assert late.sum() > 10
        assert right[late, other].mean() > 0.75
    begun = (ended >= 2) & (steps == 0)
    assert begun.sum() > 10
    assert right[begun, HARE].min() >= 0.7


def test_counts_are_those_of_what_was_taken(hunted: Any) -> None:
    """All along play, from episode to episode: by the outcomes, which no belief reads."""
    discount = BeliefConfig().discount

    def counted(counts: Any, took: Any) -> Any:
        return counts * np.where(took.any(axis=1, keepdims=True), discount, 1.0) + took

    for game in range(GAMES):
        counts, fresh = np.zeros((2, 2)), np.zeros((2, 2))
        for step in range(STEPS):
            held = hunted.memory[0].counts[step, game, 0]
            np.testing.assert_allclose(held, counts, rtol=1e-5, err_msg=f"{game}, {step}")
            # A step's catches are seen in the next one, or at once where the episode ends.
            counts, fresh = counted(counts, fresh), hunted.outcome.took[step, game, 1:] > 0
            if hunted.outcome.done[step, game]:
                counts, fresh = counted(counts, fresh), np.zeros((2, 2))
    most = hunted.memory[0].counts.max(axis=(0, 1, 2))
    assert (most > 1).tolist() == [[True, False], [False, True]]


def test_names_make_no_difference() -> None:
    """The very same program, whatever the players are called."""
    renamed = {"learn": "hare", "stag": "hare", "hare": "stag"}
    programs = [str(jax.make_jaxpr(hunting(names))(jax.random.key(0))) for names in (SELF, renamed)]
    assert programs[0] == programs[1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"discount": 1.5}, "belief.discount is 1.5 but must be from 0 to 1"),
        ({"floor": 0.0}, "belief.floor is 0.0 but must be above 0"),
        ({"across": 1}, "belief.across is 1 but must be yes or no"),
        ({"none": 1}, "belief.none is 1 but must be yes or no"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        BeliefConfig(**settings)
    assert words in str(error.value)
