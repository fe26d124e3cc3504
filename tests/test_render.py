"""What a person is shown: terminal text, pictures, animations."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from hopplus.games.picture import INK, picture, save_gif, save_png
from hopplus.games.render import PALETTE, Frame, terminal

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
NAMES = ("stag", "hare", "noisy-hare:0.1", "hop", "random", "stag", "hare", "hop")
EVERYONE = "01234567"
BOARD = 270  # left of this is the board, right of it the panel, for 3 columns of 72 pixels


def frame(layout: str, seats: int = 2, step: int = 3, **more: object) -> Frame:
    """A frame with this board and plausible rest."""
    plain = Frame(layout, step, 10, tuple(map(float, range(seats))), NAMES[:seats])
    return replace(plain, **more)  # type: ignore[arg-type]


def board(rows: int, columns: int, **at: str) -> str:
    """An otherwise free board; r1c2='0S' puts that text into row 1, column 2."""
    cells = [[at.get(f"r{r}c{c}", ".") for c in range(columns)] for r in range(rows)]
    return "\n".join("  ".join(row) for row in cells)


def where(image: np.ndarray, seat: int, slack: int = 0) -> np.ndarray:
    """bool [height, width]: pixels of the seat's colour, up to slack in each channel."""
    far = np.abs(image.astype(int) - ImageColor.getrgb(PALETTE[seat]))
    return np.array(far.max(axis=-1) <= slack)


def changed(one: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    """Height and width of the smallest box that holds every pixel that differs visibly."""
    rows, columns = np.nonzero(np.abs(one.astype(int) - other).max(axis=-1) > 8)
    return int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1


def middle(mask: np.ndarray) -> np.ndarray:
    """float [2]: mean row and column of a mask's pixels."""
    assert mask.sum() > 20
    return np.array(np.argwhere(mask).mean(axis=0))


def test_all_frames_of_an_episode_have_one_size() -> None:
    start = frame("0 . S\n# 1h .\n2 . 3S", 4, step=0)
    names = ("a name far longer than any panel is wide, and then some",) * 4
    others = [
        frame(". . S\n# h .\n. . S", 4, step=10, returns=(-1e5, 0.125, 3.0, 4.0)),
        frame("0123S . .\n# h .\n. . S", 4, doing=("hunt stag",) * 4, note="episode 1234567"),
        frame("0 . S\n# 1h .\n2 . 3S", 4, players=names, doing=names, note=names[0]),
    ]
    images = [picture(f, cell=40) for f in [start, *others]]
    assert len({image.shape for image in images}) == 1
    assert images[0].dtype == np.uint8
    assert images[0].shape[2] == 3


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (12, 3), (3, 12), (12, 12)])
def test_board_shapes_fit_with_every_number_of_seats(rows: int, columns: int) -> None:
    for seats in (2, 8):
        image = picture(frame(board(rows, columns, r1c1=EVERYONE[:seats]), seats), cell=24)
        assert image.shape[0] >= rows * 24
        assert image.shape[1] >= columns * 24
        assert all(where(image, seat).sum() > 20 for seat in range(seats))
        border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
        assert len(np.unique(border, axis=0)) == 1, "something is drawn up to the edge"


