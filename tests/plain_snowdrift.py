"""Plain-Python reference of `snowdrift-v1`: an oracle written to be read beside RULES.md.

"Rule n" below is a numbered rule of RULES.md; "Clarified" marks a choice where it is silent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Cell = tuple[int, int]  # (row, column)

# Rule 3.
UP, DOWN, LEFT, RIGHT, STAY, CLEAR = range(6)
MOVES: dict[int, Cell] = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}


@dataclass(frozen=True)
class Rules:
    height: int = 8
    width: int = 8
    seats: int = 4
    drifts: int = 6
    reward: float = 6.0
    cost: float = 4.0
    horizon: int = 50


@dataclass
class Board:
    obstacles: set[Cell]
    where: list[Cell]  # per seat; rule 8: nobody leaves
    drifts: list[Cell]  # those not cleared yet
    steps: int  # steps played
    last_actions: list[int]  # per seat, as played; -1: none


@dataclass
class View:
    planes: list[list[list[float]]]  # [row][col][channel]
    legal: list[bool]
    time: float
    last_actions: list[int]  # cyclic, from the seat itself


@dataclass
class Result:
    rewards: list[float]
    done: bool
    illegal: list[bool]
    cleared: list[Cell]  # drifts cleared in this step
    clearers: list[bool]  # the seats that cleared one


# Layouts


def read(rules: Rules, text: str) -> Board:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) != rules.height or any(len(line) != rules.width for line in lines):
        raise ValueError(f"the layout is not {rules.height} x {rules.width} cells")
    obstacles: set[Cell] = set()
    where: dict[int, Cell] = {}
    drifts: list[Cell] = []
    for row, line in enumerate(lines):
        for col, content in enumerate(line):
            if content == ".":
                continue
            if content == "#":
                obstacles.add((row, col))
                continue
            for symbol in content:
                if symbol == "D":
                    drifts.append((row, col))
                elif symbol in "01234567" and int(symbol) < rules.seats:
                    if int(symbol) in where:
                        raise ValueError(f"seat {symbol} is written twice")
                    where[int(symbol)] = (row, col)
                else:
                    raise ValueError(f"unknown symbol {symbol!r} in cell {content!r}")
    if len(where) != rules.seats or len(drifts) > rules.drifts or len(set(drifts)) < len(drifts):
        raise ValueError("a seat is missing, or there are too many drifts, or two on a cell")
    places = [where[seat] for seat in range(rules.seats)]
    return Board(obstacles, places, drifts, 0, [-1] * rules.seats)


def write(rules: Rules, board: Board) -> str:
    cols = range(rules.width)
    grid = [[_cell_text(board, (row, col)) for col in cols] for row in range(rules.height)]
    widest = max(len(content) for line in grid for content in line)
    return "\n".join(" ".join(content.ljust(widest) for content in line).rstrip() for line in grid)


def _cell_text(board: Board, cell: Cell) -> str:
    if cell in board.obstacles:
        return "#"
    content = "".join(str(seat) for seat, place in enumerate(board.where) if place == cell)
    return content + "D" * (cell in board.drifts) or "."


# What a seat may do, and what it sees


def legal(rules: Rules, board: Board, seat: int) -> list[bool]:
    """Rule 4: moves to free cells of the board, stay, and clear on a drift."""
    place = board.where[seat]
    answer = [_is_free(rules, board, _target(place, action)) for action in MOVES]
    return [*answer, True, place in board.drifts]


def _is_free(rules: Rules, board: Board, cell: Cell) -> bool:
    row, col = cell
    return 0 <= row < rules.height and 0 <= col < rules.width and cell not in board.obstacles


def _target(place: Cell, action: int) -> Cell:
    """Rule 3: the cell a legal action leads to (its own for stay and clear)."""
    drow, dcol = MOVES.get(action, (0, 0))
    return place[0] + drow, place[1] + dcol


def view(rules: Rules, board: Board, seat: int) -> View:
    """Rule 10: the planes are the seats, ego first, then obstacles, then drifts."""
    cyclic = [(seat + offset) % rules.seats for offset in range(rules.seats)]
    planes = [[[0.0] * (rules.seats + 2) for _ in range(rules.width)] for _ in range(rules.height)]
    for channel, other in enumerate(cyclic):
        row, col = board.where[other]
        planes[row][col][channel] = 1.0
    for row, col in board.obstacles:
        planes[row][col][rules.seats] = 1.0
    for row, col in board.drifts:
        planes[row][col][rules.seats + 1] = 1.0
    last_actions = [board.last_actions[other] for other in cyclic]
    return View(planes, legal(rules, board, seat), board.steps / rules.horizon, last_actions)


# One step


def step(rules: Rules, board: Board, joint: Sequence[int]) -> tuple[Board, Result]:
    if len(joint) != rules.seats:
        raise ValueError(f"a joint action has {rules.seats} entries, not {len(joint)}")
    seats = range(rules.seats)

    # Rule 5: an illegal action counts as stay; clarified: so does any integer outside 0..5.
    illegal = [
        not (0 <= joint[seat] <= 5 and legal(rules, board, seat)[joint[seat]]) for seat in seats
    ]
    played = [STAY if illegal[seat] else joint[seat] for seat in seats]

    # Rules 6, 7: clearing, on the positions before anyone moves.
    cleared: list[Cell] = []
    gains: list[list[float]] = [[] for _ in seats]
    clearers = [played[seat] == CLEAR for seat in seats]
    for drift in board.drifts:
        here = [seat for seat in seats if clearers[seat] and board.where[seat] == drift]
        if not here:
            continue
        cleared.append(drift)
        for seat in seats:
            gains[seat].append(rules.reward)
        for seat in here:
            gains[seat].append(-rules.cost / len(here))

    where = [_target(place, played[seat]) for seat, place in enumerate(board.where)]
    drifts = [drift for drift in board.drifts if drift not in cleared]  # rule 8: for good
    after = Board(set(board.obstacles), where, drifts, board.steps + 1, played)
    # Rule 9.
    done = not drifts or after.steps >= rules.horizon
    # fsum does not depend on the order of its terms: rule 11 holds exactly.
    return after, Result([math.fsum(g) for g in gains], done, illegal, cleared, clearers)
