"""What a command found, said once: a page of sentences, tables, figures and raw numbers.

A command computes a `Page`; `terminal.py`, `html.py` and `json.py` show it to a person at a
terminal, to a browser and to a program. Nothing here knows how it will be shown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hopplus.report.numbers import said
from hopplus.report.translations import Language

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Column:
    """One column of a table, and how its numbers are written."""

    name: str
    digits: str = ".3f"  # of a number, as Python formats it
    absent: str = ""  # what stands where there is no number
    words: bool = False  # whether it holds words, which begin at the left


@dataclass(frozen=True)
class Section:
    """A part of a page: text, a table, pictures, something to handle, in this order."""

    title: str
    text: str = ""  # lines are kept
    mark: str = ""  # good, bad, unknown, or nothing
    # With their descriptions; drawn only where they can be shown.
    pictures: "Sequence[tuple[str, Figure | Callable[[], Figure]]]" = ()
    header: Sequence[str | Column] = ()
    rows: Sequence[Sequence[Any]] = ()  # numbers, estimates and words; `cells` writes them
    view: Literal["", "curves", "replay", "play"] = ""  # what the script draws
    data: Any = None  # for the view, as JSON has it; arrays are lists
    apart: int = 0  # rows at the end that sum up the others
    detail: bool = False  # too long for a terminal

    @property
    def columns(self) -> list[Column]:
        """Those of the table; the first one holds words, unless it says otherwise."""
        return [
            column if isinstance(column, Column) else Column(column, words=place == 0)
            for place, column in enumerate(self.header)
        ]

    @property
    def cells(self) -> list[list[str]]:
        """The table as it is shown, everywhere alike."""
        columns = self.columns or [Column("", words=True)] * max(map(len, self.rows), default=0)
        return [
            [
                said(value, column.digits, column.absent)
                for value, column in zip(row, columns, strict=True)
            ]
            for row in self.rows
        ]


def make_table(
    title: str,
    columns: Mapping[str | Column, Callable[[Any], Any]],
    items: Iterable[Any],
    **more: Any,
) -> Section:
    """A table with a row for each item; `columns` say what of it stands where."""
    rows = [[tell(item) for tell in columns.values()] for item in items]
    return Section(title, header=list(columns), rows=rows, **more)


@dataclass(frozen=True)
class Page:
    """A title, the answer in large letters, and what it rests on."""

    title: str
    answer: str
    mark: str = ""  # good, bad or unknown
    lines: Sequence[str] = ()  # below the answer
    command: str = ""  # to repeat it
    sections: Sequence[Section] = ()
    language: Language = "en"
    payload: Mapping[str, Any] = field(default_factory=dict)  # all figures, for programs
    hints: Sequence[str] = ()  # for a person at a terminal: where things are, what to do next
