"""What a person is shown: terminal text, pictures, animations."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from hopplus.games.render import PALETTE, Frame, picture, save_gif, save_png, terminal

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
NAMES = ("stag", "hare", "noisy-hare:0.1", "hop", "random", "stag", "hare", "hop")


def frame(layout: str, seats: int = 2, step: int = 3, **more: object) -> Frame:
    """A frame with this board and plausible rest."""
    plain = Frame(layout, step, 10, tuple(map(float, range(seats))), NAMES[:seats])
    return replace(plain, **more)  # type: ignore[arg-type]


def board(rows: int, columns: int, **at: str) -> str:
    """An otherwise free board; r1c2='0S' puts that text into row 1, column 2."""
    cells = [[at.get(f"r{r}c{c}", ".") for c in range(columns)] for r in range(rows)]
    return "\n".join("  ".join(row) for row in cells)


def where(image: np.ndarray, seat: int) -> np.ndarray:
    """bool [height, width]: pixels of exactly the seat's colour."""
    return (image == ImageColor.getrgb(PALETTE[seat])).all(axis=-1)


def changed(one: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    """Height and width of the smallest box that holds every pixel that differs."""
    rows, columns = np.nonzero((one != other).any(axis=-1))
    return int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1


def middle(mask: np.ndarray) -> np.ndarray:
    """float [2]: mean row and column of a mask's pixels."""
    assert mask.sum() > 20
    return np.argwhere(mask).mean(axis=0)


def test_all_frames_of_an_episode_have_one_size() -> None:
    start = frame("0 . S\n# 1h .\n2 . 3S", 4, step=0)
    names = ("a name far longer than any panel is wide, and then some",) * 4
    others = [
        frame(". . S\n# h .\n. . S", 4, step=10, returns=(-1e5, 0.125, 3.0, 4.0)),
        frame("0123S . .\n# h .\n. . S", 4, doing=("hunt stag",) * 4, note="episode 1234567"),
        frame("0 . S\n# 1h .\n2 . 3S", 4, players=names, doing=names, note=names[0]),
    ]
    sizes = {picture(f, cell=40).shape for f in [start, *others]}
    assert len(sizes) == 1
    assert picture(start).dtype == np.uint8 and picture(start).shape[2] == 3


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (12, 3), (3, 12), (12, 12)])
def test_board_shapes_fit_with_every_number_of_seats(rows: int, columns: int) -> None:
    for seats in (2, 8):
        image = picture(frame(board(rows, columns, r1c1="01234567"[:seats]), seats), cell=24)
        assert image.shape[0] >= rows * 24 and image.shape[1] >= columns * 24
        assert all(where(image, seat).sum() > 20 for seat in range(seats))
        border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
        assert len(np.unique(border, axis=0)) == 1, "something is drawn up to the edge"


@pytest.mark.parametrize("seat", range(8))
def test_a_seat_is_drawn_in_its_colour_in_its_cell(seat: int) -> None:
    here = where(picture(frame(board(4, 4, r1c1=str(seat)), 8)), seat)
    right = where(picture(frame(board(4, 4, r1c2=str(seat)), 8)), seat)
    below = where(picture(frame(board(4, 4, r2c1=str(seat)), 8)), seat)
    # The panel's disc is the same in each, so that only the one on the board is left.
    assert np.allclose(middle(right & ~here) - middle(here & ~right), (0, 72), atol=0.5)
    assert np.allclose(middle(below & ~here) - middle(here & ~below), (72, 0), atol=0.5)


@pytest.mark.parametrize("seat", range(8))
def test_a_seat_that_left_has_lost_its_colour_everywhere(seat: int) -> None:
    everyone = "01234567"
    stay = picture(frame(board(3, 3, r0c0=everyone, r1c1="Sh", r2c2="#"), 8))
    gone = picture(frame(board(3, 3, r0c0=everyone.replace(str(seat), ""), r1c1="Sh", r2c2="#"), 8))
    assert where(stay, seat).sum() > 100
    assert where(gone, seat).sum() == 0
    assert all(where(gone, other).sum() > 100 for other in range(8) if other != seat)


