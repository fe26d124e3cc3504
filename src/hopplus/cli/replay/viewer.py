"""Recorded episodes on a terminal, step by step, with keys."""

import time
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from hopplus.cli.replay.panel import line_cells, panel
from hopplus.cli.replay.screen import Screen
from hopplus.evaluation.replay.film import frames_of
from hopplus.evaluation.replay.replays import Plain
from hopplus.games.render import Frame, amount, printable, terminal

SPEEDS = (0.5, 1, 2, 4, 8, 16)  # steps a second
GAP, PANEL = 3, 36  # columns between board and panel, and of the panel at least
SAME = {"n": "right", "p": "left", "=": "+", "]": "e"}  # keys that do the same
MOST = 32  # rows or columns of a board
HELP = """\
right, n the next step          left, p   the one before
home, end     the first, the last      space     play or pause
+, -          faster, slower           0 to 7    look through that seat
tab           the next seat            e, ]      the next episode
[             the episode before       up, down  scroll
?             this help                q         quit
* is where the seat goes on the line that its search looked at most""".splitlines()


@dataclass(frozen=True)
class Place:
    """Where someone is looking."""

    episode: int = 0
    step: int = 0
    seat: int = 0
    playing: bool = False
    speed: int = 2  # by its place in SPEEDS
    scrolled: int = 0  # lines above the screen
    helping: bool = False


def pressed(place: Place, key: str, replay: Plain) -> Place | None:
    """Where a key leads; None for out."""
    episodes, seats = len(replay["episodes"]), len(replay["players"])
    last = len(replay["episodes"][place.episode]["steps"]) - 1
    again = place.step == last and not place.playing  # from the first moment on
    leads: dict[str, dict[str, Any]] = {
        "right": {"step": min(place.step + 1, last), "playing": False},
        "left": {"step": max(place.step - 1, 0), "playing": False},
        "home": {"step": 0, "playing": False},
        "end": {"step": last, "playing": False},
        " ": {"step": 0 if again else place.step, "playing": not place.playing},
        "+": {"speed": min(place.speed + 1, len(SPEEDS) - 1)},
        "-": {"speed": max(place.speed - 1, 0)},
        "\t": {"seat": (place.seat + 1) % seats},
        "e": {"episode": (place.episode + 1) % episodes, "step": 0, "playing": False},
        "[": {"episode": (place.episode - 1) % episodes, "step": 0, "playing": False},
        "up": {"scrolled": max(place.scrolled - 1, 0)},
        "down": {"scrolled": place.scrolled + 1},
        "?": {"helping": not place.helping},
        **{str(seat): {"seat": seat} for seat in range(min(seats, 10))},
    }
    return None if key == "q" else replace(place, **leads.get(SAME.get(key, key), {}))


def played_on(place: Place, replay: Plain) -> Place:
    """A moment later, while it plays; it pauses at the end."""
    last = len(replay["episodes"][place.episode]["steps"]) - 1
    step = min(place.step + 1, last)
    return replace(place, step=step, playing=step < last)


def shown(replay: Plain, place: Place, columns: int, *, colour: bool) -> list[str]:
    """The lines of a screen so wide: board and panel side by side, or one below the other."""
    episode = replay["episodes"][place.episode]
    frames = frames_of(replay, episode)
    marked = line_cells(episode, place.step, place.seat)
    head, *board = terminal(frames[place.step], colour=colour, marked=marked).rstrip().splitlines()
    lines = [head, _status(replay, place)]
    if place.helping:
        return [*lines, "", *HELP]
    thoughts = panel(replay, episode, place.step, place.seat)
    wide = max(_width(line) for frame in frames for line in _board(frame))  # the same at every step
    if columns < wide + GAP + PANEL:
        return [*lines, *board, "", *thoughts]
    pairs = zip_longest(board, ["", *thoughts], fillvalue="")
    return lines + [one + " " * (wide + GAP - _width(one)) + two for one, two in pairs]


def _status(replay: Plain, place: Place) -> str:
    episode = replay["episodes"][place.episode]
    doing = f"{SPEEDS[place.speed]:g} steps a second" if place.playing else "paused"
    surprise = episode["surprise"]
    told = "" if surprise is None else f", surprise {amount(surprise)}"
    number = f"episode {place.episode + 1} of {len(replay['episodes'])}{told}"
    return f"{doing} (? for keys, q to quit), {number}, {printable(replay['game'])}"


def _board(frame: Frame) -> list[str]:
    """Lines of a frame at their widest, below its first one."""
    everywhere = {(row, column) for row in range(MOST) for column in range(MOST)}
    return terminal(frame, colour=False, marked=everywhere).splitlines()[1:]


def _width(line: str) -> int:
    """Columns of a line, colours apart."""
    return cell_len(Text.from_ansi(line).plain)


def view(replay: Plain, screen: Screen, seat: int = 0, *, colour: bool) -> None:
    """Show recorded episodes until someone has seen enough."""
    place: Place | None = Place(seat=seat)
    with screen.taken():
        due = time.monotonic()
        while place is not None:
            columns, rows = screen.size
            lines = shown(replay, place, columns, colour=colour)
            place = replace(place, scrolled=max(0, min(place.scrolled, len(lines) - rows)))
            below = lines[place.scrolled :]
            screen.draw(below if len(below) <= rows else [*below[: rows - 1], "(down for more)"])
            wait = max(0.0, due - time.monotonic()) if place.playing else 0.5
            key = screen.key(min(wait, 0.5))  # in between the terminal may get another size
            if key is not None:
                was = place.playing
                place = pressed(place, key, replay)
                if place is not None and place.playing and not was:
                    due = time.monotonic() + 1 / SPEEDS[place.speed]
            elif place.playing and time.monotonic() >= due:
                place = played_on(place, replay)
                due = time.monotonic() + 1 / SPEEDS[place.speed]
