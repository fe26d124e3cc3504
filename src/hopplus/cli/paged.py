"""How commands end in a page."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from hopplus.config import ConfigError
from hopplus.report.page import Page, write_page
from hopplus.runs.watchdog import say


def this_command() -> str:
    """What was typed, to repeat it."""
    return shlex.join(["hopplus", *sys.argv[1:]])


def written(path: Path, make: Callable[[], Page]) -> str | None:
    """Write a page; where it is, or None on a machine that lacks what pages are made with."""
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
