"""Plain-Python reference of `stag-hunt-v1`: an oracle written to be read beside RULES.md.

"Rule n" below is a numbered rule of RULES.md; "Clarified" marks a choice where it is silent.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

Cell = tuple[int, int]  # (row, column)

# Rule 3.
UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
MOVES: dict[int, Cell] = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}
HUNTS = {"stag": HUNT_STAG, "hare": HUNT_HARE}
SYMBOLS = {"stag": "S", "hare": "h"}


@dataclass(frozen=True)
class Rules:
    height: int = 4
    width: int = 4
    seats: int = 4
    stags: int = 1
    hares: int = 4
    stag_hunters: int = 2
    stag_reward: float = 10.0
    hare_reward: float = 1.0
    time_reward: float = 0.0
    strength: tuple[float, ...] = ()  # one per seat; empty: all equal
    horizon: int = 35
    grace: int | None = None
    sight: int | None = None


@dataclass(frozen=True)
class Prey:
    kind: str  # "stag" or "hare"
    row: int
    col: int
    alive: bool = True


@dataclass
class Board:
    obstacles: set[Cell]
    where: list[Cell | None]  # per seat; None: has left
    prey: list[Prey]
    steps: int  # steps played
    last_actions: list[int]  # per seat, as played; -1: none
    first_catch: int | None  # steps played at the end of the step of the first catch


@dataclass
class View:
    planes: list[list[list[float]]]  # [row][col][channel]
    legal: list[bool]
    time: float
    last_actions: list[int]  # cyclic, from the seat itself


@dataclass
class Result:
    rewards: list[float]
    left: list[bool]  # left in this very step
    done: bool
    illegal: list[bool]
    caught: dict[str, int]  # kind -> prey caught in this step


# Layouts


def read(rules: Rules, text: str) -> Board:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if len(lines) != rules.height or any(len(line) != rules.width for line in lines):
        raise ValueError(f"the layout is not {rules.height} x {rules.width} cells")
    obstacles: set[Cell] = set()
    where: list[Cell | None] = [None] * rules.seats  # a seat not written has left
    stags: list[Prey] = []
    hares: list[Prey] = []
    for row, line in enumerate(lines):
        for col, content in enumerate(line):
            if content == ".":
                continue
            if content == "#":
                obstacles.add((row, col))
                continue
            for symbol in content:
                if symbol == "S":
                    stags.append(Prey("stag", row, col))
                elif symbol == "h":
                    hares.append(Prey("hare", row, col))
                elif symbol in "01234567" and int(symbol) < rules.seats:
                    if where[int(symbol)] is not None:
                        raise ValueError(f"seat {symbol} is written twice")
                    where[int(symbol)] = (row, col)
                else:
                    raise ValueError(f"unknown symbol {symbol!r} in cell {content!r}")
    return Board(obstacles, where, stags + hares, 0, [-1] * rules.seats, None)


def write(rules: Rules, board: Board) -> str:
    grid = [
        [_cell_text(board, (row, col)) for col in range(rules.width)] for row in range(rules.height)
    ]
    widest = max(len(content) for line in grid for content in line)
    return "\n".join(" ".join(content.ljust(widest) for content in line).rstrip() for line in grid)


def _cell_text(board: Board, cell: Cell) -> str:
    if cell in board.obstacles:
        return "#"
    content = "".join(str(seat) for seat, place in enumerate(board.where) if place == cell)
    for kind in ("stag", "hare"):
        content += SYMBOLS[kind] * _count_living(board, kind, cell)
    return content or "."


def _count_living(board: Board, kind: str, cell: Cell) -> int:
    return sum(p.alive and p.kind == kind and (p.row, p.col) == cell for p in board.prey)


# What a seat may do, and what it sees


def legal(rules: Rules, board: Board, seat: int) -> list[bool]:
    """Rule 4."""
    answer = [False] * 7
    answer[STAY] = True
    place = board.where[seat]
    if place is None:  # has left: may only stay
        return answer
    for action in MOVES:
        row, col = _target(place, action)
        on_board = 0 <= row < rules.height and 0 <= col < rules.width
        answer[action] = on_board and (row, col) not in board.obstacles
    for kind, action in HUNTS.items():
        answer[action] = _count_living(board, kind, place) > 0
    return answer


def _target(place: Cell, action: int) -> Cell:
    """Rule 3: the cell a legal action leads to (its own for stay and hunts)."""
    drow, dcol = MOVES.get(action, (0, 0))
    return place[0] + drow, place[1] + dcol


def view(rules: Rules, board: Board, seat: int) -> View:
    """Rule 10."""
    cyclic = [(seat + offset) % rules.seats for offset in range(rules.seats)]
    planes = [[[0.0] * (rules.seats + 3) for _ in range(rules.width)] for _ in range(rules.height)]
    for channel, cell in _pieces(rules, board, cyclic):
        if _sees(rules, board, seat, cell):
            planes[cell[0]][cell[1]][channel] = 1.0
    last_actions = [board.last_actions[other] for other in cyclic]
    return View(planes, legal(rules, board, seat), board.steps / rules.horizon, last_actions)


def _pieces(rules: Rules, board: Board, cyclic: list[int]) -> list[tuple[int, Cell]]:
    """Rule 10, channel and cell of all there is: seats in cyclic order, obstacles, stags, hares."""
    seats = [(channel, board.where[other]) for channel, other in enumerate(cyclic)]
    pieces = [(channel, place) for channel, place in seats if place is not None]
    pieces += [(rules.seats, cell) for cell in board.obstacles]
    for offset, kind in enumerate(("stag", "hare"), 1):
        living = [p for p in board.prey if p.alive and p.kind == kind]
        pieces += [(rules.seats + offset, (p.row, p.col)) for p in living]
    return pieces


def _sees(rules: Rules, board: Board, seat: int, cell: Cell) -> bool:
    """Rule 10, last point. Clarified (a): with sight set, a seat that has left sees nothing."""
    if rules.sight is None:
        return True
    place = board.where[seat]
    if place is None:
        return False
    return max(abs(cell[0] - place[0]), abs(cell[1] - place[1])) <= rules.sight


# One step


def step(rules: Rules, board: Board, joint: Sequence[int]) -> tuple[Board, Result]:
    if len(joint) != rules.seats:
        raise ValueError(f"a joint action has {rules.seats} entries, not {len(joint)}")
    seats = range(rules.seats)
    present = [place is not None for place in board.where]  # at the beginning of the step

    # Rule 5: an illegal action counts as stay; so does any integer outside 0..6.
    illegal = [not _is_legal(rules, board, seat, joint[seat]) for seat in seats]
    played = [STAY if illegal[seat] else joint[seat] for seat in seats]

    # Rules 6, 7: hunts, on the positions before anyone moves. Clarified (d): each prey alone.
    prey: list[Prey] = []
    caught = {"stag": 0, "hare": 0}
    gains: list[list[float]] = [[] for _ in seats]
    left = [False] * rules.seats
    for animal in board.prey:
        hunters = _hunters(board, played, animal)
        if not animal.alive or len(hunters) < _needed(rules, animal.kind):
            prey.append(animal)
            continue
        prey.append(replace(animal, alive=False))  # rule 8: the prey leaves ...
        caught[animal.kind] += 1
        for hunter in hunters:
            left[hunter] = True  # ... and so do its hunters
            gains[hunter].append(_share(rules, animal.kind, hunter, hunters))

    # Rule 7: time_reward. Clarified (c): to those present at the beginning of the step.
    for seat in seats:
        if present[seat]:
            gains[seat].append(rules.time_reward)

    # Rule 6: the others move, all at once; a hunter in vain stays (clarified, e).
    where: list[Cell | None] = []
    for seat, place in enumerate(board.where):
        where.append(None if place is None or left[seat] else _target(place, played[seat]))

    steps = board.steps + 1
    first_catch = board.first_catch
    if first_catch is None and sum(caught.values()) > 0:
        first_catch = steps
    # Rule 10. Clarified (f): -1 for a seat not present at the beginning of the step.
    last_actions = [played[seat] if present[seat] else -1 for seat in seats]

    after = Board(set(board.obstacles), where, prey, steps, last_actions, first_catch)
    # fsum does not depend on the order of its terms: rule 11 holds exactly.
    rewards = [math.fsum(gains[seat]) for seat in seats]
    return after, Result(rewards, left, _ended(rules, after), illegal, caught)


def _is_legal(rules: Rules, board: Board, seat: int, action: int) -> bool:
    return 0 <= action <= 6 and legal(rules, board, seat)[action]


def _hunters(board: Board, played: list[int], animal: Prey) -> list[int]:
    """Rule 6: the seats on the prey's cell that hunt its kind."""
    cell, hunt = (animal.row, animal.col), HUNTS[animal.kind]
    return [s for s, place in enumerate(board.where) if place == cell and played[s] == hunt]


def _needed(rules: Rules, kind: str) -> int:
    """Rule 6: how many hunters catch a prey."""
    return rules.stag_hunters if kind == "stag" else 1


def _share(rules: Rules, kind: str, hunter: int, hunters: list[int]) -> float:
    """Rule 7: one hunter's part of a catch, in proportion to strength."""
    worth = rules.stag_reward if kind == "stag" else rules.hare_reward
    strength = rules.strength or (1.0,) * rules.seats
    return worth * strength[hunter] / math.fsum(strength[other] for other in hunters)


def _ended(rules: Rules, board: Board) -> bool:
    """Rule 9. Clarified (b): grace counts from the end of the step of the first catch."""
    if board.steps >= rules.horizon:
        return True
    if all(place is None for place in board.where):
        return True
    if not any(animal.alive for animal in board.prey):
        return True
    if rules.grace is None or board.first_catch is None:
        return False
    return board.steps >= board.first_catch + rules.grace
