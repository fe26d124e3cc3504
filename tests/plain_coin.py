"""Plain-Python reference of `coin-v1`: an oracle written to be read beside RULES.md.

"Rule n" below is a numbered rule of RULES.md; "Clarified" marks a choice where it is silent.
Chance is told, not drawn: `step` takes the coins that come back, and refuses what rule 8 forbids.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Cell = tuple[int, int]  # (row, column)

# Rule 3.
STAY = 4
SHIFTS: list[Cell] = [(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)]  # up, down, left, right, stay


@dataclass(frozen=True)
class Rules:
    height: int = 5
    width: int = 5
    seats: int = 2
    coins: int = 2
    reward: float = 1.0
    harm: float = 2.0
    horizon: int = 40


@dataclass(frozen=True)
class Coin:
    cell: Cell
    owner: int


@dataclass
class Board:
    obstacles: set[Cell]
    where: list[Cell]  # per seat; rule 9: nobody leaves
    coins: list[Coin]  # by number
    steps: int
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
    takers: list[list[int]]  # of each coin


# Layouts


def read(rules: Rules, text: str) -> Board:
    """Clarified: coins are numbered by owner, those of an owner in reading order."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    if [len(row) for row in rows] != [rules.width] * rules.height:
        raise ValueError(f"the layout is not {rules.height} x {rules.width} cells")
    cells = {(r, c): content for r, row in enumerate(rows) for c, content in enumerate(row)}
    obstacles = {cell for cell, content in cells.items() if content == "#"}
    pieces = [(s, cell) for cell, content in cells.items() if content not in ".#" for s in content]
    seats, owners = "0123"[: rules.seats], "abcd"[: rules.seats]
    coins = sorted((owners.index(s), cell) for s, cell in pieces if s in owners)
    where = {s: cell for s, cell in pieces if s in seats}
    if len(pieces) != rules.seats + rules.coins or len(coins) != rules.coins:
        raise ValueError("not every seat and every coin is written, once")
    if len(where) != rules.seats or len({cell for _, cell in coins}) != rules.coins:
        raise ValueError("a seat is missing, or two coins share a cell")
    lying = [Coin(cell, owner) for owner, cell in coins]
    return Board(obstacles, [where[seat] for seat in seats], lying, 0, [-1] * rules.seats)


def write(rules: Rules, board: Board) -> str:
    contents = dict.fromkeys(board.obstacles, "#")
    for seat, place in enumerate(board.where):
        contents[place] = contents.get(place, "") + str(seat)
    for coin in board.coins:
        contents[coin.cell] = contents.get(coin.cell, "") + "abcd"[coin.owner]
    widest = max(map(len, contents.values()))
    lines = [
        " ".join(contents.get((row, col), ".").ljust(widest) for col in range(rules.width))
        for row in range(rules.height)
    ]
    return "\n".join(line.rstrip() for line in lines)


# What a seat may do, and what it sees


def open_cells(rules: Rules, board: Board) -> set[Cell]:
    """Those on the board that are no obstacle."""
    everywhere = {(row, col) for row in range(rules.height) for col in range(rules.width)}
    return everywhere - board.obstacles


def legal(rules: Rules, board: Board, seat: int) -> list[bool]:
    """Rule 4. Stay leads to the seat's own cell, which is open."""
    row, col = board.where[seat]
    cells = open_cells(rules, board)
    return [(row + drow, col + dcol) in cells for drow, dcol in SHIFTS]


def view(rules: Rules, board: Board, seat: int) -> View:
    """Rule 10: the planes are seats, ego first, obstacles, and coins by owner, own first."""
    count = rules.seats
    planes = [[[0.0] * (2 * count + 1) for _ in range(rules.width)] for _ in range(rules.height)]
    pieces = [(cell, count) for cell in board.obstacles]
    pieces += [(place, (other - seat) % count) for other, place in enumerate(board.where)]
    pieces += [(coin.cell, count + 1 + (coin.owner - seat) % count) for coin in board.coins]
    for (row, col), channel in pieces:
        planes[row][col][channel] = 1.0
    last_actions = board.last_actions[seat:] + board.last_actions[:seat]
    return View(planes, legal(rules, board, seat), board.steps / rules.horizon, last_actions)


# One step


def step(
    rules: Rules, board: Board, joint: Sequence[int], new_coins: dict[int, Coin]
) -> tuple[Board, Result]:
    """`new_coins`: for the number of each coin taken in this step, what it comes back as."""
    illegal, played, where = moved(rules, board, joint)
    takers = takers_of(board, where)

    # Rule 7.
    gains: list[list[float]] = [[] for _ in joint]
    for coin, here in zip(board.coins, takers, strict=True):
        for seat in here:
            gains[seat].append(rules.reward / len(here))
            if seat != coin.owner:
                gains[coin.owner].append(-rules.harm / len(here))

    after = Board(board.obstacles, where, board.coins, board.steps + 1, played)
    taken = [number for number, here in enumerate(takers) if here]
    after.coins = _come_back(rules, after, taken, new_coins)
    done = after.steps >= rules.horizon  # rule 9
    # fsum does not depend on the order of its terms: rule 11 holds exactly.
    return after, Result([math.fsum(g) for g in gains], done, illegal, takers)


def moved(
    rules: Rules, board: Board, joint: Sequence[int]
) -> tuple[list[bool], list[int], list[Cell]]:
    """Whose action is illegal, what everyone plays, and where that leads."""
    if len(joint) != rules.seats:
        raise ValueError(f"a joint action has {rules.seats} entries, not {len(joint)}")
    illegal, played, where = [], [], []
    for seat, action in enumerate(joint):
        # Rule 5; clarified: any integer outside 0..4 is illegal, too.
        allowed = 0 <= action <= 4 and legal(rules, board, seat)[action]
        illegal.append(not allowed)
        played.append(action if allowed else STAY)
        (row, col), (drow, dcol) = board.where[seat], SHIFTS[played[seat]]
        where.append((row + drow, col + dcol))
    return illegal, played, where


def takers_of(board: Board, where: list[Cell]) -> list[list[int]]:
    """Rule 6: everyone has moved; each coin is taken by all who stand on it now."""
    return [[s for s, place in enumerate(where) if place == coin.cell] for coin in board.coins]


def _come_back(
    rules: Rules, board: Board, taken: list[int], new_coins: dict[int, Coin]
) -> list[Coin]:
    """Rule 8, one after the other."""
    if sorted(new_coins) != taken:
        raise ValueError(f"the coins {taken} are taken, but {sorted(new_coins)} come back")
    lying = {n: coin for n, coin in enumerate(board.coins) if n not in taken}
    for number in taken:
        coin = new_coins[number]
        allowed = open_cells(rules, board) - set(board.where) - {c.cell for c in lying.values()}
        if coin.cell not in allowed:
            raise ValueError(f"coin {number} may not come back on {coin.cell}")
        if not 0 <= coin.owner < rules.seats:
            raise ValueError(f"coin {number} may not belong to {coin.owner}")
        lying[number] = coin
    return [lying[number] for number in range(rules.coins)]
