"""Boards for people, as pictures and animations.

Pictures are drawn SUPER times too large and scaled down, which is what smooths their edges.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from hopplus.games.render import (
    PALETTE,
    ROCK,
    SEATS,
    WHITE,
    Frame,
    amount,
    read_frame,
    readable_on,
    rgb,
)
from hopplus.games.sprites import SPRITES, shapes

SUPER = 3
PAPER, PLATE, TILES, SHADOW = "#f7f4ee", "#beccae", ("#e7eedb", "#dde7cf"), "#a8b29c"
INK, MUTED, FAINT, ROCK_TOP = "#343a40", "#767c82", "#dedad1", "#808792"
DISC = "#f2c94c"  # of a thing that there is no drawing of
# How up to four seats stand around one thing: centre x, y and side of their squares.
CORNERS = [(0.18, 0.45, 0.34), (0.82, 0.45, 0.34), (0.18, 0.79, 0.34), (0.82, 0.79, 0.34)]
AROUND = [[(0.77, 0.76, 0.43)], [(0.2, 0.77, 0.38), (0.8, 0.77, 0.38)], CORNERS[:3], CORNERS]
_font = lru_cache(ImageFont.load_default)


def picture(frame: Frame, *, cell: int = 72) -> np.ndarray:
    """The frame drawn; uint8 [height, width, 3], of one size throughout an episode."""
    return np.array(_image(frame, cell))


def save_png(path: str | Path, frame: Frame, *, cell: int = 72) -> None:
    """Write the picture of one frame."""
    _image(frame, cell).save(path, "PNG", optimize=True)


def save_gif(
    path: str | Path, frames: Iterable[Frame], *, fps: float = 3, cell: int = 56, hold: float = 1.5
) -> None:
    """Write an endless animation; its last frame stays `hold` seconds, equal neighbours merge."""
    images = [_image(frame, cell, flat=True) for frame in frames]
    if len({image.size for image in images}) != 1:
        raise ValueError("An animation needs frames, all of one board size and number of seats.")
    # One palette for all frames keeps still parts still: the seats' colours, which an adaptive
    # choice would lose as small, then the most frequent others, none too like an earlier one.
    # Below 256 entries Pillow has one left for unchanged pixels, which compresses far better.
    sample = np.concatenate([np.asarray(image) for image in images[:: 1 + len(images) // 6]])
    packed, counts = np.unique(sample @ np.array([65536, 256, 1]), return_counts=True)
    colours = [rgb(seat) for seat in PALETTE]
    for code in packed[np.argsort(-counts, kind="stable")].tolist():
        colour = (code >> 16, code >> 8 & 255, code & 255)
        apart = 9 if len(colours) < 40 else 24
        if len(colours) < 200 and min(math.dist(colour, other) for other in colours) > apart:
            colours.append(colour)
    shared = Image.new("P", (1, 1))
    shared.putpalette([value for colour in colours for value in colour])
    first, *rest = [i.quantize(palette=shared, dither=Image.Dither.NONE) for i in images]
    times = [round(1000 / fps)] * len(rest) + [round(1000 * hold)]
    first.save(path, "GIF", save_all=True, append_images=rest, duration=times, loop=0)


@dataclass(frozen=True)
class _Pen:
    """Draws in units of a square; its top left and side are in pixels."""

    draw: ImageDraw.ImageDraw
    left: float
    top: float
    side: float

    def within(self, x: float, y: float, side: float) -> "_Pen":
        """A pen for the square of this side centred at (x, y)."""
        return _Pen(self.draw, *self.out(x - side / 2, y - side / 2), side * self.side)

    def out(self, x: float, y: float) -> tuple[float, float]:
        """A point in pixels."""
        return self.left + x * self.side, self.top + y * self.side

    def oval(self, x: float, y: float, rx: float, ry: float, fill: str, tilt: float = 0) -> None:
        """An ellipse, turned clockwise by tilt degrees."""
        turn = complex(math.cos(math.radians(tilt)), math.sin(math.radians(tilt)))
        angles = [math.tau * i / 48 for i in range(48)]
        rim = [complex(rx * math.cos(a), ry * math.sin(a)) * turn for a in angles]
        self.draw.polygon([self.out(x + p.real, y + p.imag) for p in rim], fill)

    def block(self, x: float, y: float, wide: float, high: float, bend: float, fill: str) -> None:
        """A rectangle with corners rounded by radius bend."""
        (left, top), (right, bottom) = self.out(x, y), self.out(x + wide, y + high)
        self.draw.rounded_rectangle((left, top, right - 1, bottom - 1), bend * self.side, fill)

    def write(
        self, x: float, y: float, text: str, size: float, fill: str, room: float, to: str = "l"
    ) -> float:
        """Text cut to `room`, its left, middle or right (`to`) at baseline x, y; returns width."""
        font = _font(max(1, round(size * self.side)))
        kept = text = text.encode("ascii", "replace").decode()  # the font has few other letters
        while kept and font.getlength(text) > room * self.side:
            kept = kept[:-1].rstrip()
            text = kept + "…"
        self.draw.text(self.out(x, y), text, fill, font, anchor=to + "s")
        return font.getlength(text) / self.side

    def sprite(self, drawing: str) -> None:
        """A drawing as in SPRITES."""
        for shape in shapes(drawing):
            points = [self.out(x, y) for x, y in shape.points]
            if shape.kind == "oval":
                ((x, y),), (rx, ry) = shape.points, shape.size
                self.oval(x, y, rx, ry, shape.fill, shape.tilt)
            elif shape.kind == "area":
                self.draw.polygon(points, shape.fill)
            else:
                width = shape.size[0] * self.side
                self.draw.line(points, shape.fill, round(width))
                for point in points:  # round joints and ends
                    self.draw.circle(point, width / 2, shape.fill)

    def disc(self, letter: str) -> None:
        """A thing that there is no drawing of: its letter."""
        self.oval(0.5, 0.5, 0.32, 0.32, INK)
        self.oval(0.5, 0.5, 0.29, 0.29, DISC)
        self.write(0.5, 0.66, letter, 0.44, INK, 1, "m")

    def token(self, seat: int, here: bool = True) -> None:
        """A seat's disc; of one that left, a pale ring."""
        fill, rim = (PALETTE[seat], WHITE) if here else (PAPER, FAINT)
        if here:
            self.oval(0.5, 0.55, 0.45, 0.45, SHADOW)
        self.oval(0.5, 0.5, 0.46, 0.46, rim)
        self.oval(0.5, 0.5, 0.39, 0.39, fill)
        self.write(0.5, 0.69, str(seat), 0.54, readable_on(fill) if here else MUTED, 1, "m")

    def cell(self, text: str, tile: str, drawings: Mapping[str, str]) -> None:
        """One cell of the board, with drawings of things by their letters."""
        self.block(0.03, 0.03, 0.94, 0.94, 0.14, ROCK if text == "#" else tile)
        if text == "#":
            self.block(0.03, 0.03, 0.94, 0.82, 0.14, ROCK_TOP)
            self.sprite(SPRITES["#"])
        things = sorted(symbol for symbol in text if symbol.isalpha())  # capitals lie behind
        seats = sorted(int(symbol) for symbol in text if symbol in SEATS)
        split = 0.95 if not seats else 0.05 if not things else 0.57 if len(seats) <= 4 else 0.5
        behind, front = _spots(len(things), 0.05, split), _spots(len(seats), split, 0.95)
        if len(things) == 1 and 1 <= len(seats) <= 4:
            behind = [(0.42, 0.45, 0.84) if len(seats) == 1 else (0.5, 0.48, 0.9)]
            front = AROUND[len(seats) - 1]
        for thing, spot in zip(things, behind, strict=True):
            pen = self.within(*spot)
            if drawings.get(thing):
                pen.sprite(drawings[thing])
            else:
                pen.disc(thing)
        for seat, (x, y, side) in zip(seats, front, strict=True):
            self.within(x, y, min(side, 0.72)).token(seat)


