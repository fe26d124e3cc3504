"""Boards for people: layout text to terminal text, pictures and animations.

Works on layout text alone, so any game that can print its board can be shown. Pictures are drawn
SUPER times too large and scaled down, which is what smooths their edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
Points = Sequence[tuple[float, float]]

SUPER = 3
SEATS, THINGS = "01234567", "DSh"
# Okabe-Ito, ordered so that the first few seats are far apart.
PALETTE: tuple[Colour, ...] = (
    *((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167)),
    *((86, 180, 233), (213, 94, 0), (240, 228, 66), (0, 0, 0)),
)
PAINT: dict[str, Colour] = {
    **{"paper": (247, 244, 238), "plate": (190, 204, 174), "white": (255, 255, 255)},
    **{"tile0": (231, 238, 219), "tile1": (221, 231, 207), "shadow": (168, 178, 156)},
    **{"ink": (52, 58, 64), "muted": (118, 124, 130), "faint": (222, 218, 209)},
    **{"rock": (90, 96, 106), "top": (128, 135, 146), "light": (152, 159, 169)},
    **{"dark": (62, 38, 22), "hide": (150, 92, 50), "cream": (230, 197, 158)},
    **{"horn": (108, 74, 44), "fur": (222, 224, 229), "edge": (112, 117, 128)},
    **{"pink": (236, 172, 181), "snow": (253, 254, 255), "shade": (205, 223, 240)},
    **{"frost": (120, 155, 190)},
}
# Drawings in hundredths of a square, x from its middle, y downwards; a capital means mirrored too.
# oval: x y rx ry tilt; line: width, then points; area: points.
SPRITES = {
    "S": """Line horn 6 7 44 13 32 28 26 37 7; Line horn 5 13 32 13 14; Line horn 5 27 26 24 8
        Line horn 5 33 18 45 15; Oval dark 26 46 14 6.5 -18; Oval cream 26 46 10.5 4 -18
        oval dark 0 55 21 18 0; area dark -21 57 21 57 13 86 -13 86; oval dark 0 86 13 13 0
        oval hide 0 55 19 16 0; area hide -18.7 57 18.7 57 11 86 -11 86; oval hide 0 86 11 11 0
        oval cream 0 87 10 9.5 0; oval dark 0 83 6 4.2 0; Oval dark 10 59 3 3.6 0
        Oval white 10.5 57.7 1 1 0""",
    "h": """Oval edge 11 36 8.5 25 9; oval edge 0 71 25 22 0; Oval fur 11 36 6.5 23 9
        oval fur 0 71 23 20 0; Oval pink 11.5 35 3 16 9; Oval white 7 80 8.5 7 0
        Oval ink 11 67 3 3.6 0; Oval white 11.5 65.8 1 1 0; oval pink 0 75.5 3.6 2.6 0""",
    "D": """area frost -46 88 -43 76 -33 60 -20 52 -8 34 3 28 14 34 22 50 33 58 42 74 46 88
        area snow -43 86 -40 76 -31 62 -18 54 -7 37 3 31 12 36 20 52 31 60 39 75 43 86
        area shade -43 86 -20 78 4 81 16 66 18 52 31 60 39 75 43 86; oval shade -18 66 5 2.5 -30
        oval white -4 46 4 2.5 -50; oval frost 30 30 2.4 2.4 0; oval frost -30 36 2.4 2.4 0
        oval frost -10 18 2.4 2.4 0""",
    "#": """oval light -25 25 9 4 -8; oval light 18 38 13 5 4; oval rock -14 55 8 3 0
        oval rock 27 22 5 2.4 0; oval light 20 64 6 2.6 0""",
}
# Where 1 to 4 seats stand around one thing: x, y, side.
FLANKS = {
    1: [(0.76, 0.75, 0.46)],
    2: [(0.2, 0.77, 0.38), (0.8, 0.77, 0.38)],
    3: [(0.18, 0.45, 0.34), (0.82, 0.45, 0.34), (0.18, 0.79, 0.34)],
    4: [(0.18, 0.45, 0.34), (0.82, 0.45, 0.34), (0.18, 0.79, 0.34), (0.82, 0.79, 0.34)],
}


@dataclass(frozen=True)
class Frame:
    """One moment of an episode."""

    layout: str  # what the board looks like
    step: int  # steps played
    horizon: int
    returns: tuple[float, ...]  # [N] return of each seat so far
    players: tuple[str, ...]  # [N] who sits there, e.g. 'noisy-hare:0.1'
    doing: tuple[str, ...] = ()  # [N] last action in words, '' when none
    note: str = ""  # e.g. 'episode 3'


def terminal(frame: Frame, *, colour: bool) -> str:
    """Text for a terminal: a header line with the returns, the board, one line per seat."""
    cells, doing = _read(frame)
    amounts = [_amount(value) for value in frame.returns]
    lines = [f"{frame.note}  " * bool(frame.note)]
    lines[0] += f"step {frame.step:>{len(str(frame.horizon))}}/{frame.horizon}  returns"
    for seat, amount in enumerate(amounts):
        lines[0] += f"  {_dye(str(seat), colour)} {amount}"
    column = max(len(cell) for row in cells for cell in row)
    for row in cells:
        # Padding is added apart: escapes have no width on screen but would count in a format.
        padded = [_dye(cell, colour) + " " * (column - len(cell)) for cell in row]
        lines.append(("  " + "  ".join(padded)).rstrip())
    name = max(map(len, frame.players), default=0)
    for seat, player in enumerate(frame.players):
        lines.append(f"{_dye(str(seat), colour)}  {player:<{name}}  {doing[seat]}".rstrip())
    return "\n".join(lines) + "\n"


def picture(frame: Frame, *, cell: int = 72) -> np.ndarray:
    """The frame drawn; uint8 [height, width, 3], a size that is constant over an episode."""
    return np.asarray(_image(frame, cell))


def save_png(path: str | Path, frame: Frame, *, cell: int = 72) -> None:
    """Write the picture of one frame."""
    _image(frame, cell).save(path, format="PNG", optimize=True)


def save_gif(
    path: str | Path, frames: Iterable[Frame], *, fps: float = 3.0, cell: int = 56, hold: float = 1.5
) -> None:
    """Write an endlessly looping animation whose last frame stays `hold` seconds."""
    images = [_image(frame, cell) for frame in frames]
    if len({image.size for image in images}) != 1:
        raise ValueError("An animation needs frames, all of one board size and number of seats.")
    # One palette for all frames keeps still parts still. Seat colours go in exactly, since an
    # adaptive palette would sacrifice such small areas. A free entry lets Pillow mark unchanged
    # pixels as transparent, which compresses far better.
    spare = 255 - len(PALETTE)
    sample = np.concatenate([np.asarray(image) for image in images[:: 1 + len(images) // 6]])
    adaptive = Image.fromarray(sample).quantize(spare, Image.Quantize.MEDIANCUT).getpalette()
    shared = Image.new("P", (1, 1))
    shared.putpalette([v for seat in PALETTE for v in seat] + (adaptive or [])[: 3 * spare])
    first, *rest = [i.quantize(palette=shared, dither=Image.Dither.NONE) for i in images]
    times = [round(1000 / fps)] * len(rest) + [round(1000 * hold)]
    first.save(path, "GIF", save_all=True, append_images=rest, duration=times, loop=0, optimize=True)


def _read(frame: Frame) -> tuple[list[list[str]], list[str]]:
    """Cells [rows][columns] and what each seat is doing [N], 'left' when off the board; checked."""
    cells = [line.split() for line in frame.layout.splitlines() if line.strip()]
    if len({len(row) for row in cells}) != 1:
        raise ValueError(f"Layout rows need equally many cells, not {[len(row) for row in cells]}.")
    seats, doing = SEATS[: len(frame.players)], frame.doing or ("",) * len(frame.players)
    if not len(frame.returns) == len(doing) == len(frame.players) == len(seats):
        raise ValueError("Players, returns and doing need one entry per seat, for 8 seats at most.")
    for text in (cell for row in cells for cell in row if cell not in (".", "#")):
        for symbol in text:
            if symbol not in seats + THINGS:
                raise ValueError(f"Unknown symbol {symbol!r} in layout cell {text!r}.")
            if symbol in seats and frame.layout.count(symbol) > 1:
                raise ValueError(f"Seat {symbol} stands in the layout more than once.")
    return cells, [doing[int(seat)] if seat in frame.layout else "left" for seat in seats]


def _amount(value: float) -> str:
    return f"{round(value, 2) + 0:g}"  # + 0 turns -0 into 0


def _on(colour: Colour) -> Colour:
    """Black or white, whichever reads better on the colour."""
    return (0, 0, 0) if np.dot(colour, (0.299, 0.587, 0.114)) > 125 else (255, 255, 255)


def _dye(cell: str, colour: bool) -> str:
    """A cell's text, with colour an ANSI style around each symbol."""
    plain = {"S": "1;38;2;205;120;55", "h": "1;38;2;165;170;185", "D": "1;38;2;90;170;240"}
    text = ""
    for symbol in cell if colour else "":
        style = plain.get(symbol, "2")
        if symbol in SEATS + "#":
            back = PAINT["rock"] if symbol == "#" else PALETTE[int(symbol)]
            style = "1;38;2;{};{};{};48;2;{};{};{}".format(*_on(back), *back)
        text += f"\x1b[{style}m{symbol}\x1b[0m"
    return text or cell


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


