"""Boards for people, as text.

Works on layout text alone, so any game that can write its board can be shown; pictures of the same
frames are drawn by `hopplus.games.picture`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

SEATS = "01234567"
# Okabe-Ito, ordered so that the first few seats are far apart.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#000000")
WHITE, NIGHT, ROCK = "#ffffff", "#22242a", "#5a606a"
BACKS = dict(zip(SEATS + "#", (*PALETTE, ROCK), strict=True))
ANSI = {"S": "1;38;2;205;120;55", "h": "1;38;2;165;170;185", "D": "1;38;2;90;170;240", ".": "2"}


@dataclass(frozen=True)
class Frame:
    """One step of an episode."""

    layout: str  # what the board looks like
    step: int  # steps played
    horizon: int
    returns: tuple[float, ...]  # [N] return of each seat so far
    players: tuple[str, ...]  # [N] who sits there, e.g. 'noisy-hare:0.1'
    doing: tuple[str, ...] = ()  # [N] last action in words, '' when none
    note: str = ""  # e.g. 'episode 3'
    drawings: Mapping[str, str] = field(default_factory=dict)  # of things, by letter; see sprites


def terminal(frame: Frame, *, colour: bool, marked: Collection[tuple[int, int]] = ()) -> str:
    """Text for a terminal: a header line with the returns, the board, one line per seat. Cells that
    are `marked`, by row and column, have a * behind what is in them."""
    cells, doing = read_frame(frame)
    head = [printable(frame.note)] * bool(frame.note)
    head += [f"step {frame.step:>{len(str(frame.horizon))}}/{frame.horizon}", "returns"]
    head += [f"{_dye(str(i), colour)}:{amount(value)}" for i, value in enumerate(frame.returns)]
    lines, wide = ["  ".join(head), ""], max(len(cell) for row in cells for cell in row)
    for row, texts in enumerate(cells):
        # Padding is added apart: escapes have no width on screen but would count in a format.
        marks = ["*" if (row, column) in marked else "" for column in range(len(texts))]
        room = wide + bool(marked)
        padded = [
            _dye(cell, colour) + mark + " " * (room - len(cell + mark))
            for cell, mark in zip(texts, marks, strict=True)
        ]
        lines.append(("  " + "  ".join(padded)).rstrip())
    players = [printable(player) for player in frame.players]
    lines, name = [*lines, ""], max(map(len, players), default=0)
    for seat, player in enumerate(players):
        lines.append(f"  {_dye(str(seat), colour)}  {player:<{name}}  {doing[seat]}".rstrip())
    return "\n".join(lines) + "\n"


def read_frame(frame: Frame) -> tuple[list[list[str]], list[str]]:
    """Cells [rows][columns] and what each seat is doing [N]; checked."""
    cells = [line.split() for line in frame.layout.splitlines() if line.strip()]
    if len({len(row) for row in cells}) != 1:
        raise ValueError(f"Layout rows need equally many cells, not {[len(row) for row in cells]}.")
    seats, doing = SEATS[: len(frame.players)], frame.doing or ("",) * len(frame.players)
    if not len(frame.returns) == len(doing) == len(frame.players) == len(seats):
        raise ValueError("Players, returns and doing need one entry per seat, for 8 seats at most.")
    for text in (cell for row in cells for cell in row if cell not in (".", "#")):
        for symbol in text:
            if symbol not in seats and not symbol.isalpha():
                raise ValueError(f"Unknown symbol {symbol!r} in layout cell {text!r}.")
            if symbol in seats and frame.layout.count(symbol) > 1:
                raise ValueError(f"Seat {symbol} stands in the layout more than once.")
    gone = "left the board"  # more than 'left', which is also a move
    return cells, [doing[int(seat)] if seat in frame.layout else gone for seat in seats]


def printable(text: str) -> str:
    """The text without characters that would steer a terminal: names may come from anywhere."""
    return "".join(symbol if symbol.isprintable() else "?" for symbol in text)


def amount(value: float) -> str:
    return f"{round(value, 2) + 0:g}"  # + 0 turns -0 into 0


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of `#rrggbb`."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def readable_on(colour: str) -> str:
    """Dark or white, whichever reads better on the colour."""
    red, green, blue = rgb(colour)
    return NIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 125 else WHITE


def _dye(cell: str, colour: bool) -> str:
    """A cell's text, with colour an ANSI style around each symbol."""
    if not colour:
        return cell
    text = ""
    for symbol in cell:
        back = BACKS.get(symbol, NIGHT)
        style = ANSI.get(symbol) or "1;38;2;{};{};{};48;2;{};{};{}".format(
            *rgb(readable_on(back)), *rgb(back)
        )
        text += f"\x1b[{style}m{symbol}\x1b[0m"
    return text
