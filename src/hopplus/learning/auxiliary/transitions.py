"""What was just played, as the parts beside the policy read and keep it."""

from dataclasses import replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, repeat_step, views
from hopplus.learning.auxiliary.replay_buffer import capacity, empty_buffer
from hopplus.models.opponent import others_views
from hopplus.types import Memory, Sample, State, Trajectory, View

EMPTY = -1  # the actions in a buffer's rows that hold no step yet
Rows = TypeVar("Rows")  # transitions, or segments of them


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


def empty_rows(rows: Rows, size: int) -> Rows:
    """A buffer for rows like those [M, ...], of so many that hold no step yet."""
    buffer: Any = empty_buffer(rows, size)
    empty: Rows = replace(buffer, joint=jnp.full_like(buffer.joint, EMPTY))
    return empty


def empty_steps(rows: Transitions, buffer: int) -> Transitions:
    """An empty buffer with room for `buffer` steps, for rows [M, ...] an update."""
    return empty_rows(rows, capacity(buffer, len(rows.joint)))


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
        present=present_in(game, transition)[order],
        joint=transition.joint[order],
        reward=outcome.reward[order],
        after=game.view(after, seat),
        present_after=game.present(after)[order],
        legal_after=views(game, after).legal[order],
        done=outcome.done,
        later=view,
        caught=jnp.int32(len(game.targets)),
        goal=jnp.zeros(0),
    )


def other_samples(game: Game, transition: Transitions, seat: jax.Array, goals: jax.Array) -> Sample:
    """[N - 1] what the seat learns of what each other does, whom it takes to have goals
    [N - 1, G]; the others' views are the seat's own, turned."""
    order = (seat + jnp.arange(game.seats)) % game.seats
    own, legal = game.view(transition.state, seat), views(game, transition.state).legal[order]
    present, joint = present_in(game, transition)[order], transition.joint[order]

    def of_other(place: jax.Array, view: View, goal: jax.Array) -> Sample:
        # A model of another looks at the view before the step alone: what comes of it is not
        # computed, and in its place stands what was.
        return Sample(
            view=view,
            present=jnp.roll(present, -place),
            joint=jnp.roll(joint, -place),
            reward=jnp.zeros(game.seats),
            after=own,
            present_after=present,
            legal_after=legal,
            done=jnp.bool_(False),
            later=own,
            caught=jnp.int32(len(game.targets)),
            goal=goal,
        )

    return jax.vmap(of_other)(jnp.arange(1, game.seats), others_views(own, legal), goals)
