"""Builds the site of the documentation, in English and Chinese, without a warning: `make docs`.

    python docs/site/build.py [FOLDER]

MkDocs is given a folder in which everything is a page: docs/ as it is, README.md as the first page,
notebooks, a reference made from the code, and the files of the repository that pages link to. A
page without a Chinese version is shown in English, and says so. Nothing needs a network.
"""

import logging
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import jieba
from latex2mathml.converter import convert
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from notebook import notebook_to_markdown
from pymdownx.slugs import slugify
from reference import commands_page, python_page

ROOT = Path(__file__).resolve().parents[2]
CHINESE = ".zh-CN"
IN_ENGLISH = '!!! note ""\n\n    本页暂无中文版，以下是英文原文。\n\n'
TITLES = {  # of sections, as mkdocs.yml names them
    "Home": "首页",
    "Start": "五分钟上手",
    "Tutorials": "教程",
    "Guides": "指南",
    "Reference": "参考",
    "Results": "结果",
    "Method": "方法",
    "Origins": "来历",
}
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)")
# Fences, indented blocks and spans of code are left alone.
CODE = re.compile(r"(^ *```[\s\S]*?^ *```|(?<=\n\n)(?:    .*\n|\n)+|`[^`\n]+`)", re.M)
HEADING = re.compile(r"^#{2,6} (.+)$", re.M)
ANCHOR = re.compile(r"(?<=\]\()([^)\s#]*)#([^)\s]+)")
OTHER_LANGUAGE = re.compile(r"^\[(?:中文|English)\]\([^)]*\)\n+", re.M)
EQUATION = re.compile(r"\$\$(.+?)\$\$|(?<![\w$])\$([^$\n]+)\$(?!\w)", re.S)
# How the theme's search reads what is asked for in Chinese, in its minified script: it leaves the
# last character out as it cuts this into words, so that 同伴 finds all that begins with 同; and all
# words but the last end in **, for which they are said to be missing.
SEARCH = (
    (r"(let (\w)=\w\+1;\2<)(\w\.length;\2\+\+\)\w\.slice\(\w,\2\)in )", r"\1=\3"),
    (r'\.join\("\* "\)', '.join(" ")'),
)
ABOVE = "__above__/"  # stands for ../ while MkDocs makes links relative, which knows no above
FENCES = {".py": "python", ".toml": "toml", ".cff": "yaml"}


def gather(folder: Path) -> None:
    """Writes every page into the folder, those in Chinese beside the others."""
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("site", "__pycache__"))
    for path in folder.glob("tutorials/*.ipynb"):
        path.with_suffix(".md").write_text(notebook_to_markdown(path), "utf-8")
        path.unlink()
    (folder / "assets").mkdir()
    shutil.copy(Path(__file__).with_name("iframe-worker.js"), folder / "assets")
    (folder / "reference").mkdir()
    (folder / "reference" / "commands.md").write_text(commands_page(), "utf-8")
    (folder / "reference" / "python.md").write_text(python_page(), "utf-8")
    pages = {page: ROOT / "docs" / page.relative_to(folder) for page in folder.rglob("*.md")}
    for source in (ROOT / "README.md", ROOT / f"README{CHINESE}.md"):
        page = folder / source.name.replace("README", "index")
        page.write_text(source.read_text("utf-8"), "utf-8")
        pages[page] = source
    while pages:  # what a page links to may be a page that links on
        pages = {
            made: file
            for page, source in pages.items()
            for made, file in _link(page, source, folder)
        }


