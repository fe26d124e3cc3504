"""One page in one file: it opens from disk, needs no network, and runs no script but its own.

Everything written on it is text from elsewhere and escaped; pictures are images that cannot run
anything either. Where a section has a view, the page's own script draws it from data that is
written beside it as JSON; the browser is told to run that script, by its hash, and no other.
"""

import base64
import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hopplus.report.words import Language, Words
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
SCRIPTS = ("page.js", "lines.js", "chart.js", "curves.js", "board.js", "replay.js")
DIGITS = 4  # that count, of a number for a view
# Letters that could end a block of JSON, or a line of it, as JSON writes any letter.
UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Section:
    """A part of a page: text, a table, pictures, something to handle, in this order."""

    title: str
    text: str = ""  # lines are kept
    mark: str = ""  # good, bad, unknown, or nothing
    pictures: "Sequence[tuple[str, Figure]]" = ()  # with their descriptions
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    view: Literal["", "curves", "replay"] = ""  # what the script draws
    data: Any = None  # for the view, as JSON has it; arrays are lists


@dataclass(frozen=True)
class Page:
    """A title, the answer in large letters, and what it rests on."""

    title: str
    answer: str
    mark: str  # good, bad or unknown
    lines: Sequence[str] = ()  # below the answer
    command: str = ""  # to repeat it
    sections: Sequence[Section] = field(default_factory=tuple)
    language: Language = "en"


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
    words = Words(page.language)
    template.filters |= {"image": _image, "json": as_json}
    script = _script() if any(section.view for section in page.sections) else ""
    return template.get_template("page.html").render(
        page=page,
        say=words,
        words=words.known,
        locale=words.locale,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        digest=_digest(script) if script else "",
    )


def as_json(tree: Any) -> str:
    """JSON that may stand in a page: nothing in it ends the block it stands in.

    Numbers keep the digits that can be seen; null stands for those that are none.
    """
    text = json.dumps(_plain(tree), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def _plain(tree: Any) -> Any:
    match tree:
        case dict():
            return {str(name): _plain(value) for name, value in tree.items()}
        case np.ndarray():
            return _plain(tree.tolist())
        case list() | tuple():
            return [_plain(value) for value in tree]
        case float():
            return _short(tree)
        case np.generic():
            return _plain(tree.item())
    return tree


def _short(number: float) -> float | None:
    if not math.isfinite(number):
        return None
    short = float(f"{number:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _script() -> str:
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _image(figure: "Figure") -> str:
    """A figure as the address of an image that is all in it."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg")
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.getvalue()).decode()
