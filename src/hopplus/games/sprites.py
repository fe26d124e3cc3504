"""What stands on a board, as simple shapes that any pen can draw.

A game of one's own gives its things drawings as in SPRITES, in `Target.drawing`.
"""

from dataclasses import dataclass

# Drawings in hundredths of a square, x from its middle, y downwards; a capital means mirrored too.
# oval: x y rx ry tilt; area: points; line: width, then points.
SPRITES = {
    "S": """Line #6c4a2c 6 7 44 13 32 28 26 37 7; Line #6c4a2c 5 13 32 13 14
        Line #6c4a2c 5 27 26 24 8; Line #6c4a2c 5 33 18 45 15; Oval #3e2616 26 46 14 6.5 -18
        Oval #e6c59e 26 46 10.5 4 -18; oval #3e2616 0 55 21 18 0; oval #3e2616 0 86 13 13 0
        area #3e2616 -21 57 21 57 13 86 -13 86; oval #965c32 0 55 19 16 0; oval #965c32 0 86 11 11 0
        area #965c32 -18.7 57 18.7 57 11 86 -11 86; oval #e6c59e 0 87 10 9.5 0
        oval #3e2616 0 83 6 4.2 0; Oval #3e2616 10 59 3 3.6 0; Oval #ffffff 10.5 57.7 1 1 0""",
    "h": """Oval #707580 11 36 8.5 25 9; oval #707580 0 71 25 22 0; Oval #dee0e5 11 36 6.5 23 9
        oval #dee0e5 0 71 23 20 0; Oval #ecacb5 11.5 35 3 16 9; Oval #ffffff 7 80 8.5 7 0
        Oval #343a40 11 67 3 3.6 0; Oval #ffffff 11.5 65.8 1 1 0; oval #ecacb5 0 75.5 3.6 2.6 0""",
    "D": """area #789bbe -46 88 -43 76 -33 60 -20 52 -8 34 3 28 14 34 22 50 33 58 42 74 46 88
        area #fdfeff -43 86 -40 76 -31 62 -18 54 -7 37 3 31 12 36 20 52 31 60 39 75 43 86
        area #cddff0 -43 86 -20 78 4 81 16 66 18 52 31 60 39 75 43 86; oval #cddff0 -18 66 5 2.5 -30
        oval #789bbe 30 30 2.4 2.4 0; oval #789bbe -30 36 2.4 2.4 0; oval #789bbe -10 18 2 2 0""",
    "#": """oval #989fa9 -25 25 9 4 -8; oval #989fa9 18 38 13 5 4; oval #5a606a -14 55 8 3 0
        oval #5a606a 27 22 5 2.4 0; oval #989fa9 20 64 6 2.6 0""",
}


@dataclass(frozen=True)
class Shape:
    """An oval, an area or a line, in units of a square from its top left corner."""

    kind: str  # oval, area or line
    fill: str  # a colour, #rrggbb
    points: tuple[tuple[float, float], ...]  # x, y; of an oval its centre
    size: tuple[float, ...] = ()  # of an oval its radii; of a line its width
    tilt: float = 0.0  # of an oval, in degrees clockwise


def shapes(drawing: str) -> list[Shape]:
    """The shapes of a drawing such as those in SPRITES, those behind first."""
    found = []
    for item in drawing.strip().replace("\n", ";").split(";"):
        kind, fill, *numbers = item.split()
        v = [float(number) / 100 for number in numbers]
        for side in (1, -1)[: 1 + kind[0].isupper()]:
            match kind.lower():
                case "oval":
                    centre = ((0.5 + side * v[0], v[1]),)
                    found.append(Shape("oval", fill, centre, (v[2], v[3]), side * v[4] * 100))
                case "area":
                    found.append(Shape("area", fill, _points(v, side)))
                case _:
                    found.append(Shape("line", fill, _points(v[1:], side), (v[0],)))
    return found


def _points(v: list[float], side: int) -> tuple[tuple[float, float], ...]:
    return tuple((0.5 + side * x, y) for x, y in zip(v[::2], v[1::2], strict=True))
