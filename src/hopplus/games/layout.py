"""Boards as text: the format that tests, documents and people share.

Lines are rows, cells are separated by spaces; a cell is `.` (free), `#` (obstacle) or any mixture
of seat numbers and of letters for things on the board:

    0  .  S
    #  1h .
    2  .  3S
"""

from collections.abc import Sequence
from typing import NamedTuple

from hopplus.config import ConfigError


class Board(NamedTuple):
    """A layout taken apart; cells are numbered row by row from 0."""

    obstacles: frozenset[int]
    seats: dict[int, int]  # seat -> cell
    things: dict[str, list[int]]  # letter -> cells in reading order


def read(text: str, rows: int, columns: int, seats: int, letters: str) -> Board:
    """Take a layout apart, or raise `ConfigError` with the place, counted from 1, and the fault."""
    lines = [line.split() for line in text.strip().splitlines() if line.strip()]
    if len(lines) != rows:
        raise ConfigError(f"the layout has {len(lines)} rows but the board has {rows}")
    seated: set[str] = set()
    for row, line in enumerate(lines, 1):
        if len(line) != columns:
            raise ConfigError(
                f"row {row} of the layout has {len(line)} cells but the board is {columns} wide"
            )
        for column, cell in enumerate(line, 1):
            for symbol in "" if cell in ("#", ".") else cell:
                where = f"{symbol!r} in row {row}, column {column} of the layout"
                if symbol in letters:
                    continue
                if not (symbol.isascii() and symbol.isdigit()):
                    raise ConfigError(
                        f"{where} is not one of . # {' '.join(letters)} or a seat number"
                    )
                if int(symbol) >= seats:
                    raise ConfigError(f"{where} is not a seat from 0 to {seats - 1}")
                if symbol in seated:
                    raise ConfigError(f"{where} appears twice")
                seated.add(symbol)
    board = taken_apart(text)
    if not board.seats or not board.things:
        raise ConfigError("the layout needs at least one seat and one thing to go after")
    return board._replace(things={letter: board.things.get(letter, []) for letter in letters})


def taken_apart(text: str) -> Board:
    """A layout as `write` gives it taken apart; all letters are things, and none may be there."""
    cells = text.split()
    board = Board(frozenset(place for place, cell in enumerate(cells) if cell == "#"), {}, {})
    for place, cell in enumerate(cells):
        for symbol in "" if cell in ("#", ".") else cell:
            if symbol.isdigit():
                board.seats[int(symbol)] = place
            else:
                board.things.setdefault(symbol, []).append(place)
    return board


def write(cells: Sequence[str], columns: int) -> str:
    """Lay out cell texts, given row by row, in columns that line up."""
    width = max(len(cell) for cell in cells)
    rows = [cells[i : i + columns] for i in range(0, len(cells), columns)]
    return "\n".join(" ".join(cell.ljust(width) for cell in row).rstrip() for row in rows)
