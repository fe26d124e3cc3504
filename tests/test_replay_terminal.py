"""`hopplus replay` in a terminal: keys lead where they say, and the terminal is left as it was."""

import fcntl
import io
import os
import pty
import re
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hopplus.cli import main
from hopplus.cli.replay import Replay
from hopplus.cli.replay.screen import ENTER, LEAVE, Screen, is_screen
from hopplus.cli.replay.viewer import Place, played_on, pressed, view
from hopplus.config import ConfigError
from tiny_replay import REPLAY

ESCAPE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


# Keys


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        (Place(), "n", Place(step=1)),
        (Place(step=3), "right", Place(step=3)),
        (Place(step=1, playing=True), "p", Place()),
        (Place(), "left", Place()),
        (Place(step=1), "end", Place(step=3)),
        (Place(step=2), "home", Place()),
        (Place(step=1), " ", Place(step=1, playing=True)),
        (Place(step=1, playing=True), " ", Place(step=1)),
        (Place(step=3), " ", Place(playing=True)),
        (Place(), "+", Place(speed=3)),
        (Place(speed=5), "+", Place(speed=5)),
        (Place(speed=0), "-", Place(speed=0)),
        (Place(), "\t", Place(seat=1)),
        (Place(seat=1), "\t", Place()),
        (Place(), "1", Place(seat=1)),
        (Place(), "2", Place()),
        (Place(step=2), "e", Place(episode=1)),
        (Place(episode=1), "]", Place()),
        (Place(step=2), "[", Place(episode=1)),
        (Place(), "?", Place(helping=True)),
        (Place(), "down", Place(scrolled=1)),
        (Place(), "unknown", Place()),
        (Place(), "²", Place()),
    ],
)
def test_where_keys_lead(before: Place, key: str, after: Place) -> None:
    assert pressed(before, key, REPLAY) == after


def test_playing_ends_with_the_episode() -> None:
    place = Place(playing=True)
    steps = []
    while place.playing:
        place = played_on(place, REPLAY)
        steps.append(place.step)
    assert steps == [1, 2, 3]
    assert pressed(place, "q", REPLAY) is None


# The terminal itself


class Terminal:
    """A terminal of its own, and someone who types."""

    def __init__(self, columns: int = 100, rows: int = 40) -> None:
        self.ours, theirs = pty.openpty()
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        self.keys = os.fdopen(theirs, "r")
        self.out = os.fdopen(os.dup(theirs), "w")
        self.said = ""
        self.before = self.settings()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def settings(self) -> Any:
        return termios.tcgetattr(self.keys)

    def _read(self) -> None:
        while True:
            try:
                found = os.read(self.ours, 4096)
            except OSError:
                return
            self.said += found.decode()

    def until(self, words: str, start: int = 0) -> None:
        """Wait until that is on the screen."""
        end = time.monotonic() + 10
        while words not in ESCAPE.sub("", self.said[start:]):
            assert time.monotonic() < end, f"{words!r} is not in {self.said[start:]!r}"
            time.sleep(0.005)

    def type(self, *pairs: tuple[str, str]) -> None:
        """Type keys, each when the words before it have come."""
        self.until("step 0/9")
        for keys, words in pairs:
            start = len(self.said)
            os.write(self.ours, keys.encode())
            if words:
                self.until(words, start)

    def given_back(self) -> bool:
        self.out.flush()
        end = time.monotonic() + 5
        while not self.said.endswith(LEAVE) and time.monotonic() < end:
            time.sleep(0.005)
        return self.said.endswith(LEAVE) and self.settings() == self.before


def typed(terminal: Terminal, typing: Callable[[], None]) -> None:
    """Look at the replay while someone else types; what they find wrong is found here."""
    wrong: list[BaseException] = []

    def types() -> None:
        try:
            typing()
        except BaseException as error:
            wrong.append(error)
            os.write(terminal.ours, b"q")

    other = threading.Thread(target=types)
    other.start()
    try:
        view(REPLAY, Screen(terminal.keys, terminal.out), colour=False)
    finally:
        other.join()
        if wrong:
            raise wrong[0]


def test_keys_are_told_apart() -> None:
    """All at once, in two halves, and keys that mean nothing; and when nobody is there any more."""
    terminal = Terminal()
    screen = Screen(terminal.keys, terminal.out)
    with screen.taken():
        os.write(terminal.ours, b"n\x1b[C\x1bOD\x1b[0n\x1b[1;5p\x1b[1~\t\x1b")
        named = ["n", "right", "left", "unknown", "unknown", "home", "\t", "\x1b"]
        assert [screen.key(1.0) for _ in named] == named
        assert screen.key(0.0) is None
        os.write(terminal.ours, b"\x1b")
        later = threading.Timer(0.01, lambda: os.write(terminal.ours, b"[4~"))
        later.start()
        assert screen.key(1.0) == "end"
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read) as gone:
        assert Screen(gone, terminal.out).key(1.0) == "q"


