"""The words of progress: counts, rates and times for people, and one line that fits its width."""

import math
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP = 2  # spaces between the pieces of a line
LONGEST_BAR = 30
SHORTEST_BAR = 8
DAY = 86_400
PERIODS = {1: "s", 60: "min", 3600: "h"}


def count_text(count: float) -> str:
    """A count for people: `9,999`, `188k`, `1.0M`."""
    if round(count) < 10_000:
        return f"{round(count):,}"
    for size, letter in ((1e3, "k"), (1e6, "M"), (1e9, "B"), (1e12, "T")):
        if count / size < 9.95:
            return f"{count / size:.1f}{letter}"
        if count / size < 999.5:
            return f"{count / size:.0f}{letter}"
    return f"{count:.1e}"


def time_text(seconds: float | None) -> str:
    """A time for people: `45 s`, `3 min 20 s`, `3 h 12 min`, `2 d 4 h`; `?` if nobody knows."""
    if seconds is None or not math.isfinite(seconds):
        return "?"
    whole = round(max(seconds, 0))
    if whole < 60:
        return f"{whole} s"
    if whole < 600:
        return _pair(whole, 60, "min", "s")
    if whole < 3600 - 30:
        return f"{round(whole / 60)} min"
    if whole < DAY - 30:
        return _pair(round(whole / 60), 60, "h", "min")
    if whole < 365 * DAY:
        return _pair(round(whole / 3600), 24, "d", "h")
    return "more than a year"


def _pair(whole: int, size: int, large: str, small: str) -> str:
    first, rest = divmod(whole, size)
    return f"{first} {large} {rest} {small}" if rest else f"{first} {large}"


def rate_text(rate: float | None) -> str:
    """A rate for people: `12k/s`, `3.2/min`, `1.5/h`; nothing if nobody knows."""
    if rate is None or not math.isfinite(rate):
        return ""
    period = next((period for period in PERIODS if rate * period >= 1), 3600)
    shown = rate * period
    number = count_text(shown) if shown >= 9.95 else f"{shown:.1f}"
    return f"{number}/{PERIODS[period]}"


@dataclass(frozen=True)
class Standing:
    """Where some work stands."""

    what: str
    done: int
    total: int
    unit: str
    rate: float | None  # units a second, if known yet
    left: float | None  # seconds, if known yet
    note: str = ""
    doing: str = ""  # instead of the time left, where nobody can know it

    @property
    def percent(self) -> str:
        # Rounded down: 100% is only what is done.
        return f"{100 * self.done // self.total if self.total else 100}%"

    @property
    def left_text(self) -> str:
        return f"{time_text(self.left)} left"

    def plain(self) -> str:
        """A line for a file."""
        counts = f"{count_text(self.done)} of {count_text(self.total)} {self.unit}"
        time = self.doing or self.left_text
        pieces = [f"{counts} ({self.percent})", rate_text(self.rate), time, self.note]
        return f"{self.what}: {', '.join(piece for piece in pieces if piece)}"

    def line(self, width: int, mark: str = "", ascii_only: bool = False) -> Text:
        """One line for a terminal, never wider than that.

        What is being done, how much of it and the time left always have a place; then, each if
        there is room, the counts, the rate, a bar, the note, and the counts at length.
        """
        cut = "..." if ascii_only else "…"
        done, total = count_text(self.done), count_text(self.total)
        pieces = dict.fromkeys(("what", "bar", "percent", "counts", "rate", "left", "note"), "")
        pieces |= {"percent": self.percent, "left": self.doing or self.left_text}
        start = f"{mark} " if mark else ""

        def room(name: str) -> int:
            """Cells for a piece, with all others as they are."""
            others = [piece for other, piece in pieces.items() if piece and other != name]
            return width - cell_len(start) - sum(cell_len(piece) + GAP for piece in others)

        def put(name: str, text: str) -> None:
            if cell_len(text) <= room(name):
                pieces[name] = text

        space = room("what")
        short = _shortened(self.what, space, cut)
        pieces["what"] = short or set_cell_size(self.what, max(space - len(cut), 0)).strip() + cut
        put("counts", f"{done}/{total}")
        put("rate", "" if self.doing else rate_text(self.rate))
        put("bar", " " * SHORTEST_BAR)
        pieces["note"] = _shortened(self.note, room("note"), cut)
        put("counts", f"{done} of {total} {self.unit}")
        if pieces["bar"]:
            pieces["bar"] = " " * min(room("bar"), LONGEST_BAR)
        text = Text(start, "green", no_wrap=True, overflow="crop", end="")
        for name, piece in pieces.items():
            if not piece:
                continue
            if len(text) > len(start):
                text.append(" " * GAP)
            if name == "bar":
                full = len(piece) * self.done // self.total if self.total else len(piece)
                strong, weak = ("#", "-") if ascii_only else ("━", "─")
                text.append(strong * full, "magenta")
                text.append(weak * (len(piece) - full), "bright_black")
            else:
                text.append(piece, "" if name in ("what", "note") else "cyan")
        text.truncate(width)  # of terminals too narrow for anything
        return text


def _shortened(text: str, width: int, cut: str) -> str:
    """As much of a text as fits: all, up to a bracket or a comma, or half of its words and more;
    nothing else says anything, and a number is never cut."""
    if cell_len(text) <= width:
        return text
    for sign in (" (", "; ", ", "):
        head = text.split(sign)[0]
        if head != text and cell_len(head) <= width:
            return head
    words = text.split(" ")
    for count in range(len(words) - 1, 0, -1):
        head = " ".join(words[:count]) + cut
        if cell_len(head) <= width and 2 * count >= len(words):
            return head
    return ""
