"""Progress with and without a terminal, and the watchdog behind it."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hopplus.cli.train import carry_on
from hopplus.learning.from_run import new_run
from hopplus.presets import PRESETS
from hopplus.runs import progress as progress_module
from hopplus.runs.progress import Progress
from hopplus.runs.progress_line import Standing, count_text, rate_text, time_text
from hopplus.runs.watchdog import Watchdog, stalled
from hopplus.runtime import SCHEDULER_FLAG


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_without_a_terminal() -> None:
    stream = io.StringIO()
    with Progress("playing", 100, "games", stream, every=0.0) as progress:
        progress.advance(25, "mean 1.5")
        time.sleep(0.1)
        progress.advance(50, "mean 2.5")
    first, second = stream.getvalue().splitlines()
    assert first == "playing: 25 of 100 games (25%), ? left, mean 1.5"
    assert re.fullmatch(r"playing: 75 of 100 games \(75%\), \d+/s, 0 s left, mean 2\.5", second)
    assert "\x1b" not in stream.getvalue()


def test_quiet_when_it_is_soon_over() -> None:
    stream = io.StringIO()
    with Progress("playing", 100, "games", stream) as progress:
        progress.advance(100)
    assert stream.getvalue() == ""


def test_the_folder_is_named_at_once() -> None:
    stream = io.StringIO()
    with Progress("training", 1_000_000, "steps", stream, where=Path("runs/first")):
        assert stream.getvalue() == "training: runs/first, 1,000,000 steps; compiling ...\n"
    terminal = Terminal()
    with Progress("training", 1_000_000, "steps", terminal, where=Path("runs/first")):
        assert terminal.getvalue().startswith("training: runs/first, 1,000,000 steps\n")


def test_compiling_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "QUIET", 0.1)
    monkeypatch.setattr(progress_module, "STILL", 0.5)
    stream = io.StringIO()
    with Progress("evaluating", 2000, "episodes", stream, every=0.0):
        time.sleep(0.3)
        assert stream.getvalue() == "evaluating: 2,000 episodes; compiling ...\n"
        time.sleep(1.0)
    assert set(stream.getvalue().splitlines()[1:]) <= {
        "evaluating: still compiling, 0 s",
        "evaluating: still compiling, 1 s",
    }
    assert 1 <= stream.getvalue().count("still") <= 2


SHOWN = """
import sys, time
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say
try:
    with Progress("training", 1_000_000, "steps") as progress:
        for _ in range(2):
            progress.advance(94_208, "return 2.31 (seats 2.31 2.30 2.28 2.35)")
            time.sleep(0.4)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    say("stopped")
