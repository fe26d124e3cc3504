"""The site of the documentation: built without a warning, in both languages, for no network.

Where MkDocs is not installed (`pip install 'hopplus[docs]'`), what it needs is looked at alone.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does, in a process of its own."""
    pytest.importorskip("material", reason="the site needs hopplus[docs]")
    pytest.importorskip("latex2mathml", reason="the site needs hopplus[docs]")
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
