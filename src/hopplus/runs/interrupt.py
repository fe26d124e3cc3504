"""Ctrl-C that waits for a good moment, and other requests to end."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def patient_interrupt() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C wait until the work in flight is done and asks; a second one does not wait."""
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:  # not the main thread: whoever runs us handles interrupts
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def ending_once() -> Iterator[None]:
    """Let SIGTERM and a terminal that is closed unwind the stack as Ctrl-C does, so that what is
    kept for the end is written; while that is done, nothing interrupts it again."""
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]

    def end(number: int, frame: object) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    before = [signal.signal(one, end) for one in numbers]
    try:
        yield
    finally:
        for one, earlier in zip(numbers, before, strict=True):
            signal.signal(one, earlier)