def test_lines_are_cut_to_the_screen() -> None:
    terminal = Terminal(columns=20, rows=5)
    screen = Screen(terminal.keys, terminal.out)
    lines = ["\x1b[1;31m" + "x" * 30 + "\x1b[0m", *["y"] * 10]
    for _ in range(2):
        screen.draw(lines)
    terminal.until("y\r\ny\r\ny\r\ny")
    time.sleep(0.05)
    assert terminal.said.count("y") == 4  # drawn once
    assert ESCAPE.sub("", terminal.said).split("\r\n")[0] == "x" * 19


def test_a_person_at_the_keys() -> None:
    terminal = Terminal()
    typed(
        terminal,
        lambda: terminal.type(
            ("\x1b[C", "step 1/9"),
            ("\x1bOC", "step 2/9"),
            ("\x1b[D", "step 1/9"),
            ("\x1b[4~", "step 3/9"),
            ("\x1b[5~\x1b[H", "step 0/9"),  # page up means nothing
            ("1", "seat 1, run?[31m?@1"),
            ("\t", "seat 0, run@0"),
            ("?", "faster, slower"),
            ("?", "about to right"),
            ("+++ ", "step 3/9"),
            ("]", "worst episode, number 3"),
            ("q", ""),
        ),
    )
    assert terminal.given_back()
    assert terminal.said.startswith(ENTER)


def test_small_terminals_are_scrolled() -> None:
    terminal = Terminal(columns=40, rows=8)
    typed(
        terminal,
        lambda: terminal.type(("\x1b[B" * 30, "1 stays, leaves"), ("q", "")),
    )
    frames = terminal.said.split("\x1b[H")[1:]
    assert "(down for more)" in frames[0]
    assert "(down for more)" not in frames[-1]
    assert "1 stays, leaves" in frames[-1]
    assert max(frame.count("\n") for frame in frames) == 7
    assert max(len(ESCAPE.sub("", line)) for frame in frames for line in frame.split("\n")) < 41


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)],
)
def test_whatever_ends_it_gives_the_terminal_back(number: Any, error: Any) -> None:
    terminal = Terminal()
    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGTSTP, signal.SIGHUP)]

    def stop() -> None:
        terminal.type(("n", "step 1/9"))
        assert terminal.settings() != terminal.before
        os.kill(os.getpid(), number)
        assert terminal.given_back()

    with pytest.raises(error):
        typed(terminal, stop)
    assert terminal.given_back()
    found = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGTSTP, signal.SIGHUP)]
    assert found == handlers


def test_an_error_gives_the_terminal_back() -> None:
    terminal = Terminal()
    with pytest.raises(KeyError):
        view({**REPLAY, "episodes": [{}]}, Screen(terminal.keys, terminal.out), colour=False)
    assert terminal.given_back()


def test_without_a_terminal_there_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    assert is_screen(terminal.keys, terminal.out)
    assert not is_screen(terminal.keys, io.StringIO())
    with monkeypatch.context() as patch:
        patch.setenv("TERM", "dumb")
        assert not is_screen(terminal.keys, terminal.out)
    monkeypatch.setattr("hopplus.cli.replay.screen.termios", None)  # as on Windows
    assert not is_screen(terminal.keys, terminal.out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seat": 4}, "--seat is 4 but must be from 0 to 3"),
        ({"seat": 1, "out": Path("x.gif")}, "--out is for pictures"),
        ({"json": True, "out": Path("x.gif")}, "--out is for pictures"),
        ({"episode": -1}, "--episode is -1 but"),
        ({"among": 0}, "--among is 0 but"),
        ({"among": 9, "episode": 0}, "--among picks episodes"),
        ({"among": 9, "layout": Path("x.txt")}, "--among picks episodes"),
    ],
)
def test_what_does_not_go_together_is_said(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        Replay(players="stag,stag,hare,hare", **options).run()


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As text where it is piped, and with keys in a terminal; the same moments."""
    board = tmp_path / "board.txt"
    board.write_text("0 . .\n. 1h .\n. . h\n")
    game = "--game.size 3 --game.seats 2 --game.hares 2 --game.horizon 9"
    command = ["replay", "--players", "hare,hare", "--layout", str(board), *game.split()]
    assert main([*command, "--seat", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("episode 0  step 0/9")
    assert "seat 1, hare\nno value, about to hunt hare\n" in text
    assert "seat 1, hare\nhas left the board\n" in text

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdin", terminal.keys)
    monkeypatch.setattr(sys, "stdout", terminal.out)

    def types() -> None:
        terminal.until("step 0/9")
        os.write(terminal.ours, b"1n")
        terminal.until("has left the board")
        os.write(terminal.ours, b"q")

    other = threading.Thread(target=types)
    other.start()
    assert main([*command, "--seat", "0"]) == 0
    other.join()
    assert terminal.given_back()
    assert "seat 0, hare" in terminal.said
    assert "about to hunt hare" in terminal.said