@dataclass(frozen=True)
class _Pen:
    """Draws in units of a square; its top left and side are in pixels."""

    draw: ImageDraw.ImageDraw
    left: float
    top: float
    side: float

    def within(self, x: float, y: float, side: float) -> _Pen:
        """A pen for the square of this side centred at (x, y)."""
        [(left, top)] = self._out([(x - side / 2, y - side / 2)])
        return _Pen(self.draw, left, top, side * self.side)

    def _out(self, points: Points) -> list[tuple[float, float]]:
        return [(self.left + x * self.side, self.top + y * self.side) for x, y in points]

    def oval(self, x: float, y: float, rx: float, ry: float, fill: Colour, tilt: float = 0) -> None:
        """An ellipse, turned clockwise by tilt degrees."""
        turn = complex(math.cos(math.radians(tilt)), math.sin(math.radians(tilt)))
        angles = [math.tau * i / 48 for i in range(48)]
        rim = [complex(rx * math.cos(a), ry * math.sin(a)) * turn for a in angles]
        self.draw.polygon(self._out([(x + p.real, y + p.imag) for p in rim]), fill)

    def block(self, x0: float, y0: float, x1: float, y1: float, round_: float, fill: str) -> None:
        """A rounded rectangle."""
        (left, top), (right, bottom) = self._out([(x0, y0), (x1, y1)])
        where = (left, top, right - 1, bottom - 1)
        self.draw.rounded_rectangle(where, round_ * self.side, PAINT[fill])

    def write(
        self, x: float, y: float, text: str, size: float, fill: Colour, to: str = "l", room: float = 0
    ) -> float:
        """Text on baseline y whose left, middle or right (`to`) is at x, cut to `room`; its width."""
        font = _font(max(1, round(size * self.side)))
        text = text.encode("ascii", "replace").decode()  # the font has few other letters
        whole = text
        while room and whole and font.getlength(text) > room * self.side:
            whole = whole[:-1].rstrip()
            text = whole + "…"
        self.draw.text(self._out([(x, y)])[0], text, fill, font, anchor=to + "s")
        return font.getlength(text) / self.side

    def sprite(self, thing: str) -> None:
        """One of SPRITES, filling the square."""
        for item in SPRITES[thing].replace("\n", ";").split(";"):
            kind, paint, *rest = item.split()
            for side in (1, -1)[: 1 + kind[0].isupper()]:
                v = [float(n) / 100 for n in rest]
                at = v[len(v) % 2 :]
                points = [(0.5 + side * x, y) for x, y in zip(at[::2], at[1::2], strict=True)]
                if kind.lower() == "oval":
                    self.oval(0.5 + side * v[0], *v[1:4], PAINT[paint], side * v[4] * 100)
                elif kind == "area":
                    self.draw.polygon(self._out(points), PAINT[paint])
                else:
                    self.draw.line(self._out(points), PAINT[paint], round(v[0] * self.side))
                    for x, y in points:
                        self.oval(x, y, v[0] / 2, v[0] / 2, PAINT[paint])

    def token(self, seat: int, here: bool = True) -> None:
        """A seat's disc; one that left is only a pale ring."""
        fill = PALETTE[seat] if here else PAINT["paper"]
        if here:
            self.oval(0.5, 0.55, 0.45, 0.45, PAINT["shadow"])
        self.oval(0.5, 0.5, 0.46, 0.46, PAINT["white" if here else "faint"])
        self.oval(0.5, 0.5, 0.39, 0.39, fill)
        self.write(0.5, 0.69, str(seat), 0.54, _on(fill) if here else PAINT["muted"], "m")