def _link(page: Path, source: Path, folder: Path) -> list[tuple[Path, Path]]:
    """Points the links of a page at pages of the site. Files of the repository become pages, which
    are returned with where they come from."""
    made: list[tuple[Path, Path]] = []

    def moved(found: re.Match[str]) -> str:
        target = (source.parent / found[1]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            inside = folder / target.relative_to(ROOT / "docs")
        elif target.parent == ROOT and target.name.startswith("README"):
            inside = folder / target.name.replace("README", "index")
        else:
            inside = folder / "files" / target.relative_to(ROOT)
            if inside.suffix != ".md":
                inside = inside.with_name(f"{inside.name}.md")
            if not inside.exists():
                inside.parent.mkdir(parents=True, exist_ok=True)
                inside.write_text(_file_page(target), "utf-8")
                made.append((inside, target))
        if inside.suffix == ".ipynb":
            inside = inside.with_suffix(".md")
        return Path(os.path.relpath(inside, page.parent)).as_posix()

    text = page.read_text("utf-8")
    parts = CODE.split(OTHER_LANGUAGE.sub("", text))  # of code, and of what is between
    parts[::2] = [EQUATION.sub(_equation, LINK.sub(moved, part)) for part in parts[::2]]
    # In a table GitHub wants | escaped within code, where Python-Markdown shows the backslash.
    parts[1::2] = [part.replace(r"\|", "|") for part in parts[1::2]]
    page.write_text("".join(parts), "utf-8")
    return made


def _equation(found: re.Match[str]) -> str:
    """TeX as MathML, which browsers show without a script."""
    if found[1]:
        return f"<div>{convert(found[1].strip(), display='block')}</div>"
    return convert(found[2])


def _file_page(path: Path) -> str:
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return text
    name = path.relative_to(ROOT).as_posix()
    fence = FENCES.get(path.suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n```{fence}\n{text}\n```\n"


def select(folder: Path, chinese: bool) -> None:
    """Leaves one page of each name: in Chinese where it is wanted and there."""
    pages = [page for page in sorted(folder.rglob("*.md")) if CHINESE not in page.name]
    translations = {
        page: page.with_name(page.name.replace(".md", f"{CHINESE}.md")) for page in pages
    }
    anchors = {
        translated: _pair_anchors(translated.read_text("utf-8"), page.read_text("utf-8"))
        for page, translated in translations.items()
        if translated.exists()
    }
    for page, translated in translations.items():
        text = page.read_text("utf-8")
        if chinese and translated.exists():
            text = _with_anchors(translated, anchors)
        elif chinese and not page.is_relative_to(folder / "files"):
            front = re.match(r"# .*\n+", text)
            head = front[0] if front else ""
            text = head + IN_ENGLISH + text.removeprefix(head)
        # Links lead to pages of the same language.
        page.write_text(re.sub(rf"(\]\([^)\s]*){CHINESE}\.md", r"\1.md", text), "utf-8")
        translated.unlink(missing_ok=True)


def _pair_anchors(translated: str, original: str) -> dict[str, str]:
    """The anchors of a translation's headings, and those of the same headings in the original."""
    names = [
        [slugify(case="lower")(heading, "-") for heading in HEADING.findall(text)]
        for text in (translated, original)
    ]
    return dict(zip(*names, strict=True)) if len(names[0]) == len(names[1]) else {}


def _with_anchors(page: Path, anchors: dict[Path, dict[str, str]]) -> str:
    """Gives headings of a translation the anchors of the original's, as pages that have no Chinese
    version link to these; what links to the translation's own is changed with them."""

    def named(heading: re.Match[str]) -> str:
        name = anchors[page].get(slugify(case="lower")(heading[1], "-"))
        return f"{heading[0]} {{#{name}}}" if name else heading[0]

    def moved(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link[1])) if link[1] else page
        return f"{link[1]}#{anchors.get(target, {}).get(link[2], link[2])}"

    return ANCHOR.sub(moved, HEADING.sub(named, page.read_text("utf-8")))


def read_nav(nav: list[Any], folder: Path, chinese: bool) -> list[Any]:
    """What mkdocs.yml says, in the language. Pages that it does not name follow the guides."""
    named = set(re.findall(r"[\w/.-]+\.md", str(nav)))
    rest = sorted(page.name for page in folder.glob("*.md") if page.name not in named)
    found = []
    for section in nav:
        ((title, pages),) = section.items()
        if title == "Guides":
            pages = [*pages, *rest]
        elif title == "Tutorials":
            pages = [
                *pages,
                *sorted(f"tutorials/{p.name}" for p in folder.glob("tutorials/[0-9]*.md")),
            ]
        found.append({TITLES[title] if chinese else title: pages})
    return found


class PageLanguages:
    """Leads from each page to the same one in the other language; of MkDocs' plugins."""

    def __init__(self, chinese: bool) -> None:
        self.chinese = chinese

    def on_page_context(self, context: Any, *, page: Any, config: Any, nav: Any) -> None:
        english, chinese = (ABOVE, "") if self.chinese else ("", "zh/")
        config.extra["alternate"] = [
            {"name": "English", "link": f"{english}{page.url}", "lang": "en"},
            {"name": "中文", "link": f"{chinese}{page.url}", "lang": "zh"},
        ]


def build_site(out: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        gather(Path(made) / "all")
        for chinese in (False, True):
            folder = Path(made) / ("zh" if chinese else "en")
            shutil.copytree(Path(made) / "all", folder)
            select(folder, chinese)
            config = load_config(
                str(ROOT / "mkdocs.yml"),
                docs_dir=str(folder),
                site_dir=str(out / "zh" if chinese else out),
                strict=True,
            )
            config.theme["language"] = "zh" if chinese else "en"
            config.nav = read_nav(config.nav, folder, chinese)
            config.plugins["languages"] = PageLanguages(chinese)
            config.plugins.events["page_context"].append(
                config.plugins["languages"].on_page_context
            )
            config.plugins.on_startup(command="build", dirty=False)
            build(config)
    for page in (out / "zh").rglob("*.html"):
        page.write_text(page.read_text("utf-8").replace(ABOVE, "../"), "utf-8")
    for script in out.rglob("javascripts/workers/search.*.js"):
        text = script.read_text("utf-8")
        for found, right in SEARCH:
            text = re.sub(found, right, text)
        script.write_text(text, "utf-8")


if __name__ == "__main__":
    jieba.setLogLevel(logging.WARNING)  # cuts Chinese text into words that can be searched for
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s  %(message)s")
    try:
        build_site(Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve())
    except Abort as error:
        sys.exit(str(error))
