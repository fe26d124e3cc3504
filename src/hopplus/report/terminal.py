"""A page for a person at a terminal, on stdout."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hopplus.report.page import Page, Section

SIGNS = {"good": "✓", "bad": "✗", "unknown": "?"}


def print_page(page: Page) -> None:
    """Tables and checks first, so that the answer stands last, where one looks."""
    print_sections(page.sections)
    for line in (page.answer, *page.lines, *page.hints):
        if line:
            print(line)  # a long line is left to the terminal: what is copied has no breaks


def print_sections(sections: Sequence[Section]) -> None:
    """Tables, with what is said about them, and checks with their signs. Figures are not for here,
    nor is what is too long."""
    console = Console(highlight=False)
    for section in sections:
        if section.detail:
            continue
        if section.rows:
            console.print(_table(section))
            if section.text:
                print(section.text)
        elif section.mark:
            console.print(Text(f"{SIGNS[section.mark]} {section.title}", style="bold"))
            console.print(Text(f"  {section.text}"))


def _table(section: Section) -> Table:
    title = Text(section.title, style="italic") if section.title else None
    table = Table(title=title, title_justify="left")
    for column in section.columns:
        justify = "left" if column.words else "right"
        table.add_column(Text(column.name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    if not section.header:
        table.box, table.show_header = None, False
    for place, row in enumerate(section.cells):
        if section.apart and place == len(section.rows) - section.apart:
            table.add_section()
        table.add_row(*map(Text, row))
    return table