def test_seats_are_drawn_in_their_colours_in_their_cells() -> None:
    high = picture(frame("0 1 2 3\n4 5 6 7\n. . . .\n. . . .", 8))
    low = picture(frame(". . . .\n. . . .\n0 1 2 3\n4 5 6 7", 8))
    # The panel's discs are the same in both, so that only those on the board are left.
    at = [middle(where(high, seat) & ~where(low, seat)) for seat in range(8)]
    for seat in range(8):
        moved = middle(where(low, seat) & ~where(high, seat)) - at[seat]
        assert np.allclose(moved, (2 * 72, 0), atol=1)
        assert np.allclose(at[seat] - at[0], (seat // 4 * 72, seat % 4 * 72), atol=2)


def test_a_seat_that_left_has_lost_its_colour_everywhere() -> None:
    for stay in ("0123", "4567"):
        image = picture(frame(board(3, 3, r0c0=stay, r1c1="Sh", r1c2="D", r2c2="#"), 8))
        for seat in range(8):
            assert where(image, seat).any() == (str(seat) in stay)


@pytest.mark.parametrize("seats", [1, 2, 4, 8])
def test_seats_and_things_in_one_cell_all_stay_visible(seats: int) -> None:
    free = picture(frame(board(3, 3), seats))[:, :BOARD]
    alone = picture(frame(board(3, 3, r1c1=EVERYONE[:seats]), seats))[:, :BOARD]
    for things in ("S", "h", "SShhD"):
        crowd = picture(frame(board(3, 3, r1c1=EVERYONE[:seats] + things), seats))[:, :BOARD]
        assert max(changed(crowd, free)) <= 72, "the crowd spills over its cell"
        assert (crowd != alone).any(axis=-1).sum() > 300
        for seat in range(seats):
            assert where(crowd, seat, slack=16).sum() > 30


def test_things_look_different_from_each_other() -> None:
    looks = [picture(frame(board(3, 3, r1c1=symbol))) for symbol in (".", "#", "S", "h", "D")]
    for i, one in enumerate(looks):
        for other in looks[:i]:
            assert (np.abs(one.astype(int) - other).max(axis=-1) > 20).sum() > 500
    free, _, stag, hare, _ = looks
    assert changed(stag, free)[1] > changed(hare, free)[1] * 1.3, "a stag is the larger animal"


def test_the_panel_follows_the_frame() -> None:
    base = frame(board(3, 3, r0c0="01"))
    before = picture(base)
    for other in (
        replace(base, step=4),
        replace(base, returns=(0.0, 9.0)),
        replace(base, players=("stag", "hop")),
        replace(base, doing=("", "hunt stag")),
        replace(base, note="episode 3"),
    ):
        differs = (before != picture(other)).any(axis=-1)
        assert differs.any()
        assert not differs[:, :BOARD].any()


def test_the_time_bar_fills_with_the_steps() -> None:
    dark = np.array(ImageColor.getrgb(INK))
    images = [picture(frame(board(3, 3, r0c0="01"), step=step)) for step in (0, 5, 10)]
    none, half, full = ((image == dark).all(axis=-1).sum(axis=1).max() for image in images)
    assert none < 10
    assert full > 200
    assert abs(half - full / 2) < 8


def test_long_names_are_cut_and_do_not_touch_the_return() -> None:
    base = frame(board(3, 3, r0c0="01"), players=("x" * 200, "hop"))
    long = picture(base)
    assert (long == picture(replace(base, players=("x" * 300, "hop")))).all()
    short = picture(replace(base, players=("x", "hop")))
    more = picture(replace(base, players=("x", "hop"), returns=(8.0, 1.0)))
    name = (long != short).any(axis=(0, 2))
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
    assert where(shown[4], 0).any()
    assert not where(shown[5], 0).any()


def test_gif_is_small(tmp_path: Path) -> None:
    rng, place, frames = np.random.default_rng(0), np.array([27, 36, 9, 54]), []
    for step in range(18):
        cells = ["#" if i % 11 == 5 else "." for i in range(64)]
        for what, i in zip(("0", "1", "S", "h"), place, strict=True):
            cells[i] = cells[i].strip(".#") + what
        rows = "\n".join(" ".join(cells[i : i + 8]) for i in range(0, 64, 8))
        frames.append(frame(rows, step=step, horizon=35, doing=tuple(rng.choice(NAMES[:4], 2))))
        place = (place + rng.choice([-8, -1, 1, 8], 4)) % 64
    save_gif(tmp_path / "a.gif", frames)
    assert (tmp_path / "a.gif").stat().st_size < 120_000


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
    assert starts[0] == starts[1] == starts[2]
    assert len(starts[0]) == 3
    assert [line.split() for line in rest[:3]] == [
        line.split() for line in shown.layout.split("\n")
    ]
    assert rest[4].split() == ["0", "stag", "up"]
    assert rest[8].endswith("left the board")
    assert rest[4].index("up") == rest[5].index("left") == rest[6].index("hunt")


def test_terminal_colours_tell_seats_and_things_apart() -> None:
    text = terminal(frame("0 1 2 3 4 5 6 7 S h D # .", 8), colour=True)
    styles = {symbol: style for style, symbol in re.findall(r"\x1b\[([0-9;]+)m(.)", text)}
    assert len(set(styles.values()) - {"0"}) == 13
    for seat, colour in enumerate(PALETTE):
        assert "48;2;{};{};{}".format(*ImageColor.getrgb(colour)) in styles[str(seat)]


@pytest.mark.parametrize("show", [picture, lambda f: terminal(f, colour=False)])
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (frame("0 1 ?"), r"'\?'"),
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
