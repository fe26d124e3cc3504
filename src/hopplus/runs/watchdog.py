"""Says so in words when long work has silently stopped."""

import os
import sys
import threading
import time
from collections.abc import Callable

from hopplus.runtime import SCHEDULER_FLAG

BUSY = 0.05  # processor seconds per second below which a program does nothing but redraw its bar


def say(message: str) -> None:
    print(f"hopplus: {message}", file=sys.stderr, flush=True)


class Watchdog:
    """Watches for a time with neither progress nor processor time, and reports it once.

    Call `beat` at every bit of progress. The clocks can be replaced for tests.
    """

    def __init__(
        self,
        limit: float = 60.0,
        report: Callable[[str], None] = say,
        clock: Callable[[], float] = time.monotonic,
        processor_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self.limit = limit
        self._report = report
        self._clock = clock
        self._processor_clock = processor_clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self.beat()

    def beat(self) -> None:
        """There was progress just now."""
        self._mark()
        self._reported = False

    def check(self) -> None:
        """Report if the limit has passed without progress and without processor time."""
        waited = self._clock() - self._since
        if waited < self.limit:
            return
        worked = self._processor_clock() - self._worked
        if worked > BUSY * waited:
            self._mark()  # it computes: look again after another such time
        elif not self._reported:
            self._reported = True
            self._report(stalled(waited))

    def _mark(self) -> None:
        self._since = self._clock()
        self._worked = self._processor_clock()

    def _watch(self) -> None:
        while not self._stop.wait(self.limit / 20):
            self.check()

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


def stalled(seconds: float) -> str:
    """What is wrong, and what to try."""
    flags = os.environ.get("XLA_FLAGS", "")
    safe = f"{SCHEDULER_FLAG}=false" in flags
    advice = (
        "its known cause is already switched off here, so please report this"
        if safe
        else f"set XLA_FLAGS={SCHEDULER_FLAG}=false, which is not set here, and start again"
    )
    return (
        f"no progress and no processor time for {seconds:.0f} s; the program has probably"
        " deadlocked inside XLA, which happens on CPUs with few cores (jax issue 25861):"
        f" end it (Ctrl-C, then Ctrl-\\ if it does not answer); {advice}"
    )
