"""Rule 11: renaming seats, and turning or mirroring the board, commute with every step, exactly."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Compiled, compiled_game
from hopplus.config import StagHuntConfig
from hopplus.games.stag_hunt import StagHuntState
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import seat_players

GAMES = 128
SQUARE = StagHuntConfig(size=5, stags=2, hares=5, obstacles=2, sight=2, time_reward=-0.5)
WIDE = StagHuntConfig(height=3, width=5, stags=2, hares=3)
TALL = StagHuntConfig(height=5, width=3, stags=2, hares=3)
STRONG = StagHuntConfig(size=4, strength=(1, 3, 7, 0.7))

exact = settings(max_examples=30, deadline=None, derandomize=True, database=None)


@cache
def positions(config: StagHuntConfig) -> StagHuntState:
    """States [B] from the midst of play, with pieces gathered on prey."""
    game = compiled_game(config).game
    seating = seat_players("stag,noisy-stag:0.2,switch,random", game)
    params = seating.init(jax.random.key(0))

    @jax.jit
    def play(keys: jax.Array) -> Any:
        plays = jax.vmap(lambda key: start(game, seating, key))(keys)
        states = rollout(game, seating, params, plays, 8)[1].state
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[::8], states)

    states: StagHuntState = play(jax.random.split(jax.random.key(1), GAMES))
    return states


def joints(seed: int) -> Any:
    """[B, 4] any actions, illegal ones included, and hunts more often than others."""
    actions = [-1, 0, 1, 2, 3, 4, 7, *[5] * 8, *[6] * 3]
    return np.random.default_rng(seed).choice(actions, (GAMES, 4)).astype(np.int32)


def assert_equal(one: Any, two: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, two)


def renamed(state: StagHuntState, order: np.ndarray) -> StagHuntState:
    """Seat i of the new state is seat order[i] of the old one."""
    return StagHuntState(
        walls=state.walls,
        seats=state.seats[:, order],
        present=state.present[:, order],
        prey=state.prey,
        alive=state.alive,
        steps=state.steps,
        last_actions=state.last_actions[:, order],
        first_catch=state.first_catch,
    )


@pytest.mark.parametrize("config", [SQUARE, STRONG], ids=["equal", "strengths"])
@exact
@given(st.permutations(range(4)), st.integers(0, 2**32 - 1))
def test_renaming_seats(config: StagHuntConfig, order: list[int], seed: int) -> None:
    # Unequal strengths move with their seats: that is another setting, compiled once per order.
    order = order if config is SQUARE else sorted(order)[seed % 4 :] + sorted(order)[: seed % 4]
    by = np.array(order)
    moved_strength = tuple(config.strength[i] for i in order) if config.strength else ()
    other = compiled_game(
        config if config is SQUARE else StagHuntConfig(size=4, strength=moved_strength)
    )
    state, joint = positions(config), joints(seed)
    after, outcome = compiled_game(config).step(state, joint)
    after_renamed, outcome_renamed = other.step(renamed(state, by), joint[:, by])
    assert_equal(after_renamed, renamed(after, by))
    np.testing.assert_array_equal(outcome_renamed.reward, outcome.reward[:, by])
    np.testing.assert_array_equal(outcome_renamed.left, outcome.left[:, by])
    np.testing.assert_array_equal(outcome_renamed.illegal, outcome.illegal[:, by])
    np.testing.assert_array_equal(outcome_renamed.took, outcome.took[:, by])
    np.testing.assert_array_equal(outcome_renamed.done, outcome.done)


@pytest.mark.parametrize("shift", range(4))
def test_cyclic_renaming_of_views(shift: int) -> None:
    compiled = compiled_game(SQUARE)
    by = np.roll(np.arange(4), -shift)
    seen = compiled.views(positions(SQUARE))
    turned = compiled.views(renamed(positions(SQUARE), by))
    assert_equal(turned, jax.tree.map(lambda leaf: leaf[:, by], seen))


def turned_board(
    state: StagHuntState, config: StagHuntConfig, turns: int, flip: bool
) -> tuple[StagHuntState, np.ndarray]:
    """The board mirrored (left to right) and turned, and the new name [7] of every action."""
    cells = np.arange(config.rows * config.columns).reshape(config.rows, config.columns)
    new = np.rot90(np.fliplr(cells) if flip else cells, turns)  # the old cell at each new place
    place = np.empty(new.size, np.int32)  # the new place of each old cell
    place[new.ravel()] = np.arange(new.size)
    names = np.arange(7)
    if flip:
        names = np.array([0, 1, 3, 2, 4, 5, 6])[names]
    for _ in range(turns):  # counter-clockwise: up becomes left, left down, down right, right up
        names = np.array([2, 3, 1, 0, 4, 5, 6])[names]
    last = state.last_actions
    board = StagHuntState(
        walls=state.walls[:, new.ravel()],
        seats=jnp.asarray(place)[state.seats],
        present=state.present,
        prey=jnp.asarray(place)[state.prey],
        alive=state.alive,
        steps=state.steps,
        last_actions=jnp.where(last < 0, last, jnp.asarray(names, jnp.int32)[last]),
        first_catch=state.first_catch,
    )
    return board, names


def check_turning(config: StagHuntConfig, turns: int, flip: bool, seed: int) -> None:
    other = TALL if config is WIDE and turns % 2 else config
    compiled, compiled_other = compiled_game(config), compiled_game(other)
    state, joint = positions(config), joints(seed)
    turned, names = turned_board(state, config, turns, flip)
    named = np.where((joint >= 0) & (joint < 7), names[np.clip(joint, 0, 6)], joint)
    after, outcome = compiled.step(state, joint)
    turned_after, turned_outcome = compiled_other.step(turned, jnp.asarray(named, jnp.int32))
    assert_equal(turned_after, turned_board(after, config, turns, flip)[0])
    assert_equal(turned_outcome, outcome)
    check_turned_views(compiled, compiled_other, state, turned, turns, flip, names)


def check_turned_views(
    compiled: Compiled,
    other: Compiled,
    state: StagHuntState,
    turned: StagHuntState,
    turns: int,
    flip: bool,
    names: np.ndarray,
) -> None:
    seen, seen_turned = compiled.views(state), other.views(turned)
    planes = np.asarray(seen.planes)
    planes = np.rot90(planes[:, :, :, ::-1] if flip else planes, turns, axes=(2, 3))
    np.testing.assert_array_equal(seen_turned.planes, planes)
    np.testing.assert_array_equal(np.asarray(seen_turned.legal)[..., names], seen.legal)


@pytest.mark.parametrize("config", [SQUARE, WIDE], ids=["square", "wide"])
@exact
@given(st.integers(0, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_turning_the_board(config: StagHuntConfig, turns: int, flip: bool, seed: int) -> None:
    check_turning(config, turns, flip, seed)


def test_positions_are_worth_testing() -> None:
    """The states above hold what the symmetries could break: absent seats, catches, sharing."""
    for config in (SQUARE, WIDE, STRONG):
        state = positions(config)
        assert (~state.present).any()
        assert (~state.alive).any()
        rewards = [
            np.asarray(compiled_game(config).step(state, joints(seed))[1].reward)
            for seed in range(8)
        ]
        assert (np.max(rewards, axis=(0, 2)) > 1).sum() >= 2  # some stags are caught
