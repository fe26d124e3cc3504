"""The JAX rules against a second, plain-Python reading of docs/rules.md that shares no code."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plain_stag_hunt as plain
from hopplus.config import StagHuntConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt

STEPS = 28
TRANSITIONS = 20_000  # over all settings, at least

SETTINGS = {
    "4x4": StagHuntConfig(),
    "8x8 two stags": StagHuntConfig(size=8, stags=2, horizon=20),
    "wide, strengths": StagHuntConfig(
        height=3, width=5, strength=(1, 2, 0.5, 4), time_reward=-0.25, horizon=16
    ),
    "sight 1, grace 2": StagHuntConfig(size=5, sight=1, grace=2, seats=3),
    "eight seats, three hunters": StagHuntConfig(
        height=5, width=4, seats=8, stags=2, stag_hunters=3, sight=2
    ),
    "two seats, grace 0": StagHuntConfig(size=3, seats=2, hares=1, stags=2, grace=0, horizon=7),
    "no stag, lone hunter": StagHuntConfig(size=4, stags=0, hares=2, stag_hunters=1),
    "stags only": StagHuntConfig(size=4, stags=3, hares=0, stag_reward=2.5, time_reward=0.5),
}

EXAMPLES = {  # enough for each setting's share: some end sooner than others
    "4x4": 105,
    "8x8 two stags": 140,
    "wide, strengths": 175,
    "sight 1, grace 2": 160,
    "eight seats, three hunters": 105,
    "two seats, grace 0": 420,
    "no stag, lone hunter": 140,
    "stags only": 105,
}


def plain_rules(config: StagHuntConfig) -> plain.Rules:
    shared = {
        name: getattr(config, name)
        for name in plain.Rules.__dataclass_fields__
        if name not in ("height", "width")
    }
    return plain.Rules(height=config.rows, width=config.columns, **shared)


@cache
def player_of(name: str) -> tuple[StagHunt, Callable[[Any, Any], Any]]:
    """Plays a joint action [T, N] from a state: views before, states after, outcomes."""
    game = StagHunt(SETTINGS[name])

    def play(state: Any, joints: jax.Array) -> Any:
        def body(state: Any, joint: jax.Array) -> Any:
            after, outcome = game.step(state, joint, jax.random.key(0))
            return after, (views(game, state), after, outcome)

        return jax.lax.scan(body, state, joints)[1]

    return game, jax.jit(play)


@st.composite
def layouts(draw: st.DrawFn, config: StagHuntConfig) -> str:
    """Any legal layout, crowded ones more often than chance: pieces share cells, some are gone."""
    cells = config.rows * config.columns
    walls = draw(st.sets(st.integers(0, cells - 1), max_size=cells // 3))
    free = sorted(set(range(cells)) - walls)
    spots = draw(st.lists(st.sampled_from(free), min_size=1, max_size=6))
    place = st.one_of(st.sampled_from(spots), st.sampled_from(spots), st.sampled_from(free))
    contents = ["#" if cell in walls else "" for cell in range(cells)]
    everyone = [*map(str, range(config.seats)), *"S" * config.stags, *"h" * config.hares]
    gone = draw(st.sets(st.sampled_from(range(len(everyone))), max_size=2))
    for index, piece in enumerate(everyone):
        if index not in gone or piece == "0" or index == len(everyone) - 1:
            contents[draw(place)] += piece
    rows = [contents[i : i + config.columns] for i in range(0, cells, config.columns)]
    return "\n".join(" ".join(cell or "." for cell in row) for row in rows)


def joint_actions(seats: int) -> st.SearchStrategy[np.ndarray]:
    """[T, N] actions from -1 to 8: illegal ones of every sort, and hunts often."""
    table = np.array([-1, 0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 6, 0, 3, 7, 8], np.int32)
    size = STEPS * seats
    return st.binary(min_size=size, max_size=size).map(
        lambda raw: table[np.frombuffer(raw, np.uint8) % 16].reshape(STEPS, seats)
    )


def assert_same_views(seen: Any, expected: list[list[plain.View]]) -> None:
    """Of all steps and seats [T, N] at once, which is quicker than one by one."""
    for name in ("planes", "legal", "time", "last_actions"):
        found = getattr(seen, name)
        told = np.array([[getattr(view, name) for view in views] for views in expected])
        np.testing.assert_array_equal(found, told.astype(found.dtype), err_msg=name)


def assert_same_state(state: Any, expected: plain.Board, config: StagHuntConfig) -> None:
    where = [
        divmod(int(cell), config.columns) if here else None
        for cell, here in zip(state.seats, state.present, strict=True)
    ]
    assert where == expected.where
    prey = [
        ("stag" if i < config.stags else "hare", *divmod(int(cell), config.columns))
        for i, cell in enumerate(state.prey)
        if state.alive[i]
    ]
    assert prey == [(p.kind, p.row, p.col) for p in expected.prey if p.alive]
    walls = {divmod(int(cell), config.columns) for cell in np.flatnonzero(state.walls)}
    assert walls == expected.obstacles
    assert state.steps == expected.steps
    assert list(state.last_actions) == expected.last_actions
    assert state.first_catch == (-1 if expected.first_catch is None else expected.first_catch)


def assert_same_outcomes(outcome: Any, expected: list[plain.Result]) -> None:
    """Of all steps [T] at once."""
    # The plain rules reckon in 64 bits, the others in 32: at most their rounding lies between.
    rewards = [result.rewards for result in expected]
    np.testing.assert_allclose(outcome.reward, rewards, rtol=0, atol=1e-6)
    assert outcome.left.tolist() == [result.left for result in expected]
    assert outcome.done.tolist() == [result.done for result in expected]
    assert outcome.illegal.tolist() == [result.illegal for result in expected]
    caught = [[result.caught["stag"], result.caught["hare"]] for result in expected]
    assert outcome.taken.tolist() == caught
    assert outcome.took.any(axis=2).tolist() == [result.left for result in expected]


@pytest.mark.parametrize("name", SETTINGS)
def test_no_difference(name: str) -> None:
    config, rules = SETTINGS[name], plain_rules(SETTINGS[name])
    game, play = player_of(name)
    compared = 0

    @settings(
        max_examples=EXAMPLES[name],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(layouts(config), joint_actions(config.seats))
    def run(text: str, joints: np.ndarray) -> None:
        nonlocal compared
        start = game.parse(text)
        board = plain.read(rules, text)
        assert game.show(start) == plain.write(rules, board)
        played = jax.device_get(play(start, joints))
        expected_views: list[list[plain.View]] = []
        results: list[plain.Result] = []
        for t in range(STEPS):
            after = jax.tree.map(lambda leaf: leaf[t], played[1])  # noqa: B023
            expected_views.append([plain.view(rules, board, seat) for seat in range(config.seats)])
            board, result = plain.step(rules, board, joints[t].tolist())
            assert_same_state(after, board, config)
            results.append(result)
            compared += 1
            if result.done:
                break
        seen, _, outcomes = jax.tree.map(lambda leaf: leaf[: len(results)], played)
        assert_same_views(seen, expected_views)
        assert_same_outcomes(outcomes, results)

    run()
    assert compared >= TRANSITIONS / len(SETTINGS)
