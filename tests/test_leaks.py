"""What a planner must not know: future chance, what others have in mind, who they are.

One program steps a board at which a planner sits with two others. Whatever is changed of all that
goes into it, but for the planner's own view, memory, parameters and dice, its act stays the same to
the last bit; whoever is changed by it, so that something was, is someone else.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import SearchConfig
from hopplus.play.rollout import Play, advance, begin
from hopplus.play.seating import Seating
from hopplus.players.mixture import Mixture
from hopplus.players.planner import Planner
from hopplus.players.scripted import scripted
from hopplus.types import Act, Memory, Params, View
from tiny_hop_plus import GAME, GOAL, jit, of_seat, same
from tiny_search import GAME_MADE, actor_of, mind_of, seen

KINDS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "hop": (("opponent", "belief"), {"noise": 0.25}),
    "hop-plus-mcts": (("opponent", "goal"), {"infer_every": 1}),
    "one-step": (("opponent", "world"), {"kind": "one-step", "world": "learned"}),
}
EACH = replace(GOAL, about="each", history="each")  # reads what it takes the others to see
BOARD = "01S . .\n. 2 h\nh . ."
OTHER_BOARD = ". 0 .\nh . S\n1 2 h"
OTHERS = slice(1, 3)  # seats
FIRST, THIRD = range(2)  # of the planners, by their seats


@dataclass(frozen=True)
class Keyed(Seating):
    """With dice that are given, so that those of the game can be others."""

    dice: Any = None  # [N]

    def act(
        self,
        params: tuple[Params, ...],
        memory: tuple[Memory, ...],
        views: View,
        keys: jax.Array,
        choice: jax.Array,
    ) -> tuple[tuple[Memory, ...], Act]:
        return super().act(params, memory, views, self.dice, choice)


class Given(NamedTuple):
    """All that goes into a step."""

    params: tuple[Params, ...]
    play: Play
    dice: jax.Array


@cache
def setting(kind: str) -> tuple[Given, Callable[[Given], Any]]:
    """A step from the midst of play, and what comes of it: the act of the first planner, those of
    the others, and the states before and after.

    In the second seat is one who draws a goal for each episode, or one who has learned; in the
    third is a planner too, with a mind of its own.
    """
    parts, search = KINDS[kind]
    made: Any = {"simulations": 12, "trees": 2, "choice": "values", "temperature": 1.0} | search
    planner = Planner(actor_of(*parts, goal=EACH), GAME_MADE, SearchConfig(**made))
    learned = replace(actor_of(), name="learned")
    players = (planner, Mixture((scripted("switch", GAME_MADE), learned)), planner)

    @jit
    def run(given: Given) -> Any:
        seating = Keyed(players, dice=given.dice)
        one = jax.tree.map(lambda leaf: leaf[None], given.play)  # of the games side by side
        found = advance(GAME_MADE, seating, given.params, one)
        play, step = jax.tree.map(lambda leaf: leaf[0], found)
        others = jax.tree.map(lambda leaf: leaf[OTHERS], step.act)
        return of_seat(step.act, 0), (others, step.state, play.state)

    # The last step, after which a new episode begins; all see an earlier time, and look ahead.
    state = replace(GAME_MADE.parse(BOARD), steps=jnp.int32(GAME.horizon - 1))
    play = begin(GAME_MADE, Seating(players), state, jax.random.key(3))
    play = replace(play, view=seen(BOARD))
    param_sets = jax.tree.map(
        lambda *sets: jnp.stack(sets), mind_of(planner, 1), mind_of(planner, 2)
    )
    other = jax.tree.map(lambda leaf: leaf[None], mind_of(learned, 3))
    dice = jax.random.split(jax.random.key(4), 3)
    return seated(Given((param_sets, ((), other)), play, dice), 0), run


def with_play(given: Given, **changes: Any) -> Given:
    return given._replace(play=replace(given.play, **changes))


def seated(given: Given, choice: int, goal: int = 0) -> Given:
    """With one who has drawn that goal, 0, or the one who has learned, 1, in the second seat."""
    kept, mixed = given.play.memory
    memories = (jnp.full(1, goal, jnp.int32), mixed[1])
    return with_play(given, memory=(kept, memories), choice=jnp.array([0, choice, 0], jnp.int32))


def moved(given: Given, seats: slice) -> Given:
    """With what these seats see of another board."""
    other = seen(OTHER_BOARD)
    shown = jax.tree.map(lambda old, new: old.at[seats].set(new[seats]), given.play.view, other)
    return with_play(given, view=shown)


def remembering(given: Given, which: int) -> Given:
    """With another memory of one of the planners."""

    def other(leaf: jax.Array) -> jax.Array:
        more = jnp.arange(leaf[which].size).reshape(leaf[which].shape)
        return leaf.at[which].set(leaf[which] + more.astype(leaf.dtype))

    kept, mixed = given.play.memory
    return with_play(given, memory=(jax.tree.map(other, kept), mixed))


def minded(given: Given, which: int) -> Given:
    """With other parameters of one of the planners."""
    param_sets, mixed = given.params
    return given._replace(
        params=(jax.tree.map(lambda leaf: leaf.at[which].multiply(-1), param_sets), mixed)
    )


def learned_otherwise(given: Given) -> Given:
    """With other parameters of the one who has learned."""
    param_sets, (_, learned) = given.params
    return given._replace(params=(param_sets, ((), jax.tree.map(lambda leaf: 1 - leaf, learned))))


def elsewhere(given: Given) -> Given:
    """In another state, with what everyone sees of the old one."""
    state = replace(given.play.state, seats=jnp.array([8, 8, 8]), first_catch=jnp.int32(3))
    return with_play(given, state=state)


def diced(given: Given, seats: slice, seed: int = 98) -> Given:
    """With other dice of these seats."""
    dice = jax.random.split(jax.random.key(seed), 3)
    return given._replace(dice=given.dice.at[seats].set(dice[seats]))


LEAKS: dict[str, Callable[[Given], Given]] = {
    "future chance": lambda given: with_play(given, key=jax.random.key(99)),
    "the goal that another has drawn": lambda given: seated(given, 0, goal=1),
    "who sits in the other seat": lambda given: seated(given, 1),
    "what another planner has learned": lambda given: minded(given, THIRD),
    "what others see": lambda given: moved(given, OTHERS),
    "the state itself": elsewhere,
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_leaks(kind: str) -> None:
    given, run = setting(kind)
    own, rest = run(given)
    for name, change in LEAKS.items():
        own_after, rest_after = run(change(given))
        assert same(own, own_after), name
        assert not same(rest, rest_after), name
    # And the parameters, memory and dice of others, where they matter to these.
    given = seated(given, 1)
    _, rest = run(given)
    own_after, rest_after = run(learned_otherwise(given))
    assert same(own, own_after)
    assert not same(rest, rest_after)
    threw = [run(diced(given, OTHERS, seed)) for seed in range(8)]
    assert all(same(own, own_after) for own_after, _ in threw)
    assert not all(same(rest, rest_after) for _, rest_after in threw)
    own_after, rest_after = run(remembering(given, THIRD))
    assert same(own, own_after)
    assert same(rest, rest_after) == (kind == "one-step")  # which remembers nothing


@pytest.mark.parametrize("kind", KINDS)
def test_but_what_is_its_own_matters(kind: str) -> None:
    given, run = setting(kind)
    own, _ = run(given)
    assert np.isfinite(own.logits).sum() > 1
    changes = [moved(given, slice(0, 1)), minded(given, FIRST), diced(given, slice(0, 1))]
    if kind != "one-step":
        changes += [remembering(given, FIRST)]
        assert not same(own.inferred, run(changes[-1])[0].inferred)
    for changed in changes:
        assert not same(own.logits, run(changed)[0].logits)
