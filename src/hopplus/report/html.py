"""A page in one file: it opens from disk, needs no network, and runs no script but its own.

Everything written on it is text from elsewhere and escaped; pictures are images that cannot run
anything either. Where a section has a view, the page's own script draws it from data that is
written next to it as JSON; the browser is told to run that script, by its hash, and no other.
"""

import base64
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopplus.diagnosis.finding import to_json
from hopplus.report.page import Page
from hopplus.report.translations import Translations
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).with_name("web")  # the template, the style and the scripts
SCRIPTS = ("page.js", "lines.js", "chart.js", "curves.js", "board.js", "replay.js")
DIGITS = 4  # that count, of a number for a view
# Letters that could end a block of JSON, or a line of it, as JSON writes any letter.
UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def write_page(path: Path, page: Page) -> None:
    """Write a page as one HTML file."""
    text = page_text(page)
    with clear_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text.encode())


def page_text(page: Page) -> str:
    """The HTML of a page."""
    from jinja2 import Environment, FileSystemLoader  # playing and learning do without

    template = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    words = Translations(page.language)
    template.filters |= {"image": _image, "json": as_json}
    views = {section.view for section in page.sections} - {""}
    # Only a page that is served asks for more, and has the script that does.
    played = "play" in views
    script = "\n".join(map(_read, (*SCRIPTS, *["play.js"] * played))) if views else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return template.get_template("page.html").render(
        page=page,
        say=words,
        words=words.known,
        locale=words.locale,
        style=_read("page.css"),
        script=script,
        digest=digest if script else "",
        asks=played,
    )


def as_json(tree: Any) -> str:
    """JSON that may stand in a page: nothing in it ends the block it stands in.

    Numbers keep the digits that can be seen; null stands for those that are none.
    """
    text = json.dumps(
        to_json(tree, DIGITS), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.translate(UNSAFE)


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _image(figure: "Figure | Callable[[], Figure]") -> str:
    """A figure as the address of an image that is all in it."""
    drawn = io.BytesIO()
    (figure() if callable(figure) else figure).savefig(drawn, format="svg")
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.getvalue()).decode()
