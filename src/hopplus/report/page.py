"""One page in one file: it opens from disk, needs no network, and runs no script.

Everything written on it is text from elsewhere and escaped; pictures are images that cannot run
anything either.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """A part of a page, folded away if it is not `open`."""

    title: str
    text: str = ""  # lines are kept
    mark: str = ""  # good, bad, or nothing
    pictures: "Sequence[tuple[str, Figure]]" = ()  # with their descriptions
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Page:
    """A title, the answer in large letters, and what it rests on."""

    title: str
    answer: str
    mark: str  # good or bad
    lines: Sequence[str] = ()  # below the answer
    command: str = ""  # to repeat it
    sections: Sequence[Section] = field(default_factory=tuple)


def write_page(path: Path, page: Page) -> None:
    """Write a page as one HTML file."""
    from jinja2 import Environment  # playing and learning do without

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template.filters["image"] = _image
    text = template.from_string(_TEMPLATE).render(page=page)
    with clear_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, text.encode())


def _image(figure: "Figure") -> str:
    """A figure as the address of an image that is all in it."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg")
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.getvalue()).decode()


_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{{ page.title }}</title>
<style>
:root { color-scheme: light dark; --good: #007a55; --bad: #b34700; --line: #8886; }
@media (prefers-color-scheme: dark) { :root { --good: #4cc9a0; --bad: #ff9d5c; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin: 0; display: inline; }
.answer { border-left: .4rem solid; padding: .6rem 1rem; margin: 1rem 0; background: #8881; }
.answer strong { font-size: 1.3rem; }
.good { border-color: var(--good); } .bad { border-color: var(--bad); }
section { border-top: 1px solid var(--line); padding: .8rem 0; }
.tag { font-weight: 600; margin-left: .6rem; }
.tag.good { color: var(--good); } .tag.bad { color: var(--bad); }
p, pre { white-space: pre-wrap; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; background: white; border-radius: 4px; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
code { background: #8882; padding: .1rem .3rem; }
@media print { section { break-inside: avoid; } }
</style>
</head>
<body>
<h1>{{ page.title }}</h1>
<div class="answer {{ page.mark }}"><strong>{{ page.answer }}</strong>
{% for line in page.lines %}
<p>{{ line }}</p>
{% endfor %}
</div>
{% if page.command %}
<p>Repeat it with <code>{{ page.command }}</code></p>
{% endif %}
{% for section in page.sections %}
<section>
<h2>{{ section.title }}</h2>
{% if section.mark %}
<span class="tag {{ section.mark }}">{{ "✓ fine" if section.mark == "good" else "✗ wrong" }}</span>
{% endif %}
{% if section.text %}
<p>{{ section.text }}</p>
{% endif %}
{% if section.rows %}
<table>
<tr>{% for name in section.header %}<th>{{ name }}</th>{% endfor %}</tr>
{% for row in section.rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</table>
{% endif %}
{% for description, figure in section.pictures %}
<p><img alt="{{ description }}" src="{{ figure | image }}"></p>
{% endfor %}
</section>
{% endfor %}
</body>
</html>
"""