def _spots(n: int, top: float, bottom: float) -> list[tuple[float, float, float]]:
    """Centres and side of n equal squares between two heights of a cell, as large as they fit."""
    high, wide = bottom - top, 0.92
    columns = max(range(1, n + 1), key=lambda c: min(wide / c, high / math.ceil(n / c)), default=1)
    rows = math.ceil(n / columns)
    side = min(wide / columns, high / max(rows, 1))
    spots = []
    for i in range(n):
        row, column = divmod(i, columns)
        middle = (min(columns, n - row * columns) - 1) / 2
        y = (top + bottom) / 2 + (row - (rows - 1) / 2) * side
        spots.append((0.5 + (column - middle) * side, y, side))
    return spots


def _cell(pen: _Pen, text: str, shade: int) -> None:
    """One cell: its tile, things above, seats below them."""
    pen.block(0.03, 0.03, 0.97, 0.97, 0.14, "rock" if text == "#" else f"tile{shade}")
    if text == "#":
        pen.block(0.03, 0.03, 0.97, 0.85, 0.14, "top")
        pen.sprite("#")
        return
    things = sorted(s for s in text if s in THINGS)
    seats = sorted(int(s) for s in text if s in SEATS)
    split = 0.95 if not seats else 0.05 if not things else 0.57 if len(seats) <= 4 else 0.5
    behind, front = _spots(len(things), 0.05, split), _spots(len(seats), split, 0.95)
    if len(things) == 1 and 1 <= len(seats) <= 4:  # few enough to stand around it, all larger
        behind, front = [(0.5, 0.48, 0.9)], FLANKS[len(seats)]
    for thing, spot in zip(things, behind, strict=True):
        pen.within(*spot).sprite(thing)
    for seat, (x, y, side) in zip(seats, front, strict=True):
        pen.within(x, y, min(side, 0.72)).token(seat)


