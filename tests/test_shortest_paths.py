"""Shortest ways on a board against a plain search."""

from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError
from hopplus.games.grid import MOVES
from hopplus.games.shortest_paths import first_moves, steps_away


def plain_steps(start: tuple[int, int], walls: np.ndarray) -> np.ndarray:
    """[H, W] steps from a cell, by breadth-first search; infinite where no way leads, and
    everywhere from a wall."""
    steps = np.full(walls.shape, np.inf)
    inside = all(0 <= at < size for at, size in zip(start, walls.shape, strict=True))
    if not inside or walls[start]:
        return steps
    steps[start] = 0
    todo = deque([start])
    while todo:
        row, column = todo.popleft()
        for down, right in MOVES[:4]:
            place = (row + down, column + right)
            on_board = 0 <= place[0] < walls.shape[0] and 0 <= place[1] < walls.shape[1]
            if on_board and not walls[place] and np.isinf(steps[place]):
                steps[place] = steps[row, column] + 1
                todo.append(place)
    return steps


def from_neighbours(cell: int, walls: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """[H, W] steps from a cell, and from where each move leads."""
    row, column = divmod(cell, walls.shape[1])
    starts = [(row + down, column + right) for down, right in MOVES[:4]]
    return plain_steps((row, column), walls), [plain_steps(start, walls) for start in starts]


def plain_first_moves(cell: int, things: np.ndarray, walls: np.ndarray) -> list[bool]:
    def nearest(steps: np.ndarray) -> float:
        return float(np.where(things, steps, np.inf).min())

    here, there = from_neighbours(cell, walls)
    now = nearest(here)
    return [0 < now < np.inf and nearest(steps) == now - 1 for steps in there]


def plain_steps_away(cell: int, things: np.ndarray, walls: np.ndarray) -> np.ndarray:
    here, there = from_neighbours(cell, walls)
    found = np.zeros((sum(walls.shape), 4, things.shape[-1]), int)
    for move, steps in enumerate(there):
        for place in zip(*np.nonzero((steps + 1 == here) & (here <= len(found))), strict=True):
            found[int(here[place]) - 1, move] += things[place]
    return found


SHAPES = [(4, 4), (3, 7), (8, 8), (2, 32)]


def boards(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, list[int], np.ndarray]:
    """Things, walls, cells, and these as [H, W] bool."""
    rng = np.random.default_rng(5)
    count = 150
    walls = rng.random((count, *shape)) < rng.choice([0.0, 0.3, 0.5], (count, 1, 1))
    things = (rng.random((count, *shape)) < rng.choice([0.02, 0.2], (count, 1, 1))) & ~walls
    walls[:, 0, 0] = False
    cells = [int(rng.choice(np.flatnonzero(~board))) for board in walls]
    here = np.zeros((count, *shape), bool)
    here.reshape(count, -1)[np.arange(count), cells] = True
    return things, walls, cells, here


@pytest.mark.parametrize("shape", SHAPES)
def test_first_moves_agree_with_a_plain_search(shape: tuple[int, int]) -> None:
    things, walls, cells, here = boards(shape)
    got = jax.jit(jax.vmap(first_moves))(here, things, walls)
    expected = [plain_first_moves(*case) for case in zip(cells, things, walls, strict=True)]
    np.testing.assert_array_equal(got, expected)
    assert {sum(moves) for moves in expected} >= {0, 1, 2}


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_away_agree_with_a_plain_search(shape: tuple[int, int]) -> None:
    one, walls, cells, here = boards(shape)
    things = np.stack([one, np.roll(one, 1, axis=0) & ~walls], axis=-1)
    got = jax.jit(jax.vmap(steps_away))(here, things, walls)
    expected = [plain_steps_away(*case) for case in zip(cells, things, walls, strict=True)]
    np.testing.assert_array_equal(got, expected)
    assert np.max(expected) > 1
    assert np.array(expected)[:, 2 * max(shape) // 3 :].any()  # far ones, too


def test_who_is_on_no_cell_is_told_nothing() -> None:
    things, walls, _, here = boards((4, 4))
    found = jax.jit(jax.vmap(steps_away))(np.zeros_like(here), things[..., None], walls)
    assert things.any()
    assert not np.asarray(found).any()


def test_boards_that_are_too_wide_are_refused() -> None:
    cells = jnp.zeros((2, 33), bool)
    for ways in (first_moves, lambda *given: steps_away(given[0], given[1][..., None], given[2])):
        with pytest.raises(ConfigError, match=r"at most 32 columns.*has 33"):
            ways(cells, cells, cells)


def test_ways_longer_than_height_and_width_are_not_told() -> None:
    rows = ["0.#...", ".##.#.", ".#..#.", ".#.#..", "...#.t"]
    cells = np.array([list(row) for row in rows])
    found = np.asarray(steps_away(cells == "0", (cells == "t")[..., None], cells == "#"))
    steps = plain_steps((0, 0), cells == "#")[4, 5]
    assert steps == 17 > sum(cells.shape)
    assert not found.any()
