"""Buffers of steps and the moments they hold, by numbers worked by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.learning.auxiliary.transitions import (
    EMPTY,
    Transitions,
    draw_rows,
    empty_buffer,
    push,
    transitions_of,
)
from hopplus.types import Act, Outcome, Trajectory
from tiny_hop_plus import jit


def test_rooms_are_whole_updates() -> None:
    rows = Transitions(state=(), joint=jnp.zeros((8, 2), int))
    rooms = [len(empty_buffer(rows, wanted).joint) for wanted in (1, 8, 9, 16, 17)]
    assert rooms == [8, 8, 16, 16, 24]


def test_a_buffer_keeps_the_newest() -> None:
    buffer = empty_buffer(Transitions(jnp.zeros((2, 3)), jnp.zeros((2, 1), int)), 5)
    assert buffer.state.shape == (6, 3)
    assert (buffer.joint == EMPTY).all()
    pushed = jit(push)
    for update in range(5):
        states = jnp.full((2, 3), update) + jnp.array([[0.0], [0.5]])
        buffer = pushed(buffer, Transitions(states, jnp.ones((2, 1), int)), update)
        held = sorted(buffer.state[:, 0][buffer.joint[:, 0] != EMPTY].tolist())
        kept = range(max(0, update - 2), update + 1)
        assert held == [number + half for number in kept for half in (0, 0.5)]
    assert buffer.state[:, 0].tolist() == [3, 3.5, 4, 4.5, 2, 2.5]


def test_rows_are_drawn_alike_from_those_present() -> None:
    chance = np.random.default_rng(3)
    present = chance.random((20, 3)) < 0.4
    present[0, 0], present[-1, -1] = False, False
    draw = jit(lambda key, present: draw_rows(key, present, 20_000))
    row, place = draw(jax.random.key(0), present)
    assert present[row, place].all()
    counts = np.zeros(present.shape)
    np.add.at(counts, (np.asarray(row), np.asarray(place)), 1)
    expected = 20_000 / present.sum()
    chi = ((counts - expected) ** 2 / expected)[present].sum()
    free = present.sum() - 1
    assert chi < free + 4 * np.sqrt(2 * free)
    for at in ((0, 0), (7, 1), (19, 2)):  # one alone is always found
        alone = np.zeros_like(present)
        alone[at] = True
        row, place = draw(jax.random.key(1), alone)
        assert (np.asarray(row) == at[0]).all()
        assert (np.asarray(place) == at[1]).all()
    row, place = draw(jax.random.key(1), np.zeros_like(present))  # none: any pair there is
    assert 0 <= int(row.min()) <= int(row.max()) < 20
    assert 0 <= int(place.min()) <= int(place.max()) < 3


def test_moments_hold_goals_of_the_own_size() -> None:
    """Others at the board may infer larger goals, to which all are filled up."""
    inferred = jnp.arange(2 * 1 * 3 * 5, dtype=jnp.float32).reshape(2, 1, 3, 5)
    nothing: Any = jnp.zeros((2, 1, 3))
    act = Act(nothing, nothing, nothing, nothing, nothing, inferred, nothing)
    outcome = Outcome(nothing, nothing, jnp.zeros((2, 1), bool), nothing, nothing, nothing)
    trajectory = Trajectory(
        (), nothing, ((), jnp.zeros((2, 1, 2, 4))), act, outcome, *[nothing] * 4
    )
    found = transitions_of(trajectory, 1, np.array([0, 2]), 3)
    np.testing.assert_array_equal(found.inferred, inferred[:, :, [0, 2], :3])
    assert found.memory.shape == (2, 1, 2, 4)
