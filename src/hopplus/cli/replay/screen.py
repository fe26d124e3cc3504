"""A terminal taken over for a while: keys come in, lines go out, and it is left as it was."""

import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from rich.console import Console
from rich.text import Text

try:
    import termios
    import tty
except ImportError:  # not on Windows
    termios = None  # type: ignore[assignment]

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
ESCAPES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
}
SOON = 0.05  # seconds in which the rest of a key comes


def is_screen(keys: TextIO, out: TextIO) -> bool:
    """Whether both are a terminal that can be taken over."""
    able = termios is not None and os.environ.get("TERM", "dumb") != "dumb"
    return able and keys.isatty() and out.isatty()


class Screen:
    """One terminal, with keys from one stream and lines to another."""

    def __init__(self, keys: TextIO, out: TextIO) -> None:
        self._keys, self._out = keys.fileno(), out
        self._waiting = ""  # letters that are read and not yet taken
        self._drawn: tuple[object, ...] = ()

    @property
    def size(self) -> os.terminal_size:
        """Columns and lines; what is usual where the terminal does not know."""
        size = os.get_terminal_size(self._out.fileno())
        return size if size.columns and size.lines else shutil.get_terminal_size()

    @contextmanager
    def taken(self) -> Iterator["Screen"]:
        """Take the terminal over; whatever happens then, it is given back."""
        before = termios.tcgetattr(self._keys)

        def take() -> None:
            tty.setcbreak(self._keys)
            self._write(ENTER)
            self._drawn = ()

        def give_back() -> None:
            with suppress(OSError, termios.error):  # it may be gone
                termios.tcsetattr(self._keys, termios.TCSADRAIN, before)
                self._write(LEAVE)

        def stopped(number: int, frame: FrameType | None) -> None:
            """Ctrl-Z: the shell wants its terminal meanwhile."""
            give_back()
            os.kill(os.getpid(), signal.SIGSTOP)
            take()

        def ended(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        handlers = {signal.SIGTSTP: stopped, signal.SIGTERM: ended, signal.SIGHUP: ended}
        kept = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        take()
        try:
            yield self
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)
            give_back()

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines, which may have colours, cut to the screen; nothing is drawn twice."""
        columns, rows = self.size
        if self._drawn == (columns, rows, *lines):
            return
        self._drawn = (columns, rows, *lines)
        # The last column stays free: to write there makes some terminals wrap.
        console = Console(file=self._out, width=max(columns - 1, 1), highlight=False)

        def cut(line: str) -> str:
            with console.capture() as shown:
                console.print(Text.from_ansi(line), end="", no_wrap=True, overflow="crop")
            return shown.get()

        below = "\x1b[K\n".join(cut(line) for line in lines[:rows])
        self._write(f"\x1b[H{below}\x1b[J")

    def key(self, seconds: float) -> str | None:
        """The next key, by its name or letter; None if there is none so soon. `q` when there is
        nobody left to press any."""
        if not self._waiting and not self._read(seconds):
            return None
        while self._waiting in ("\x1b", "\x1b[", "\x1bO") or (
            self._waiting.startswith("\x1b[") and self._waiting[2:].isdigit()
        ):
            if not self._read(SOON):
                break
        text = self._waiting.replace("\x1bO", "\x1b[")
        for escape, name in ESCAPES.items():
            if text.startswith(escape):
                self._waiting = text[len(escape) :]
                return name
        if text.startswith("\x1b["):  # some other key: up to its last letter
            end = next((place for place, c in enumerate(text[2:], 2) if "@" <= c <= "~"), len(text))
            self._waiting = text[end + 1 :]
            return "unknown"
        self._waiting = text[1:]
        return text[0]

    def _read(self, seconds: float) -> bool:
        """Whether anything more has come."""
        ready, _, _ = select.select([self._keys], [], [], seconds)
        if not ready:
            return False
        try:
            found = os.read(self._keys, 64)
        except OSError:  # the terminal is gone
            found = b""
        self._waiting += found.decode(errors="replace") or "q"
        return True

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def standard_screen() -> Screen | None:
    """The terminal that the program runs in, if it is one."""
    return Screen(sys.stdin, sys.stdout) if is_screen(sys.stdin, sys.stdout) else None
