"""What a seat is predicted to go for: goals in a form that people can read.

Whatever a player makes of another (an inferred goal, a memory, traits) is numbers; what they mean
to it shows in the actions that its model of the other predicts with them. These are held against
what scripted players would do there: one for each kind of thing, which goes for the nearest, and
one for each thing on the board.
"""

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hopplus.games.game import Game, kinds_seen
from hopplus.games.grid import MOVES, STAY

STEPS = MOVES[:STAY]
LIKELY = 0.5  # what a thing must be beyond, to be named as the one
Cell = tuple[int, int]


@lru_cache(maxsize=4096)
def distances(shape: Cell, obstacles: frozenset[Cell], to: Cell) -> dict[Cell, int]:
    """Steps to a cell from every other from which it can be reached."""
    found, waiting = {to: 0}, deque([to])
    while waiting:
        row, column = waiting.popleft()
        for down, right in STEPS:
            cell = (row + down, column + right)
            inside = 0 <= cell[0] < shape[0] and 0 <= cell[1] < shape[1]
            if inside and cell not in obstacles and cell not in found:
                found[cell] = found[row, column] + 1
                waiting.append(cell)
    return found


def predicted_targets(
    game: Game,
    board: dict[str, Any],
    seat: int,
    predicted: Sequence[float],
    legal: Sequence[bool],
) -> dict[str, Any] | None:
    """What the predicted actions [A] of a seat say that it is after on a board, where so [A] may be
    done.

    `kinds` [K], as the seat calls them: how likely it does next what leads to the nearest thing of
    that kind, None where there is none. `cell` is where the likeliest thing lies, the nearest of
    these, and None where none is likelier than not; `share` is how likely. All beyond chance, as
    Cohen's kappa has it: 0 for whom every legal action is alike, and 1 for certain.
    """
    here = board["seats"][seat]
    if here is None:
        return None
    start: Cell = (here[0], here[1])
    walls = frozenset((row, column) for row, column in board["obstacles"])
    called, targets = kinds_seen(game, seat), list(game.targets.values())

    def likely(acts: set[int]) -> float:
        chance = sum(legal[act] for act in acts) / sum(legal)
        found = sum(predicted[act] for act in acts)
        return round(max(0.0, float(found - chance) / (1 - chance)), 4) if chance < 1 else 0.0

    nearest: dict[int, tuple[int, set[int]]] = {}  # by kind: steps to it, and what leads there
    best: tuple[float, int, list[int]] = (LIKELY, 0, [])
    for thing in board["targets"]:
        steps = distances(game.shape[:2], walls, tuple(thing["cell"]))
        if start not in steps:
            continue
        acts = _leading(steps, start, targets[thing["kind"]].action)
        kind, far = int(called[thing["kind"]]), steps[start]
        least, same = nearest.get(kind, (far, set()))
        if far <= least:
            nearest[kind] = far, acts | (same if far == least else set())
        if (share := likely(acts)) > LIKELY and (share, -far) > best[:2]:
            best = share, -far, thing["cell"]
    return {
        "kinds": [likely(nearest[k][1]) if k in nearest else None for k in range(len(targets))],
        "cell": best[2] or None,
        "share": best[0] if best[2] else None,
    }


def _leading(steps: dict[Cell, int], start: Cell, takes: int | None) -> set[int]:
    """The actions that begin a shortest way; on the cell, what takes it, or waiting there."""
    if steps[start] == 0:
        return {STAY} if takes is None else {STAY, takes}
    row, column = start
    return {
        action
        for action, (down, right) in enumerate(STEPS)
        if steps.get((row + down, column + right)) == steps[start] - 1
    }
