"""A page is one file: nothing of it is fetched, nothing of it runs, and text stays text."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from hopplus.cli.diagnose.common import finish
from hopplus.config import ConfigError
from hopplus.diagnosis.finding import Check, Diagnosis, Illness, Verdict, conclude
from hopplus.report.html import write_page
from hopplus.report.page import Page, Section

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;"


class Read(HTMLParser):
    """What a browser makes of a page: its tags, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def drawing() -> Figure:
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([1, 2], [2, 1])
    figure.axes[0].set_title(EVIL.replace("$", ""))
    return figure


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with something evil wherever there is text."""
    section = Section(EVIL, EVIL, EVIL, [(EVIL, drawing())], [EVIL, EVIL], [[EVIL, EVIL]])
    path = tmp_path_factory.mktemp("new") / "folder" / "page.html"
    write_page(path, Page(EVIL, EVIL, EVIL, [EVIL, EVIL], EVIL, [section, section]))
    return path.read_text(encoding="utf-8")


def test_text_from_elsewhere_is_only_text(page: str) -> None:
    read = Read(page)
    known = (
        "html head meta title style body h1 div strong p code section h2 span table tr th td img"
    )
    assert {tag for tag, _ in read.tags} <= set(known.split())
    for _, attributes in read.tags:
        assert not any(name.startswith("on") for name in attributes)
    # Title twice, the answer, two lines, the command; a section's title, text, 2 + 2 cells.
    assert read.text.count(EVIL) == 6 + 2 * 6
    assert [image["alt"] for image in read.named("img")] == [EVIL, EVIL]


def test_nothing_is_fetched(page: str) -> None:
    read = Read(page)
    for _, attributes in read.tags:
        assert not {"href", "srcset", "action", "background"} & set(attributes)
    for image in read.named("img"):
        assert str(image["src"]).startswith("data:image/svg+xml;base64,")
    assert "http:" not in page
    assert "https:" not in page
    assert "url(" not in page
    assert "@import" not in page
    (policy,) = [meta["content"] for meta in read.named("meta") if "http-equiv" in meta]
    assert "default-src 'none'" in str(policy)


def test_pictures_are_in_it_and_run_nothing(page: str) -> None:
    for image in Read(page).named("img"):
        drawn = base64.b64decode(str(image["src"]).partition(",")[2]).decode()
        assert drawn.lstrip().startswith("<?xml")
        assert "</svg>" in drawn
        assert "<script" not in drawn
        assert not re.search(r"\son\w+=", re.sub(r"<!--.*?-->", "", drawn, flags=re.DOTALL))


def test_marks_are_words_too(tmp_path: Path) -> None:
    marks = ("good", "bad", "unknown", "")
    sections = [Section(mark, mark=mark) for mark in marks]
    write_page(tmp_path / "page.html", Page("title", "answer", "good", sections=sections))
    read = Read((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [tag["class"] for tag in read.named("span")] == [
        "tag good",
        "tag bad",
        "tag unknown",
    ]
    assert "✓ fine" in read.text
    assert "✗ wrong" in read.text
    assert "? not known" in read.text
    assert "Repeat it with" not in read.text


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write .*page\.html"):
        write_page(tmp_path / "file" / "page.html", Page("title", "answer", "good"))


# Verdicts.

ILLNESSES = {
    "cause": Illness("game", "the cause", "remove it"),
    "effect": Illness("chance", "the effect", "wait"),
    "healthy": Illness("chance", "nothing is wrong", "do nothing"),
    "not-known": Illness("not known", "no fault was found", ""),
}


def test_causes_come_before_effects() -> None:
    checks = [
        Check("one", "an effect", "effect"),
        Check("two", "fine"),
        Check("three", "a cause", "cause"),
        Check("four", "the cause again", "cause"),
    ]
    found = conclude(checks, ILLNESSES)
    assert found == Verdict("cause", "game", "the cause", "a cause", "remove it", ("effect",))
    assert not found.healthy
    fine = conclude(checks[1:2], ILLNESSES)
    assert fine.healthy
    assert (fine.headline, fine.also) == ("nothing is wrong", ())


def test_what_could_not_be_told_is_a_verdict_of_its_own() -> None:
    """Neither healthy nor ill, unless it does not decide, or something else is wrong."""
    checks = [
        Check("one", "fine"),
        Check("two", "2 runs cannot tell", unknown="Take more --seeds."),
        Check("three", "nothing was played", unknown="Take more --steps."),
        Check("four", "nothing again", unknown="Take more --steps."),
    ]
    found = conclude(checks, ILLNESSES)
    assert (found.name, found.state) == ("not-known", "unknown")
    assert not found.healthy
    assert found.evidence == "2 runs cannot tell"
    assert found.advice == "Take more --seeds. Take more --steps."
    assert checks[1].as_json()["state"] == "unknown"
    aside = [replace(check, decides=False) for check in checks]
    assert conclude(aside, ILLNESSES).healthy
    ill = [*checks, Check("five", "a cause", "cause")]
    assert conclude(ill, ILLNESSES).name == "cause"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_diagnosis_ends_in_words_a_page_and_json(
    as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = [Check("two [x]", "an effect [/]", "effect"), Check("one", EVIL, "cause")]
    checks = [*checks, Check("three", "fine", figures={"none": float("nan")})]
    found = Diagnosis(EVIL, checks, conclude(checks, ILLNESSES))
    page = tmp_path / "new" / "seats.html"
    assert finish("seats", page, found, lambda: [Section("mine")], as_json) == 0
    read = Read((tmp_path / "new" / "seats.html").read_text(encoding="utf-8"))
    assert not read.named("script")
    assert "cause: the cause" in read.text
    assert "Also found, perhaps because of it: effect." in read.text
    assert read.text.index("mine") < read.text.index("two [x]")
    written = json.loads((tmp_path / "new" / "seats.json").read_text(encoding="utf-8"))
    assert written == found.as_json()
    assert (written["subject"], written["verdict"], written["also"]) == (EVIL, "cause", ["effect"])
    assert written["checks"][-1]["none"] is None
    out = capsys.readouterr().out
    if as_json:
        assert json.loads(out) == {"page": str(tmp_path / "new" / "seats.html"), **written}
        return
    assert "✗ two [x]" in out
    assert "an effect [/]" in out
    assert "Verdict: cause: the cause (game)." in out
    assert "remove it" in out


@pytest.mark.parametrize("as_json", [False, True])
def test_a_picture_that_fails_takes_nothing_with_it(
    as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures are on the disk before anything is drawn, and the verdict is said."""
    checks = [Check("one", "fine")]
    found = Diagnosis("a", checks, conclude(checks, ILLNESSES))
    figures = found.as_json()

    def draw() -> list[Section]:
        assert json.loads((tmp_path / "seats.json").read_text()) == figures
        raise ValueError("inhomogeneous shape")

    finish("seats", tmp_path / "seats.html", found, draw, as_json)
    out, err = capsys.readouterr()
    assert err.count("the page is left out: it cannot be drawn (ValueError: inhomogeneous") == 1
    assert not (tmp_path / "seats.html").exists()
    if as_json:
        assert json.loads(out) == {"page": None, **figures}
    else:
        assert "Verdict: Healthy (chance)." in out
        assert str(tmp_path / "seats.json") in out.replace("\n", "")


def test_a_verdict_is_said_even_where_nothing_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    found = Diagnosis("a", [], conclude([], ILLNESSES))
    page = tmp_path / "file" / "seats.html"
    with pytest.raises(ConfigError, match=r"cannot write .*seats\.json"):
        finish("seats", page, found, list, False)
    assert "Verdict: Healthy (chance)." in capsys.readouterr().out
