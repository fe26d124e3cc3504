"""The site of the documentation: built without a warning, in both languages, for no network.

Where MkDocs is not installed (`pip install 'hopplus[docs]'`), what it needs is looked at alone.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser import Opened, expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does, in a process of its own."""
    pytest.importorskip("material", reason="the site needs hopplus[docs]")
    pytest.importorskip("latex2mathml", reason="the site needs hopplus[docs]")
    pytest.importorskip("jieba", reason="the site needs hopplus[docs]")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "WARNING" not in ended.stderr
    return out


def test_every_page_is_there_in_both_languages(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md") if ".zh-CN" not in path.name}
    tutorials = {f"tutorials/{path.stem}" for path in NOTEBOOKS}
    for name in pages | tutorials | {"index", "reference/commands", "reference/python"}:
        for page in (site / f"{name}.html", site / "zh" / f"{name}.html"):
            assert page.exists(), page
    assert "本页暂无中文版" in (site / "zh" / "method.html").read_text("utf-8")
    assert "本页暂无中文版" not in (site / "zh" / "origins.html").read_text("utf-8")
    assert "本页暂无中文版" not in (site / "method.html").read_text("utf-8")


def test_nothing_is_fetched(site: Path) -> None:
    """No script, style, font or picture comes from elsewhere."""
    fetched = re.compile(r"""<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+href="https?:""")
    for page in site.rglob("*.html"):
        found = fetched.search(page.read_text("utf-8"))
        assert not found, f"{page.name}: {found}"


def test_pages_lead_to_themselves_in_the_other_language(site: Path) -> None:
    for name in ("index", "reference/commands"):
        for page, other in ((name, f"zh/{name}"), (f"zh/{name}", name)):
            text = (site / f"{page}.html").read_text("utf-8")
            language = "zh" if other.startswith("zh/") else "en"
            link = re.search(rf'href="([^"]+)" hreflang="{language}"', text)
            assert link, page
            found = (site / f"{page}.html").parent / link[1]
            assert found.resolve() == (site / f"{other}.html").resolve()


def search(opened: Opened, words: str) -> "Locator":
    """What the site shows for these words: pages, and sections of them."""
    box = opened.tab.locator(".md-search__input")
    box.click()
    box.fill(words)
    box.press("End")  # filling presses no key, which is what the site waits for
    expect(opened.tab.locator(".md-search-result__meta")).to_contain_text(re.compile(r"\d"))
    return opened.tab.locator(".md-search-result__item")


def pages_of(found: "Locator") -> list[str]:
    links = found.locator("> a").evaluate_all("links => links.map(link => link.pathname)")
    return [Path(link).stem for link in links]


@pytest.fixture
def chinese(site: Path, browser: "Browser") -> Iterator[Opened]:
    """The Chinese site, opened as a file."""
    opened = Opened(browser, site / "zh" / "index.html")
    yield opened
    opened.close()


def test_chinese_words_are_found_and_not_by_their_first_character(chinese: Opened) -> None:
    """Words are not set apart in Chinese: pages and what is asked for are cut into them."""
    translations = {
        path.name.split(".")[0].replace("README", "index"): path.read_text("utf-8")
        for path in (ROOT / "README.zh-CN.md", *(ROOT / "docs").rglob("*.zh-CN.md"))
    }
    having = {name for name, text in translations.items() if "同伴" in text}
    assert having != {name for name, text in translations.items() if "同" in text}
    assert set(pages_of(search(chinese, "同伴"))) == having


def test_all_chinese_words_that_are_asked_for_count(chinese: Opened) -> None:
    best = search(chinese, "价值损失").first
    assert set(pages_of(best)) == {"origins"}
    assert {"价值", "损失"} <= set(best.locator("mark").all_inner_texts())
    assert best.locator(".md-search-result__terms").count() == 0  # words that are missing


def test_english_words_are_found_among_chinese_pages_too(chinese: Opened) -> None:
    assert pages_of(search(chinese, "memory"))[0] == "speed"  # which has such a heading


def test_english_words_are_found(site: Path, browser: "Browser") -> None:
    opened = Opened(browser, site / "index.html")
    assert {"method", "models"} <= set(pages_of(search(opened, "hindsight")))
    opened.close()


def test_the_reference_is_made_from_the_code(site: Path) -> None:
    commands = (site / "reference" / "commands.html").read_text("utf-8")
    assert all(name in commands for name in ("--ppo.learning-rate", "leave-one-out", "--quick"))
    assert "register_context" in (site / "reference" / "python.html").read_text("utf-8")


def test_equations_are_mathml(site: Path) -> None:
    text = (site / "method.html").read_text("utf-8")
    assert text.count("<math") > 20
    assert "$$" not in text


def test_what_the_site_is_said_to_show_is_there() -> None:
    """The pages that mkdocs.yml names, but for those that are made."""
    named = re.findall(r"^ +- (?:\w+: )?([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    made = {"index.md", "reference/commands.md", "reference/python.md"}
    assert len(named) > 20
    assert [
        name for name in named if name not in made and not (ROOT / "docs" / name).exists()
    ] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_small_and_their_links_lead_somewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text) < 20_000  # no pictures, no pages of output
    cells = json.loads(text)["cells"]
    prose = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", prose):
        assert (path.parent / target).exists(), target
