"""Ctrl-C that waits for a good moment."""

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