@pytest.mark.parametrize("thing", ["S", "h", "D", "Sh", "SShhD"])
@pytest.mark.parametrize("seats", [1, 2, 3, 4, 5, 8])
def test_seats_and_things_in_one_cell_all_stay_visible(seats: int, thing: str) -> None:
    digits = "01234567"[:seats]
    alone = picture(frame(board(3, 3, r0c0=digits), seats))
    crowd = picture(frame(board(3, 3, r0c0=digits + thing), seats))
    apart = picture(frame(board(3, 3), seats))
    high, wide = changed(crowd[:, :270], apart[:, :270])
    assert high <= 72 and wide <= 72, "the crowd spills over its cell"
    for seat in range(seats):
        assert (where(crowd, seat) & ~where(apart, seat))[:, :270].sum() > 40
    assert (crowd != alone).any(axis=-1).sum() > 300


def test_things_look_different_from_each_other() -> None:
    looks = [picture(frame(board(3, 3, r1c1=symbol))) for symbol in (".", "#", "S", "h", "D")]
    for i, one in enumerate(looks):
        for other in looks[:i]:
            assert (np.abs(one.astype(int) - other).max(axis=-1) > 40).sum() > 400
    free, _, stag, hare, _ = looks
    assert changed(stag, free)[1] > changed(hare, free)[1] * 1.3, "a stag is the larger animal"


def test_the_panel_follows_the_frame() -> None:
    base = frame(board(3, 3, r0c0="01"))
    for other in (
        replace(base, step=4),
        replace(base, returns=(0.0, 9.0)),
        replace(base, players=("stag", "hop")),
        replace(base, doing=("", "hunt stag")),
        replace(base, note="episode 3"),
    ):
        differs = (picture(base) != picture(other)).any(axis=-1)
        assert differs.any() and not differs[:, :270].any()


def test_long_names_are_cut_and_do_not_touch_the_return() -> None:
    base = frame(board(3, 3, r0c0="01"), players=("x" * 200, "hop"))
    same = replace(base, players=("x" * 300, "hop"))
    assert (picture(base) == picture(same)).all()
    # The return keeps its ink: blank it and the name's pixels are elsewhere.
    short = picture(replace(base, players=("x", "hop")))
    more = picture(replace(base, players=("x", "hop"), returns=(8.0, 1.0)))
    name = (picture(base) != short).any(axis=(0, 2))
    amount = (short != more).any(axis=(0, 2))
    assert np.flatnonzero(name).max() < np.flatnonzero(amount).min()


def test_save_png_writes_the_picture(tmp_path: Path) -> None:
    save_png(tmp_path / "a.png", frame("0 1 .\nS h #"), cell=30)
    with Image.open(tmp_path / "a.png") as image:
        assert (np.asarray(image) == picture(frame("0 1 .\nS h #"), cell=30)).all()


def test_gif_has_every_frame_its_time_and_its_colours(tmp_path: Path) -> None:
    path = [(0, 0), (0, 1), (1, 1), (2, 1), (2, 2)]
    frames = [frame(board(3, 3, **{f"r{r}c{c}": "01"}), step=t) for t, (r, c) in enumerate(path)]
    frames.append(frame(board(3, 3, r2c2="1"), step=5))
    save_gif(tmp_path / "a.gif", frames, fps=5, cell=40, hold=2.0)
    with Image.open(tmp_path / "a.gif") as film:
        assert film.info["loop"] == 0
        shown, times = [], []
        for i in range(film.n_frames):  # type: ignore[attr-defined]
            film.seek(i)
            shown.append(np.asarray(film.convert("RGB")).copy())
            times.append(film.info["duration"])
    assert times == [200] * 5 + [2000]
    for got, wanted in zip(shown, frames, strict=True):
        drawn = picture(wanted, cell=40)
        assert got.shape == drawn.shape
        assert np.abs(got.astype(int) - drawn).mean() < 2
    assert where(shown[4], 0).any() and not where(shown[5], 0).any()


