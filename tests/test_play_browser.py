"""The page of `hopplus play` in a real browser: keys, touch, thoughts, tabs, languages."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from browser import Opened, expect
from hopplus.cli.play.server import Server
from hopplus.evaluation.replay.session import Session, Table
from hopplus.recorded.played import Recording
from tiny_play import HUNT, choose, serving, table_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PERSON = 1
KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", " ", "s", "h"]


@pytest.fixture(scope="module")
def server(browser: "Browser") -> Iterator[Server]:
    with serving(table_of("stag,human,one")) as server:
        yield server


class Seat(Opened):
    """A tab, and the same session played without one, which says what is to be seen."""

    def __init__(self, browser: "Browser", server: Server, query: str = "", **options: Any) -> None:
        self.alone = Session(server.table, server._begun)
        super().__init__(browser, server.address + query, **options)
        self.clock = self.tab.locator(".play > div > .clock")
        self.tab.locator(".scores .token").first.wait_for()

    def check(self) -> None:
        """What is on the page is where the session stands."""
        shown = self.alone.shown()
        expect(self.clock).to_contain_text(re.compile(f"(step|第) {shown['step']} (of|步)"))
        cells = [tuple(cell) if cell else None for cell in shown["now"]["seats"]]
        board = self.tab.locator(".play svg.board").first
        assert [self.piece(seat, board) for seat in range(3)] == cells

    def moves(self) -> list[int]:
        """The ways that the person may go."""
        return [action for action in range(4) if self.alone.legal[action]]


@pytest.fixture
def seat(browser: "Browser", server: Server) -> Iterator[Seat]:
    seat = Seat(browser, server, viewport={"width": 1300, "height": 900}, has_touch=True)
    yield seat
    assert seat.wrong == []
    assert all(address.startswith(server.address) for address in seat.asked)
    seat.close()


def test_keys_move_the_piece(seat: Seat) -> None:
    seat.check()
    for _ in range(2):
        action = seat.moves()[0]
        seat.alone.act(action)
        seat.tab.keyboard.press(KEYS[action])
        seat.check()
    wrong = next(action for action in range(7) if not seat.alone.legal[action])
    seat.tab.keyboard.press(KEYS[wrong])  # nothing happens
    seat.check()
    seat.tab.keyboard.press(" ")
    seat.alone.act(4)
    seat.check()


def test_touch_moves_the_piece(seat: Seat) -> None:
    action = seat.moves()[0]
    seat.alone.act(action)
    seat.tab.locator(f".pad [data-action='{action}']").tap()
    seat.check()
    action = seat.moves()[-1]
    seat.alone.act(action)
    box = seat.tab.locator(".play svg.board").first.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    row, column = [(-1, 0), (1, 0), (0, -1), (0, 1)][action]
    finger = seat.context.new_cdp_session(seat.tab)
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + 60 * column, "y": y + 60 * row}]),
        ("touchEnd", []),
    ):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    seat.check()


def test_thoughts_are_shown_when_asked_for_and_at_the_end(seat: Seat) -> None:
    """And the chart of returns, and the episode once more; then the next one begins."""
    tab, rng = seat.tab, np.random.default_rng(0)
    opinion = tab.locator(".opinion[data-seat='2']")
    action = choose(seat.alone, rng)
    seat.alone.act(action)
    tab.keyboard.press(KEYS[action])
    seat.check()
    expect(opinion).to_be_hidden()
    tab.get_by_label("show what they think of me while I play").check()
    told = seat.alone.shown()["opinions"][2]
    expect(opinion).to_contain_text("Believes that you are after")
    expect(opinion.locator(".share.taken .number")).to_have_text(f"{told['predicted'][action]:.3f}")
    stag = opinion.locator(".share", has_text="stag").first.locator(".number")
    expect(stag).to_have_text(f"{told['about'][0]:.3f}")
    tab.get_by_label("show what they think of me while I play").uncheck()
    expect(tab.locator(".review")).to_be_hidden()
    while not seat.alone.over:
        action = choose(seat.alone, rng)
        gone = seat.alone.moments[-1]["seats"][PERSON] is None
        seat.alone.act(action)
        if gone:  # it goes on by itself
            continue
        tab.keyboard.press(KEYS[action])
        if seat.alone.moments[-1]["seats"][PERSON]:
            seat.check()
    expect(seat.clock).to_contain_text("the episode is over")
    seat.check()
    expect(tab.locator(".play .chart h3")).to_have_text("Returns by episode")
    expect(tab.locator(".review .replay")).to_be_visible()
    tab.keyboard.press("ArrowRight")  # of the replay, now
    expect(tab.locator(".review .clock")).to_contain_text("step 1 of")
    tab.keyboard.press("Enter")
    seat.alone.go_on()
    expect(seat.clock).to_contain_text("episode 2 of 2")
    expect(tab.locator(".review")).to_be_hidden()
    seat.check()
    action = seat.moves()[-1]  # left or right, of the board again
    tab.keyboard.press(KEYS[action])
    seat.alone.act(action)
    seat.check()
    assert tab.evaluate("document.querySelector('.view').play.replay.moment") == 1


def test_two_tabs_and_two_languages(browser: "Browser", server: Server, seat: Seat) -> None:
    """A second tab changes nothing in the first; a session goes on in the other language."""
    other = Seat(browser, server, color_scheme="dark", viewport={"width": 400, "height": 800})
    action = other.moves()[0]
    other.alone.act(action)
    other.tab.keyboard.press(KEYS[action])
    other.check()
    seat.check()
    other.tab.get_by_text("中文").click()
    expect(other.tab.locator(".scores .me")).to_contain_text("你")
    other.check()  # where it stood
    assert other.tab.url == f"{server.address}?language=zh"
    assert other.tab.evaluate("document.documentElement.scrollWidth") == 400
    background = "getComputedStyle(document.body).backgroundColor"
    assert other.tab.evaluate(background) == "rgb(22, 25, 29)"
    other.tab.reload()  # a session of its own
    expect(other.clock).to_contain_text("第 0 步")
    assert other.wrong == []
    other.close()


def test_nobody_is_recorded_unasked(browser: "Browser", server: Server, tmp_path: Path) -> None:
    """Nothing can be played before there is an answer, and yes can be taken back."""
    made = server.table
    recording = Recording(tmp_path / "data", HUNT, made.lineup.seating)
    with serving(Table(made.game, made.lineup, 0, recording)) as recorded:
        seat = Seat(browser, recorded)
        expect(seat.tab.locator(".consent")).to_contain_text(str(tmp_path / "data"))
        action = seat.moves()[0]
        expect(seat.tab.locator(f".pad [data-action='{action}']")).to_be_disabled()
        seat.tab.keyboard.press(KEYS[action])
        seat.check()
        seat.tab.get_by_text("Yes, record my episodes").click()
        expect(seat.tab.get_by_text("Your episodes are recorded.")).to_be_visible()
        (session, _) = next(iter(recorded._sessions.values()))
        assert session.shown()["consent"] is True
        seat.tab.keyboard.press(KEYS[action])
        seat.alone.act(action)
        seat.check()
        assert len(session.kept) == 1
        seat.tab.get_by_text("Stop recording").click()
        expect(seat.tab.locator(".consent")).to_be_hidden()
        assert session.shown()["consent"] is False
        assert session.kept == []
        assert seat.wrong == []
        seat.close()