"""


def on_terminal(columns: int, **environment: str) -> str:
    """All that a terminal of so many columns is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.Popen(
        [sys.executable, "-c", SHOWN],
        env=known | {"TERM": "xterm", "PYTHONIOENCODING": "utf-8"} | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the end, on Linux
            more = b""
        if not more:
            break
        sent += more
    os.close(ours)
    assert process.wait() == 0
    return sent.decode("utf-8", "replace")


def lines_of(sent: str) -> list[str]:
    """What stood on the terminal, line after line, without colours and movements."""
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", sent)
    return [line for line in re.split(r"[\r\n]+", plain) if line]


@pytest.mark.parametrize(
    ("columns", "piece"),
    [
        (40, "training  18%  188k/1.0M  "),
        (60, "─  18%  188k/1.0M  "),
        (80, "─  18%  188k of 1.0M steps  "),
        (140, "k/s  3 s left  return 2.31 (seats 2.31 2.30 2.28 2.35)"),
    ],
)
def test_one_line_on_a_terminal(columns: int, piece: str) -> None:
    """It fits, is wiped away, and nothing follows what is said afterwards."""
    sent = on_terminal(columns)
    *bars, last = lines_of(sent)
    assert last == "hopplus: stopped"
    assert sent.endswith("\x1b[1A\x1b[2Khopplus: stopped\r\n")  # where the bar stood
    assert all(len(bar) < columns for bar in bars)
    assert any(piece in bar for bar in bars), bars
    assert all("training  " in bar and ("left" in bar or "compiling" in bar) for bar in bars)


def test_terminals_that_can_do_less() -> None:
    letters = on_terminal(80, PYTHONIOENCODING="latin-1")
    assert letters.isascii()
    assert any("##-" in line for line in lines_of(letters))
    assert "\x1b" not in on_terminal(80, TERM="dumb")
    assert not re.search(r"\x1b\[[\d;]+m", on_terminal(80, NO_COLOR="1"))


STANDING = Standing("diagnosing the value loss", 7, 1200, "pieces", 0.2, 5965.0, "update 7 of 400")


def test_a_line_is_never_too_wide() -> None:
    """And has whole numbers in it, whatever is left out."""
    for width in range(28, 160):
        check_line(width)


def check_line(width: int) -> None:
    line = STANDING.line(width, "*").plain
    assert len(line) <= width
    assert line.startswith("* d")
    assert "0%" in line
    assert line.endswith("1 h 39 min left") or "1 h 39 min left  update 7" in line
    assert set(re.findall(r"[\d,.]+", line)) <= {"0", "7", "1,200", "12", "1", "39", "400"}


def test_what_is_less_wanted_goes_first() -> None:
    widths = (110, 100, 90, 80, 65, 55, 40)
    assert [STANDING.line(width, "*", ascii_only=True).plain for width in widths] == [
        "* diagnosing the value loss  ----------------  0%  7 of 1,200 pieces  12/min"
        "  1 h 39 min left  update 7 of 400",
        "* diagnosing the value loss  ----------------  0%  7/1,200  12/min  1 h 39 min left"
        "  update 7 of 400",
        "* diagnosing the value loss  ----------  0%  7/1,200  12/min  1 h 39 min left"
        "  update 7...",
        "* diagnosing the value loss  -------------  0%  7/1,200  12/min  1 h 39 min left",
        "* diagnosing the value loss  0%  7/1,200  12/min  1 h 39 min left",
        "* diagnosing the value loss  0%  1 h 39 min left",
        "* diagnosing the...  0%  1 h 39 min left",
    ]


def test_numbers_for_people() -> None:
    counts = (0, 999, 9_999, 10_000, 188_416, 999_499, 999_501, 1_000_000, 12_345_678, 4e9)
    texts = ["0", "999", "9,999", "10k", "188k", "999k", "1.0M", "1.0M", "12M", "4.0B"]
    assert [count_text(count) for count in counts] == texts
    times = (0.2, 45, 59.7, 200, 1500, 3599, 11_520, 86_399, 187_200, 90_606_385, None)
    assert [time_text(seconds) for seconds in times] == [
        "0 s",
        "45 s",
        "1 min",
        "3 min 20 s",
        "25 min",
        "1 h",
        "3 h 12 min",
        "1 d",
        "2 d 4 h",
        "more than a year",
        "?",
    ]
    assert time_text(float("inf")) == "?"
    rates = (12_345, 15.2, 3.21, 0.05, 0.0004, None)
    assert [rate_text(rate) for rate in rates] == ["12k/s", "15/s", "3.2/s", "3.0/min", "1.4/h", ""]


def test_no_time_left_is_made_up() -> None:
    """Units that come at once, as all of a resumed run do, say nothing about the rest."""
    with Progress("training", 10**9, "steps", io.StringIO()) as progress:
        progress.advance(1000)
        progress.advance(1)
        assert progress.standing().left is None
        assert progress.standing().rate is None


def test_stopping_is_the_last_word(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stopped(*_: object) -> None:
        time.sleep(0.3)
        raise KeyboardInterrupt

    run = new_run(tmp_path / "a", replace(PRESETS["ppo"], steps=10_000))
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("hopplus.api.training.train_side_by_side", stopped)
    assert carry_on(run, as_json=False) == 130
    last = f"hopplus: stopped; go on with: hopplus resume {run.path}\n"
    assert terminal.getvalue().endswith(f"\x1b[2K{last}")
    assert f"training: {run.path}, 8,192 steps" in terminal.getvalue()


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
