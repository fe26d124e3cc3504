"""What was just played, as auxiliary models read it and keep it in replay buffers."""

from dataclasses import replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, repeat_step, views
from hopplus.lookup import at
from hopplus.models.opponent import others_views
from hopplus.types import Memory, Sample, State, Trajectory, View

EMPTY = -1  # the actions in a buffer's rows that hold no step yet
Rows = TypeVar("Rows")  # transitions, or segments of them: a buffer is so many of either


class Transitions(eqx.Module):
    """Steps of play, [..., ...]; what came of them follows from the rules and the step's key.

    `n` are the seats that learn; parts leave out (None) what they do not need.
    """

    state: State  # before the step
    joint: jax.Array  # [N] int32; anything for a seat that is not present
    reward: jax.Array | None = None  # [N] float32
    done: jax.Array | None = None  # [] bool, the episode ended with the step
    inferred: jax.Array | None = None  # [n, J] float32, what each took the others to be after or,
    # where goals are what can be taken, what they turned out to be after
    memory: Memory = None  # [n, ...] of each before the step
    key: jax.Array | None = None  # [2] uint32, the data of the step's key
    begins: jax.Array | None = None  # [] bool, it is the first step of an episode
    episode: jax.Array | None = None  # [] int32, the episode's number in its trial
    earned: jax.Array | None = None  # [N] bool, a reward came with the step or later in the episode


def transitions_of(trajectory: Trajectory, group: int, seats: np.ndarray, size: int) -> Transitions:
    """The steps [T, B, ...] of a trajectory; `group` of its players learns, in these seats, and
    infers goals of that size (others at the board may infer larger ones)."""
    return Transitions(
        state=trajectory.state,
        joint=trajectory.act.action,
        reward=trajectory.outcome.reward,
        done=trajectory.outcome.done,
        inferred=trajectory.act.inferred[:, :, seats, :size],
        memory=trajectory.memory[group],
        key=trajectory.key,
        begins=trajectory.begins,
        episode=trajectory.episode,
    )


def empty_buffer(rows: Rows, wanted: int) -> Rows:
    """Room for at least `wanted` rows like those [M, ...] of an update, in whole updates; none of
    them holds a step yet."""
    like: Any = rows
    size = -(-wanted // len(like.joint)) * len(like.joint)
    buffer = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape[1:]), leaf.dtype), like)
    return emptied(buffer)


def emptied(buffer: Rows) -> Rows:
    """The same room without any step."""
    like: Any = buffer
    empty: Rows = replace(like, joint=jnp.full_like(like.joint, EMPTY))
    return empty


