"""What one seat thinks at one step of a recorded episode, as lines of text."""

from collections.abc import Iterator
from typing import Any

from hopplus.evaluation.replay.replays import Plain
from hopplus.games.render import printable

BAR = 12  # letters of a whole bar
UNLIKELY = 0.1  # what was given less is pointed out when it happens
MOVES = {(-1, 0): "up", (1, 0): "down", (0, -1): "left", (0, 1): "right", (0, 0): "stays"}


def panel(replay: Plain, episode: Plain, step: int, seat: int) -> list[str]:
    """Lines about a seat: what it is about to do and why, and what it expects of the others."""
    moment = episode["steps"][step]
    lines = [f"seat {seat}, {printable(episode['players'][seat])}"]
    look = moment["looks"][seat]
    if look is None:
        gone = moment["seats"][seat] is None
        return [*lines, "has left the board" if gone else "the episode is over"]
    value = "no value" if look["value"] is None else f"value {look['value']:.2f}"
    lines += [f"{value}, about to {_named(replay, look['action'])}", ""]
    lines += [*_policy(replay, look), "", *_others(replay, moment, look, seat)]
    if look["line"]:
        lines += ["", "most visited line:", *_line(moment, look["line"])]
    return lines


def line_cells(episode: Plain, step: int, seat: int) -> set[tuple[int, int]]:
    """Where the seat goes on the line that its search looked at most."""
    look = episode["steps"][step]["looks"][seat]
    line = (look or {}).get("line") or []
    return {(cell[0], cell[1]) for cell in (after["seats"][seat] for after in line) if cell}


def _named(replay: Plain, action: int) -> str:
    return str(replay["actions"][action])


def _policy(replay: Plain, look: Plain) -> Iterator[str]:
    """A line for each action, with its probability and the share of the search's looks."""
    wide = max(map(len, replay["actions"]))
    searched = look["visits"] is not None
    yield f"  {'':<{wide}}  policy{' ' * (BAR + 1)}looks" if searched else f"  {'':<{wide}}  policy"
    for action, name in enumerate(replay["actions"]):
        mark = ">" if action == look["action"] else " "
        if not look["legal"][action]:
            yield f"{mark} {name:<{wide}}  -"
            continue
        chance = look["policy"][action]
        bar = "#" * round(BAR * chance)
        looks = f"  {look['visits'][action]:>4.0%}" if searched else ""
        yield f"{mark} {name:<{wide}}  {bar:<{BAR}} {chance:>4.0%}{looks}"


def _others(replay: Plain, moment: Plain, look: Plain, seat: int) -> Iterator[str]:
    """Lines about each other: what it does, what was expected of it, and what it is after."""
    others = [other for other in range(len(moment["seats"])) if other != seat]
    for place, other in enumerate(others):
        if moment["seats"][other] is None:
            yield f"{other} has left the board"
            continue
        yield f"{other} {_expected(replay, moment['acts'][other], look['predicted'], place)}"
        about, after = (look[name] and look[name][place] for name in ("about", "after"))
        if about and replay["goals"] == "belief" and len(about) > 1:
            yield f"  is after {_kinds(replay, about)}"
        elif after:
            yield f"  goes for {_kinds(replay, after['kinds'])}{_where(after['cell'])}"
        elif about and replay["goals"] != "belief":
            yield "  goal " + " ".join(f"{number:.1f}" for number in about)


def _expected(replay: Plain, act: int, predicted: Any, place: int) -> str:
    does = f"does {_named(replay, act)}"
    if predicted is None or predicted[place] is None:
        return does
    chances = predicted[place]
    best = max(range(len(chances)), key=chances.__getitem__)
    instead = "" if best == act else f"; {_named(replay, best)} {chances[best]:.0%}"
    unlikely = " (unexpected)" if chances[act] < UNLIKELY else ""
    return f"{does}, given {chances[act]:.0%}{instead}{unlikely}"


def _kinds(replay: Plain, shares: list[float | None]) -> str:
    """How likely each kind of thing is, or none of them; of some there may be none."""
    pairs = zip([*replay["kinds"], "none"], shares, strict=False)
    return ", ".join(f"{kind} {share:.0%}" for kind, share in pairs if share is not None)


def _where(cell: list[int] | None) -> str:
    """The thing that is likeliest, where there is one."""
    return f" (row {cell[0] + 1}, column {cell[1] + 1})" if cell else ""


def _line(moment: Plain, line: list[Plain]) -> Iterator[str]:
    """For each seat still there, its moves on a line."""
    for seat, cell in enumerate(moment["seats"]):
        moves = []
        for after in line:
            there = after["seats"][seat]
            if cell is None:
                break
            moves.append(_move(cell, there))
            cell = there
        if moves:
            yield f"  {seat} {', '.join(moves)}"


def _move(cell: list[int], there: list[int] | None) -> str:
    if there is None:
        return "leaves"
    return MOVES.get((there[0] - cell[0], there[1] - cell[1]), "jumps")  # a learned world may
