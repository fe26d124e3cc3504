"""How long work shows itself: a bar on a terminal, a plain line now and then without one."""

import sys
import threading
import time
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from hopplus.runs.progress_line import Standing, time_text
from hopplus.runs.watchdog import Watchdog

QUIET = 2.0  # seconds within which work that writes nothing may end without a word
STILL = 30.0  # seconds after which something is said even if nothing has happened
SELDOM = 60.0  # seconds between lines of work that takes hours
MEASURED = 0.05  # seconds from which on a rate means something


class Progress:
    """Long work on `total` units; goes to stderr, so that stdout stays for results.

    Also sets a watchdog on the work. `where` is the folder or file it writes, which is named at
    once; `first` is what happens before the first units are done. Units that are not `even`, as
    some take seconds and others minutes, tell no rate and no time left. `note` is what a person
    wants to see along with the figures.
    """

    def __init__(
        self,
        what: str,
        total: int,
        unit: str,
        stream: TextIO | None = None,
        every: float = 10.0,
        watched: bool = True,
        where: Path | None = None,
        first: str = "compiling",
        even: bool = True,
    ) -> None:
        stream = sys.stderr if stream is None else stream
        self.what, self.total, self.unit, self.done = what, total, unit, 0
        self.where, self.first, self.note, self.even = where, first, "", even
        self._stream, self._every = stream, every
        self._watchdog = Watchdog() if watched else None
        self._entered = self._began = self._last = self._spoke = time.monotonic()
        self._rate: float | None = None
        self._announced = False
        self._lock, self._over = threading.Lock(), threading.Event()
        self._teller: threading.Thread | None = None
        self._bar: Live | None = None
        console = Console(file=stream)
        if stream.isatty() and not console.is_dumb_terminal:
            self._console = console
            self._spinner = Spinner("dots" if self._can_draw else "line")
            self._bar = Live(
                get_renderable=self._line,
                console=console,
                refresh_per_second=4,
                transient=True,
                # What is printed meanwhile stands above the bar; but results for a pipe stay there.
                redirect_stdout=sys.stdout.isatty(),
            )

    @property
    def _can_draw(self) -> bool:
        return self._console.encoding.startswith("utf")

    def __enter__(self) -> "Progress":
        if self._watchdog:
            self._watchdog.__enter__()
        self._entered = self._began = self._last = self._spoke = time.monotonic()
        if self.where is not None:
            self._announce()
        if self._bar:
            self._bar.start(refresh=True)
        else:
            self._teller = threading.Thread(target=self._tell, name="progress", daemon=True)
            self._teller.start()
        return self

    def advance(self, units: int, note: str = "") -> None:
        """So many more units are done; the first come after compilation and count for no rate."""
        with self._lock:
            self._last = time.monotonic()
            if self.done == 0:
                self._began, self._uncounted = self._last, units
            self.done += units
            self.note = note
            spent = self._last - self._began
            if self.even and spent >= MEASURED and self.done > self._uncounted:
                self._rate = (self.done - self._uncounted) / spent
            # In a log of hours a line every few seconds is too much.
            pause = max(self._every, min(SELDOM, (self._last - self._entered) / 20))
            if not self._bar and self._last - self._spoke >= pause:
                self._speak()
        if self._watchdog:
            self._watchdog.beat()

    def standing(self) -> Standing:
        """Where the work stands now."""
        now = time.monotonic()
        doing = ""
        if self.done == 0:
            doing = f"{self.first}, {time_text(now - self._entered)}"
        left = 0.0 if self.done >= self.total else None
        if self._rate and left is None:
            left = max((self.total - self.done) / self._rate - (now - self._last), 0.0)
        if not self.even:
            doing = doing or f"{time_text(now - self._entered)} so far"
        return Standing(
            self.what, self.done, self.total, self.unit, self._rate, left, self.note, doing
        )

    def _announce(self) -> None:
        """Say what is being done, and where."""
        self._announced = True
        where = f"{self.where}, " if self.where else ""
        more = "" if self._bar else f"; {self.first} ..."
        self._print(f"{self.what}: {where}{self.total:,} {self.unit}{more}")

    def _speak(self) -> None:
        self._spoke = time.monotonic()
        self._announced = True
        if self.done:
            self._print(self.standing().plain())
        else:
            spent = time_text(self._spoke - self._entered)
            self._print(f"{self.what}: still {self.first}, {spent}")

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def _tell(self) -> None:
        """Without a terminal: say that it has begun unless it is soon over, and that it goes on."""
        while not self._over.wait(min(QUIET, STILL) / 10):
            with self._lock:
                now = time.monotonic()
                if not self._announced and now - self._entered >= QUIET:
                    self._announce()
                elif now - self._spoke >= max(STILL, self._every):
                    self._speak()

    def _line(self) -> Text:
        """For a terminal of its present width; the last column stays free, where some wrap."""
        mark = self._spinner.render(time.monotonic())
        assert isinstance(mark, Text)
        width = self._console.width - 1
        return self.standing().line(width, mark.plain, ascii_only=not self._can_draw)

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._teller:
            self._teller.join()
        if self._bar:
            self._bar.stop()
        if self._watchdog:
            self._watchdog.__exit__(*error)