def _spots(n: int, top: float, bottom: float) -> list[tuple[float, float, float]]:
    """n equal squares (centre x, y and side) between two heights of a cell, as large as fit."""
    high, wide = bottom - top, 0.92
    columns = max(range(1, n + 1), key=lambda c: min(wide / c, high / math.ceil(n / c)), default=1)
    rows, spots = math.ceil(n / columns), []
    for row, column in (divmod(i, columns) for i in range(n)):
        side = min(wide / columns, high / rows)
        x = column - (min(columns, n - row * columns) - 1) / 2  # a short last row is centred
        spots.append((0.5 + x * side, (top + bottom) / 2 + (row - (rows - 1) / 2) * side, side))
    return spots


def _image(frame: Frame, cell: int, flat: bool = False) -> Image.Image:
    """Board, with the panel to its right or, for a board far wider than high, below.

    `flat` is for animations: areas stay of one colour up to their edges, a quarter fewer bytes.
    """
    cells, doing = read_frame(frame)
    wide, high, seats = cell * len(cells[0]), cell * len(cells), max(1, len(frame.players))
    text = min(20, max(12, round(cell * 0.22)))
    gap, column = 2 * text, 15 * text
    below = wide > 1.6 * high and wide >= 2 * column
    rows = math.ceil(seats / (wide // column if below else 1 + (seats > max(4, high / text / 3))))
    columns, panel = math.ceil(seats / rows), text * (3 + 3 * rows)
    size = (wide + columns * column + 3 * gap, max(high, panel) + 2 * gap)
    x, y, top = wide + 2 * gap, gap, (size[1] - high) // 2
    if below:
        size, column = (wide + 2 * gap, high + panel + 3 * gap), wide // columns
        x, y, top = gap, high + 2 * gap, gap
    canvas = Image.new("RGB", (size[0] * SUPER, size[1] * SUPER), PAPER)
    pen = _Pen(ImageDraw.Draw(canvas), 0, 0, SUPER)
    drawings = {**SPRITES, **frame.drawings}
    pen.block(gap - 6, top - 6, wide + 12, high + 12, cell * 0.2, PLATE)
    for r, line in enumerate(cells):
        for c, what in enumerate(line):
            spot = (gap + (c + 0.5) * cell, top + (r + 0.5) * cell, cell)
            pen.within(*spot).cell(what, TILES[(r + c) % 2], drawings)
    _panel(pen.within(x + text / 2, y + text / 2, text), frame, doing, rows, column / text)
    return canvas.resize(size, Image.Resampling.BOX if flat else Image.Resampling.LANCZOS)


def _panel(pen: _Pen, frame: Frame, doing: list[str], rows: int, wide: float) -> None:
    """Time bar and one entry per seat; lengths in font sizes."""
    columns = max(1, math.ceil(len(frame.players) / rows))
    full, pitch = columns * wide, wide + 1.5 / columns
    used = pen.write(full, 0.8, f"step {frame.step} / {frame.horizon}", 1, MUTED, full, "r")
    pen.write(0, 0.8, frame.note, 1, INK, full - used - 1)
    done = min(1.0, frame.step / max(1, frame.horizon))
    pen.block(0, 1.4, full, 0.4, 0.2, FAINT)
    if done:
        pen.block(0, 1.4, max(0.4, full * done), 0.4, 0.2, INK)
    for seat, player in enumerate(frame.players):
        column, row = divmod(seat, rows)
        x, y, here = column * pitch, 3 + row * 3, str(seat) in frame.layout
        end, ink = x + pitch - 1.5, INK if here else MUTED
        pen.within(x + 1.1, y + 1.1, 2.2).token(seat, here)
        used = pen.write(end, y + 1.45, amount(frame.returns[seat]), 1.25, ink, wide, "r")
        pen.write(x + 3, y + 0.95, player, 1, ink, end - x - 3.6 - used)
        pen.write(x + 3, y + 2.1, doing[seat], 0.85, MUTED, end - x - 3.6 - used)
