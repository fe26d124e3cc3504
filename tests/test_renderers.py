"""One page, three renderers: the same figures in a terminal, in HTML and in JSON."""

import json
import math
from typing import Any

import numpy as np
import pytest

from hopplus.cli.paged import show
from hopplus.diagnosis.finding import to_json
from hopplus.evaluation.statistics import Estimate, Interval
from hopplus.report.html import page_text
from hopplus.report.json import page_json
from hopplus.report.numbers import counted, doubt_seeds, said
from hopplus.report.page import Column, Page, Section
from hopplus.report.terminal import print_page

TABLE = Section(
    "returns",
    "as they are",
    header=["who", Column("steps", absent="never"), Column("ratio", ".2f"), "return"],
    rows=[
        [("stag", "hare"), 1234567, 0.5, Estimate(1.25, 0.5)],
        ["mean [x]", None, math.nan, Interval(0.5, 0.25, 0.75, 9)],
    ],
    apart=1,
)
CELLS = ["stag, hare", "1,234,567", "0.50", "1.250 ± 0.500", "never", "0.500 [0.250, 0.750]"]


@pytest.fixture
def page() -> Page:
    sections = [
        TABLE,
        Section("long", header=["a"], rows=[["secret"]], detail=True),
        Section("checked", "and found well", "good"),
        Section("drawn", "to be seen", pictures=[("a figure", lambda: None)]),  # type: ignore[list-item,return-value]
    ]
    payload = {"mean": Estimate(1.25, 0.5), "rows": np.arange(2), "none": math.nan}
    return Page("title", "the answer", lines=["below"], sections=sections, payload=payload)


def test_a_terminal_shows_tables_then_the_answer(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    print_page(page)
    out = capsys.readouterr().out
    for words in (*CELLS, "mean [x]", "as they are", "✓ checked", "and found well"):
        assert words in out
    assert "secret" not in out
    assert "to be seen" not in out
    # Words begin at the left and numbers end at the right; what sums up stands below a rule.
    lines = out.splitlines()
    (first,) = (place for place, line in enumerate(lines) if "stag, hare" in line)
    assert lines[first].startswith("│ stag, hare │ 1,234,567 │  0.50 │ ")
    assert set(lines[first + 1]) == set("├─┼┤")
    assert lines[first + 2].startswith("│ mean [x]   │     never │       │ ")
    assert out.splitlines()[-2:] == ["the answer", "below"]


def test_html_shows_the_same_cells(page: Page) -> None:
    text = page_text(Page(page.title, page.answer, sections=page.sections[:3]))
    for words in (*CELLS, "as they are", "secret", "and found well"):
        assert f">{words}<" in text
    assert text.count('class="apart"') == 1


def test_json_has_the_figures(page: Page) -> None:
    found = json.loads(page_json(page))
    assert found == {
        "mean": {"mean": 1.25, "low": 0.75, "high": 1.75},
        "rows": [0, 1],
        "none": None,
    }


def test_a_command_ends_in_one_of_them(
    page: Page, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    figure = Page(page.title, page.answer, sections=[TABLE], payload={"a": 1})
    path = tmp_path / "page.html"
    assert show(figure, as_json=True, html=path, hints=["look there"], out="here") == 0
    assert json.loads(capsys.readouterr().out) == {"a": 1, "out": "here", "page": str(path)}
    assert "the answer" in path.read_text(encoding="utf-8")
    assert show(figure, as_json=False, html=path, hints=["look there"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-3:] == ["the answer", "look there", f"the page is {path}"]


def test_a_figure_that_cannot_be_drawn_takes_nothing_with_it(
    page: Page, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    assert show(page, as_json=True, html=tmp_path / "page.html") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["page"] is None
    assert "the page is left out: it cannot be drawn" in err


def test_numbers() -> None:
    assert said(1234) == "1,234"
    assert said(0.25, ".0%") == "25%"
    assert said(np.float32(0.5)) == "0.500"
    assert said(None, absent="?") == said(math.nan, absent="?") == "?"
    assert said("0.1") == "0.1"
    assert said([1.0, 2.0]) == "1.000, 2.000"
    assert counted(1, "seed") == "1 seed"
    assert counted(2000, "seed") == "2,000 seeds"
    assert to_json({1: [math.inf, np.float64(2)]}) == {"1": [None, 2.0]}
    assert to_json(0.123456, 3) == 0.123
    assert doubt_seeds(5) is None
    assert "no interval" in str(doubt_seeds(1))
    assert "3 are too few" in str(doubt_seeds(3))