def push(buffer: Rows, rows: Rows, updates: jax.Array) -> Rows:
    """The buffer after rows [M, ...], the same number in every one of the `updates` before."""

    count, room = (len(jax.tree.leaves(one)[0]) for one in (rows, buffer))  # for whole updates
    first = jax.lax.rem(updates, room // count) * count  # so that no product overflows

    def put(kept: jax.Array, new: jax.Array) -> jax.Array:
        where = [first] + [0] * (new.ndim - 1)
        return jax.lax.dynamic_update_slice(kept, new, where, allow_negative_indices=False)

    after: Rows = jax.tree.map(put, buffer, rows)
    return after


def earned_later(
    earned: jax.Array, done: jax.Array, steps: tuple[int, int], updates: jax.Array
) -> jax.Array:
    """[R, N] bool, whether each seat earns a reward with a row of a buffer or later in the episode,
    as far as the buffer tells; from whether one came with it [R, N], or later within its update.

    The newest of the buffer's updates, each of [T, B] `steps`, is of the number `updates`.
    """
    slots = len(done) // (steps[0] * steps[1])
    newest = updates % slots

    def in_time(leaf: jax.Array) -> jax.Array:  # [slots * T, B, ...] from the oldest on
        whole = jnp.roll(leaf.reshape(slots, -1, *leaf.shape[1:]), -1 - newest, axis=0)
        return whole.reshape(slots * steps[0], steps[1], *leaf.shape[1:])

    def back(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        earned, done = now
        earned |= later & ~done[:, None]
        return earned, earned

    none = jnp.zeros((steps[1], earned.shape[1]), bool)
    _, found = jax.lax.scan(back, none, (in_time(earned), in_time(done)), reverse=True)
    whole = jnp.roll(found.reshape(slots, -1, earned.shape[1]), 1 + newest, axis=0)
    return whole.reshape(earned.shape)


def draw_rows(key: jax.Array, present: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """[count] rows and places, drawn alike from the pairs that are `present` [R, k].

    Any pair where none is: whoever learns from it must look at its presence again.
    """
    sums = jnp.cumsum(present.reshape(-1).astype(jnp.int32))
    threshold = jax.random.uniform(key, (count,)) * sums[-1]
    # Whole numbers are compared as they are; others are looked at for signs and for nan first.
    flat = jnp.searchsorted(sums, jnp.floor(threshold).astype(jnp.int32), side="right")
    flat = jnp.minimum(flat, present.size - 1)
    places = jnp.int32(present.shape[1])
    return jax.lax.div(flat, places), jax.lax.rem(flat, places)


def draw_places(
    game: Game, buffer: Rows, seats: jax.Array, key: jax.Array, count: int
) -> tuple[jax.Array, jax.Array]:
    """[count] rows of a buffer, by number, and for each one of the seats [k] that is present."""
    present = present_in(game, buffer)
    present = present.any(axis=tuple(range(1, present.ndim - 1)))  # at any step of a segment
    row, place = draw_rows(key, present[:, seats], count)
    return row, at(seats, place)


def draw_present(
    game: Game, buffer: Rows, seats: jax.Array, key: jax.Array, count: int
) -> tuple[Rows, jax.Array]:
    """[count] rows of a buffer, and for each one of the seats [k] that is present in it."""
    row, seat = draw_places(game, buffer, seats, key, count)
    drawn: Rows = jax.tree.map(lambda leaf: at(leaf, row), buffer)
    return drawn, seat


def present_in(game: Game, rows: Any) -> jax.Array:
    """[..., N] bool, the seats on the board in rows [...] with `state` and `joint`; nobody in one
    that holds no step yet.

    The state of such a row is all zeros, in which a game that nobody leaves has everyone present.
    """
    present = game.present
    for _ in rows.joint.shape[:-1]:
        present = jax.vmap(present)
    there: jax.Array = present(rows.state) & (rows.joint != EMPTY)
    return there


def own_sample(game: Game, transition: Transitions, seat: jax.Array) -> Sample:
    """What the seat itself learns of a step."""
    assert transition.key is not None
    order = (seat + jnp.arange(game.seats)) % game.seats
    after, outcome = repeat_step(game, transition.state, transition.joint, transition.key)
    view = game.view(transition.state, seat)
    return Sample(
        view=view,
        present=at(present_in(game, transition), order),
        joint=at(transition.joint, order),
        reward=at(outcome.reward, order),
        after=game.view(after, seat),
        present_after=at(game.present(after), order),
        legal_after=at(views(game, after).legal, order),
        done=outcome.done,
        later=view,
        caught=jnp.int32(len(game.targets)),
        goal=jnp.zeros(0),
    )


def other_samples(game: Game, transition: Transitions, seat: jax.Array, goals: jax.Array) -> Sample:
    """[N - 1] what the seat learns of what each other does, whom it takes to have goals
    [N - 1, G]; the others' views are the seat's own, turned."""
    order = (seat + jnp.arange(game.seats)) % game.seats
    own, legal = game.view(transition.state, seat), at(views(game, transition.state).legal, order)
    present, joint = at(present_in(game, transition), order), at(transition.joint, order)

    def of_other(place: jax.Array, view: View, goal: jax.Array) -> Sample:
        return act_sample(view, jnp.roll(joint, -place), jnp.roll(present, -place), goal)

    return jax.vmap(of_other)(jnp.arange(1, game.seats), others_views(own, legal), goals)


def act_sample(
    view: View, joint: jax.Array, present: jax.Array, goal: jax.Array, later: View | None = None
) -> Sample:
    """A sample for models that look at the view before a step, and at the act: what comes of it is
    not computed, and nothing stands in its place."""
    nothing = jnp.zeros(0)
    return Sample(
        view=view,
        present=present,
        joint=joint,
        reward=nothing,
        after=view,
        present_after=nothing,
        legal_after=nothing,
        done=nothing,
        later=view if later is None else later,
        caught=nothing,
        goal=goal,
    )
