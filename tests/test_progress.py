"""Progress with and without a terminal, and the watchdog behind it."""

import io
import time

import pytest

from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import Watchdog, stalled
from hopplus.runtime import SCHEDULER_FLAG


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_without_a_terminal() -> None:
    stream = io.StringIO()
    with Progress("playing", 100, "games", stream, every=0.0) as progress:
        progress.advance(25, "mean 1.5")
        progress.advance(50, "mean 2.5")
    first, second = stream.getvalue().splitlines()
    assert first == "playing: 25 of 100 games, started in 0 s (mostly compilation), mean 1.5"
    assert second.startswith("playing: 75 of 100 games, ")
    assert second.endswith(" s left, mean 2.5")
    assert "\x1b" not in stream.getvalue()


def test_quiet_when_it_is_soon_over() -> None:
    stream = io.StringIO()
    with Progress("playing", 100, "games", stream) as progress:
        progress.advance(100)
    assert stream.getvalue() == ""


def test_bar_on_a_terminal() -> None:
    stream = Terminal()
    with Progress("playing", 100, "games", stream) as progress:
        progress.advance(40, "mean 1.5")
        time.sleep(0.6)
    shown = stream.getvalue()
    assert "40/100" in shown
    assert "mean 1.5" in shown
    assert "games/s" in shown


class Clocks:
    """Time that a test turns on by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.worked = 0.0
        self.said: list[str] = []
        self.watchdog = Watchdog(60.0, self.said.append, lambda: self.now, lambda: self.worked)

    def turn(self, seconds: float, working: float = 0.0) -> None:
        self.now += seconds
        self.worked += working
        self.watchdog.check()


def test_idle_for_a_minute_is_reported_once() -> None:
    clocks = Clocks()
    clocks.turn(59)
    assert clocks.said == []
    clocks.turn(2)
    clocks.turn(61)
    assert len(clocks.said) == 1
    assert "no progress and no processor time for 61 s" in clocks.said[0]
    clocks.watchdog.beat()
    clocks.turn(61)
    assert len(clocks.said) == 2


def test_work_and_progress_are_not_reported() -> None:
    clocks = Clocks()
    for _ in range(10):
        clocks.turn(59)
        clocks.watchdog.beat()
    for _ in range(10):
        clocks.turn(61, working=30)
    assert clocks.said == []
    clocks.turn(61)  # it worked, and then stopped
    assert len(clocks.said) == 1


def test_a_thread_watches() -> None:
    said: list[str] = []
    with Watchdog(0.2, said.append):
        time.sleep(1.0)
    assert len(said) == 1
    with Watchdog(0.2, said.append):
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            pass
    assert len(said) == 1


def test_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "")
    assert f"set XLA_FLAGS={SCHEDULER_FLAG}=false" in stalled(60)
    monkeypatch.setenv("XLA_FLAGS", f"{SCHEDULER_FLAG}=false")
    assert "already switched off" in stalled(60)