def test_gif_of_a_long_episode_is_small(tmp_path: Path) -> None:
    rng, place, frames = np.random.default_rng(0), np.array([27, 36, 9, 54]), []
    for step in range(36):
        cells = ["#" if i % 11 == 5 else "." for i in range(64)]
        for what, i in zip(("0", "1", "S", "h"), place, strict=True):
            cells[i] = cells[i].strip(".#") + what
        rows = "\n".join(" ".join(cells[i : i + 8]) for i in range(0, 64, 8))
        frames.append(frame(rows, step=step, horizon=35, doing=tuple(rng.choice(NAMES[:4], 2))))
        place = (place + rng.choice([-8, -1, 1, 8], 4)) % 64
    save_gif(tmp_path / "a.gif", frames)
    assert (tmp_path / "a.gif").stat().st_size < 300_000


def test_gif_refuses_nothing_and_mixed_sizes(tmp_path: Path) -> None:
    for frames in ([], [frame("0 1"), frame("0 1 .")]):
        with pytest.raises(ValueError, match="one board size"):
            save_gif(tmp_path / "a.gif", frames, cell=20)


def test_terminal_columns_line_up_and_colour_only_adds_escapes() -> None:
    shown = frame(
        "0  .  S\n#  1h .\n.  D  23S", 5, step=7, returns=(1.0, -0.25, 0.0, 12.5, 3.0),
        doing=("up", "left", "hunt stag", "", "stay"), note="episode 3",
    )  # fmt: skip
    plain, coloured = terminal(shown, colour=False), terminal(shown, colour=True)
    assert "\x1b" not in plain
    assert ESCAPE.sub("", coloured) == plain
    head, _, *rest = plain.splitlines()
    assert head == "episode 3  step  7/10  returns  0:1  1:-0.25  2:0  3:12.5  4:3"
    starts = [[m.start() for m in re.finditer(r"\S+", line)] for line in rest[:3]]
    assert starts[0] == starts[1] == starts[2] and len(starts[0]) == 3
    assert [line.split() for line in rest[:3]] == [
        line.split() for line in shown.layout.split("\n")
    ]
    assert rest[4].split() == ["0", "stag", "up"] and rest[8].endswith("left the board")
    assert rest[4].index("up") == rest[5].index("left") == rest[6].index("hunt")


def test_terminal_colours_tell_seats_and_things_apart() -> None:
    text = terminal(frame("0 1 2 3 4 5 6 7 S h D # .", 8), colour=True)
    styles = dict((symbol, style) for style, symbol in re.findall(r"\x1b\[([0-9;]+)m(.)", text))
    assert len(set(styles.values()) - {"0"}) == 13
    for seat, colour in enumerate(PALETTE):
        assert "48;2;{};{};{}".format(*ImageColor.getrgb(colour)) in styles[str(seat)]


@pytest.mark.parametrize("show", [picture, lambda f: terminal(f, colour=False)])
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (frame("0 1 x"), "'x'"),
        (frame("0 1 2"), "'2'"),
        (frame("0 1 9"), "'9'"),
        (frame("0 1 #S"), "'#'"),
        (frame("0 1 S."), r"'\.'"),
        (frame("0 1\n. . ."), r"\[2, 3\]"),
        (frame(" \n"), "cells"),
        (frame("0 1 0"), "Seat 0"),
        (frame("0 1", returns=(1.0,)), "one entry per seat"),
        (frame("0 1", doing=("up",)), "one entry per seat"),
        (frame("0 1", players=("hop",) * 9, returns=(0.0,) * 9), "8 seats"),
    ],
)
def test_a_frame_that_makes_no_sense_is_refused(show: object, bad: Frame, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        show(bad)  # type: ignore[operator]
