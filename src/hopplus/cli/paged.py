"""How commands end: in a page, shown in the way that was asked for."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hopplus.config import ConfigError
from hopplus.report.json import page_json
from hopplus.report.page import Page
from hopplus.report.terminal import print_page
from hopplus.runs.watchdog import say


def this_command() -> str:
    """What was typed, to repeat it."""
    return shlex.join(["hopplus", *sys.argv[1:]])


def asked(command: Any, *apart: str) -> dict[str, Any]:
    """What a command was asked by its options, as the function of the API takes it; without those
    that it is given apart, and how to print."""
    names = [one.name for one in fields(command)]
    return {name: getattr(command, name) for name in names if name not in (*apart, "json")}


def show(
    page: Page,
    /,
    *,
    as_json: bool,
    html: Path | None = None,
    hints: Sequence[str] = (),
    **about: Any,
) -> int:
    """Print what was found, for people or as JSON, after writing it as HTML where `html` says;
    the exit status. `hints` are for people alone, and what else it is `about` for programs."""
    hints = [*page.hints, *hints]
    if html is not None:
        about["page"] = draw_page(html, lambda: replace(page, command=this_command()))
        hints += [f"the page is {about['page']}"] * (about["page"] is not None)
    page = replace(page, payload={**about, **page.payload}, hints=hints)
    if as_json:
        print(page_json(page))
    else:
        print_page(page)
    return 0


def draw_page(path: Path, make: Callable[[], Page]) -> str | None:
    """Write a page; where it is, or None on a machine that lacks what pages are made with."""
    from hopplus.report.html import write_page  # what only prints needs none of it

    try:
        write_page(path, make())
    except ImportError as error:
        say(f"the page is left out: {error.name} is not installed here")
        return None
    except ConfigError as error:  # it must not take the figures with it
        say(f"the page is left out: {error}")
        return None
    except Exception as error:  # nor must a picture that cannot be drawn
        say(f"the page is left out: it cannot be drawn ({type(error).__name__}: {error})")
        return None
    return str(path)
