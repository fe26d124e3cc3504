"""Where pieces are put: every placement alike, boards connected, pieces as the rules say."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from conftest import compiled_game
from hopplus.config import ConfigError, StagHuntConfig
from hopplus.games import grid
from hopplus.games.stag_hunt import StagHunt

KEY = jax.random.key(20)


def test_every_placement_is_equally_likely() -> None:
    config = StagHuntConfig(height=2, width=3, seats=2, stags=1, hares=1)
    states = compiled_game(config).init(jax.random.split(KEY, 72_000))
    cells = np.concatenate([states.seats, states.prey], axis=1)
    assert all(len(set(row)) == 4 for row in cells[:1000].tolist())
    arrangements = list(itertools.permutations(range(6), 4))  # 360
    code = cells @ np.array([216, 36, 6, 1])
    counts = [int((code == np.dot(a, [216, 36, 6, 1])).sum()) for a in arrangements]
    assert sum(counts) == 72_000
    assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize(
    "config",
    [StagHuntConfig(), StagHuntConfig(size=6, obstacles=3, boards=4, stags=2)],
    ids=["4x4", "obstacles"],
)
def test_no_seat_has_an_advantage(config: StagHuntConfig) -> None:
    """Over all free cells of a board, each piece stands in each equally often."""
    game = compiled_game(config).game
    states = compiled_game(config).init(jax.random.split(KEY, 40_000))
    cells = np.concatenate([states.seats, states.prey], axis=1)
    for walls in np.asarray(game.bank.walls):
        here = cells[(np.asarray(states.walls) == walls).all(axis=1)]
        table = np.array([np.bincount(c, minlength=walls.size) for c in here.T])
        assert not table[:, walls].any()
        assert stats.chisquare(table[:, ~walls], axis=1).pvalue.min() > 0.001
        assert stats.chi2_contingency(table[:, ~walls]).pvalue > 0.001


def test_boards_are_drawn_alike() -> None:
    config = StagHuntConfig(size=6, obstacles=3, boards=4, stags=2)
    game = compiled_game(config).game
    states = compiled_game(config).init(jax.random.split(KEY, 40_000))
    walls = np.asarray(states.walls)
    counts = [(walls == board).all(axis=1).sum() for board in np.asarray(game.bank.walls)]
    assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize(("size", "pieces"), [(8, 5), (6, 2), (5, 1)])
def test_bank(size: int, pieces: int) -> None:
    bank = grid.draw_bank(size, size, pieces, boards=64, room=9, seed=3)
    walls = np.asarray(bank.walls)
    assert walls.shape == (64, size * size)
    assert len(np.unique(walls, axis=0)) > 32
    for board, cells, free in zip(
        walls, np.asarray(bank.cells), np.asarray(bank.free), strict=True
    ):
        assert 3 * pieces <= board.sum() <= 4 * pieces
        assert free == (~board).sum()
        assert sorted(cells[:free]) == np.flatnonzero(~board).tolist()
        assert reachable(board.reshape(size, size)) == free
    again = grid.draw_bank(size, size, pieces, boards=64, room=9, seed=3)
    np.testing.assert_array_equal(again.walls, walls)
    other = grid.draw_bank(size, size, pieces, boards=64, room=9, seed=4)
    assert (other.walls != walls).any()
    config = StagHuntConfig(size=size, obstacles=pieces, boards=64, hares=2, board_seed=4)
    np.testing.assert_array_equal(StagHunt(config).bank.walls, other.walls)


def reachable(board: np.ndarray) -> int:
    """Free cells that a flood from one of them fills."""
    todo = [tuple(np.argwhere(~board)[0])]
    seen = set(todo)
    while todo:
        row, column = todo.pop()
        for r, c in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            inside = 0 <= r < board.shape[0] and 0 <= c < board.shape[1]
            if inside and not board[r, c] and (r, c) not in seen:
                seen.add((r, c))
                todo.append((r, c))
    return len(seen)


def test_pieces_are_straight_or_bent_and_of_three_or_four_cells() -> None:
    bank = grid.draw_bank(7, 7, 1, boards=400, room=9, seed=0)
    shapes = set()
    for board in np.asarray(bank.walls).reshape(-1, 7, 7):
        cells = np.argwhere(board)
        shapes.add(tuple(map(tuple, (cells - cells.min(axis=0)).tolist())))
    # Straight: 2 of three cells and 2 of four, lying and standing. Bent: 4 corners of three
    # cells and 8 of four.
    assert len(shapes) == 16
    for shape in shapes:
        rows, columns = {r for r, _ in shape}, {c for _, c in shape}
        assert len(shape) in (3, 4)
        assert len(rows) + len(columns) == len(shape) + 1  # one line, or two that meet at an end


def test_connected_finds_a_cut() -> None:
    cut = np.zeros((4, 4), bool)
    cut[:, 1] = True
    assert not grid.connected(cut.ravel(), 4)
    cut[2, 1] = False
    assert grid.connected(cut.ravel(), 4)
    corner = np.zeros((3, 3), bool)  # cells that touch by a corner only are not connected
    corner[0, 1] = corner[1, 0] = True
    assert not grid.connected(corner.ravel(), 3)


def test_no_room_for_the_obstacles() -> None:
    with pytest.raises(ConfigError, match="found no connected board of 1x4 with 1 obstacle"):
        grid.draw_bank(1, 4, 1, boards=1, room=2, seed=0)
