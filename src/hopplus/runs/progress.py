"""How long work shows itself: a bar on a terminal, a plain line now and then without one."""

import sys
import time
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from hopplus.runs.watchdog import Watchdog


def rate_text(rate: float) -> str:
    """A rate for people: `12,345`, `3.2`, `0.08`."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{rate_text(task.speed or 0)} {self.unit}/s", style="cyan")


class Progress:
    """Long work on `total` units; goes to stderr, so that stdout stays for results.

    Also sets a watchdog on the work. `note` is what a person wants to see beside the bar.
    """

    def __init__(
        self,
        what: str,
        total: int,
        unit: str,
        stream: TextIO | None = None,
        every: float = 10.0,
        watched: bool = True,
    ) -> None:
        stream = sys.stderr if stream is None else stream
        self.what, self.total, self.unit, self.done = what, total, unit, 0
        self._stream, self._every = stream, every
        self._watchdog = Watchdog() if watched else None
        self._bar: Bar | None = None
        if stream.isatty():
            console = Console(file=stream)
            wide = console.width >= 100
            self._bar = Bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                *[BarColumn()] * wide,
                MofNCompleteColumn(),
                _Rate(unit),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=console,
                refresh_per_second=4,
                transient=True,
            )

    def __enter__(self) -> "Progress":
        if self._watchdog:
            self._watchdog.__enter__()
        self._entered = self._began = self._spoke = time.monotonic()
        if self._bar:
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=self.total, note="compiling")
        return self

    def advance(self, units: int, note: str = "") -> None:
        """So many more units are done; the first come after compilation and count for no rate."""
        if self.done == 0:
            self._began, self._uncounted = time.monotonic(), units
            self._compiled = self._began - self._entered
        self.done += units
        if self._watchdog:
            self._watchdog.beat()
        if self._bar:
            self._bar.update(self._task, advance=units, note=note)
        elif time.monotonic() - self._spoke >= self._every:
            self._spoke = time.monotonic()
            self._line(note)

    def _line(self, note: str) -> None:
        counted = self.done - self._uncounted
        rate = counted / max(time.monotonic() - self._began, 1e-9)
        pace = f"started in {self._compiled:.0f} s (mostly compilation)"
        if counted:
            left = (self.total - self.done) / rate
            pace = f"{rate_text(rate)} a second, {left:,.0f} s left"
        print(
            f"{self.what}: {self.done:,} of {self.total:,} {self.unit}, {pace}"
            f"{', ' * bool(note)}{note}",
            file=self._stream,
            flush=True,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()
        if self._watchdog:
            self._watchdog.__exit__(kind, error, trace)