def _image(frame: Frame, cell: int) -> Image.Image:
    """The whole picture: board, and panel to its right, or below a board that is very wide."""
    cells, doing = _read(frame)
    wide, high, seats = cell * len(cells[0]), cell * len(cells), max(1, len(frame.players))
    text = min(20, max(12, round(cell * 0.22)))
    gap, column = 2 * text, 15 * text
    below = wide > 1.6 * high and wide >= 2 * column
    columns = min(seats, wide // column) if below else 1 + (seats > max(4, high / text / 3))
    panel = text * (3 + 3 * math.ceil(seats / columns))
    if below:
        size, at = (wide + 2 * gap, high + panel + 3 * gap), (gap, high + 2 * gap)
        column = wide // columns
    else:
        size, at = (wide + columns * column + 3 * gap, max(high, panel) + 2 * gap), (wide + 2 * gap, gap)
    canvas = Image.new("RGB", (size[0] * SUPER, size[1] * SUPER), PAINT["paper"])
    pen = _Pen(ImageDraw.Draw(canvas), 0, 0, SUPER)
    top = gap if below else (size[1] - high) // 2
    pen.block(gap - 6, top - 6, gap + wide + 6, top + high + 6, cell * 0.2, "plate")
    for row, line in enumerate(cells):
        for col, what in enumerate(line):
            _cell(pen.within(gap + (col + 0.5) * cell, top + (row + 0.5) * cell, cell), what, (row + col) % 2)
    _panel(pen.within(at[0] + text / 2, at[1] + text / 2, text), frame, doing, columns, column / text)
    return canvas.resize(size, Image.Resampling.LANCZOS)


def _panel(pen: _Pen, frame: Frame, doing: list[str], columns: int, wide: float) -> None:
    """Time bar and one entry per seat, in units of the font size."""
    full = columns * wide
    pen.write(0, 0.8, frame.note, 1.05, PAINT["ink"])
    pen.write(full, 0.8, f"step {frame.step} / {frame.horizon}", 1.05, PAINT["muted"], "r")
    done = min(1.0, frame.step / max(1, frame.horizon))
    pen.block(0, 1.4, full, 1.8, 0.2, "faint")
    if done:
        pen.block(0, 1.4, max(0.4, full * done), 1.8, 0.2, "ink")
    for seat, player in enumerate(frame.players):
        row, col = divmod(seat, columns)
        x, y, here = col * wide, 3 + row * 3, doing[seat] != "left"
        end = x + wide - 1.5 * (col < columns - 1)
        pen.within(x + 1.1, y + 1.1, 2.2).token(seat, here)
        ink = PAINT["ink" if here else "muted"]
        used = pen.write(end, y + 1.45, _amount(frame.returns[seat]), 1.25, ink, "r")
        room = end - x - 3 - used - 0.6
        pen.write(x + 3, y + 0.95, player, 1, ink, room=room)
        pen.write(x + 3, y + 2.1, doing[seat], 0.85, PAINT["muted"], room=room)
