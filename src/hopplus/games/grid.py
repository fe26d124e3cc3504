"""What grid games share: moves, distinct places drawn at random, and a bank of boards.

Cells are numbered row by row: cell = row * columns + column.
"""

import itertools
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError
from hopplus.lookup import at

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1), (0, 0))  # row, column; the last is stay
STAY = 4
MOVE_NAMES = ("up", "down", "left", "right", "stay")

PIECES = ("###", "##/#.", "####", "###/#..")  # straight or bent once, of three or four cells


class Bank(NamedTuple):
    """Boards with obstacles; every board's free cells are connected."""

    walls: Any  # [M, H*W] bool
    cells: Any  # [M, H*W] int32, the free cells first, in order
    free: Any  # [M] int32, how many cells are free

    @property
    def boards(self) -> int:
        return len(self.free)


@cache
def leads_to(cells: int, columns: int) -> np.ndarray:
    """[cells, 5] int32 where the moves from each cell of an empty board lead; the cell itself when
    that is off the board."""
    row, column = np.divmod(np.arange(cells)[:, None], columns)
    down, right = np.array(MOVES).T
    rows, columns_ = row + down, column + right
    there = (rows >= 0) & (rows < cells // columns) & (columns_ >= 0) & (columns_ < columns)
    return np.where(there, rows * columns + columns_, np.arange(cells)[:, None]).astype(np.int32)


def moved(cell: jax.Array, action: jax.Array, walls: jax.Array, columns: int) -> jax.Array:
    """[] int32 where a move leads: the cell itself when off the board, into a wall, or no move."""
    move = jnp.where((action >= 0) & (action < STAY), action, STAY)
    target = at(jnp.asarray(leads_to(len(walls), columns)), (cell, move))
    return jnp.where(at(walls, target), cell, target)


def open_moves(cell: jax.Array, walls: jax.Array, columns: int) -> jax.Array:
    """[5] bool, the moves from a cell that stay on the board and off the walls; stay always is."""
    targets = at(jnp.asarray(leads_to(len(walls), columns)[:, :STAY]), cell)
    return jnp.append((targets != cell) & ~at(walls, targets), True)


def turned(bits: jax.Array, seat: jax.Array | int, seats: int) -> jax.Array:
    """Bits of all seats as one of them counts them: its own first, then the others cyclically."""
    return (bits >> seat | bits << (seats - seat)) & ((1 << seats) - 1)


def distinct_places(key: jax.Array, cells: jax.Array, free: jax.Array, count: int) -> jax.Array:
    """[count] int32, distinct ones of the first `free` cells, every arrangement equally likely."""
    return cells[distinct_ranks(jax.random.uniform(key, (count,)), free)]


def distinct_free(numbers: jax.Array, free: jax.Array) -> jax.Array:
    """[count] int32, distinct ones of the cells that are `free` [H*W] bool, every arrangement
    equally likely for uniform numbers [count]; anything where they are too few.

    Cells are looked for by halves in words of bits: running sums over all cells cost six times as
    much as that.
    """
    bits = jnp.pad(free, (0, -len(free) % 32)).reshape(-1, 32).astype(jnp.uint32)
    words = (bits << jnp.arange(32, dtype=jnp.uint32)).sum(axis=1, dtype=jnp.uint32)  # [W]
    held = jax.lax.population_count(words).astype(jnp.int32)
    ranks = distinct_ranks(numbers, held.sum())
    sums = jnp.cumsum(held)
    word = (sums <= ranks[:, None]).sum(axis=1)
    ranks, bits = ranks - at(sums - held, word), at(words, word)
    cells = 32 * word
    for half in (16, 8, 4, 2, 1):
        lower = jax.lax.population_count(bits & ((1 << half) - 1)).astype(jnp.int32)
        later = ranks >= lower
        ranks = jnp.where(later, ranks - lower, ranks)
        bits = jnp.where(later, bits >> half, bits)
        cells = cells + jnp.where(later, half, 0)
    return cells


def distinct_ranks(numbers: jax.Array, free: jax.Array) -> jax.Array:
    """[count] int32, distinct and below `free`, every arrangement equally likely for uniform
    numbers [count] from 0 to below 1.

    They are the arrangement's Lehmer code (the i-th digit is below free - i), which is decoded: no
    sorting, no loop over cells.
    """
    count = len(numbers)
    order = jnp.arange(count)
    choices = (free - order).astype(jnp.float32)
    digits = jnp.floor(numbers * choices).astype(jnp.int32)
    ranks = digits  # among the cells not taken by earlier pieces; made ranks among all, below
    for earlier in reversed(range(count)):
        ranks = ranks + ((order > earlier) & (ranks >= digits[earlier]))
    return ranks


def parted(numbers: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """For uniform numbers from 0 to below 1, as many int32 below a small `count`, all alike, and
    numbers that are uniform again: every one that is drawn costs a small board dearly."""
    scaled = numbers * count
    whole = jnp.floor(scaled)
    return whole.astype(jnp.int32), scaled - whole


def draw_bank(
    rows: int, columns: int, pieces: int, boards: int, room: int, seed: int, tries: int = 5000
) -> Bank:
    """Draw boards of `pieces` obstacle pieces with at least `room` free cells, all connected.

    Each piece takes a place drawn uniformly from those where it covers no other; a board that is
    not connected or too full is drawn anew.
    """
    if pieces == 0:
        walls = np.zeros((1, rows * columns), bool)
    else:
        places = _piece_places(rows, columns)
        rng = np.random.default_rng(seed)
        walls = np.zeros((boards, rows * columns), bool)
        for board in range(boards):
            for _ in range(tries):
                drawn = _drop(places, pieces, rng)
                if drawn is not None and connected(drawn, columns) and (~drawn).sum() >= room:
                    walls[board] = drawn
                    break
            else:
                raise ConfigError(
                    f"{tries} tries found no connected board of {rows}x{columns} with {pieces}"
                    f" obstacle pieces and {room} free cells: take fewer pieces or a larger board"
                )
    order = np.argsort(walls, axis=1, kind="stable")  # free cells first, in order
    free = (~walls).sum(axis=1)
    return Bank(walls=walls, cells=order.astype(np.int32), free=free.astype(np.int32))


def connected(walls: np.ndarray, columns: int) -> bool:
    """Whether one can walk from every free cell to every other; walls is [H*W] bool."""
    free = set(np.flatnonzero(~walls).tolist())
    reached: set[int] = set()
    edge = {min(free)} if free else set()
    while edge:
        reached |= edge
        edge = {n for cell in edge for n in _neighbours(cell, columns) if n in free} - reached
    return reached == free


def _neighbours(cell: int, columns: int) -> list[int]:
    column = cell % columns
    sideways = [cell - 1] * (column > 0) + [cell + 1] * (column < columns - 1)
    return [cell - columns, cell + columns, *sideways]


def _piece_places(rows: int, columns: int) -> np.ndarray:
    """[P, H*W] bool, every way to lay one piece on an empty board, turned and mirrored."""
    shapes = set()
    for piece in PIECES:
        grid = np.array([[c == "#" for c in line] for line in piece.split("/")])
        for turns, flip in itertools.product(range(4), (False, True)):
            shape = np.rot90(np.fliplr(grid) if flip else grid, turns)
            shapes.add((shape.shape, shape.tobytes()))
    places = []
    for (height, width), content in sorted(shapes):
        shape = np.frombuffer(content, bool).reshape(height, width)
        for row, column in itertools.product(range(rows - height + 1), range(columns - width + 1)):
            board = np.zeros((rows, columns), bool)
            board[row : row + height, column : column + width] = shape
            places.append(board.ravel())
    return np.array(places).reshape(-1, rows * columns)


def _drop(places: np.ndarray, pieces: int, rng: np.random.Generator) -> np.ndarray | None:
    walls = np.zeros(places.shape[1], bool)
    for _ in range(pieces):
        fitting = np.flatnonzero(~(places & walls).any(axis=1))
        if fitting.size == 0:
            return None
        walls = walls | places[rng.choice(fitting)]
    return walls
