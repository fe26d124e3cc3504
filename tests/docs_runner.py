"""Runs the commands of a document, one after the other in one folder, and looks at their output."""

import contextlib
import io
import itertools
import json
import os
import re
import runpy
import subprocess
import sys
import time
import traceback
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import docs_small
from benchmarks.breakdown import Breakdown
from benchmarks.faults import FaultBench
from benchmarks.methods import MethodsBench
from benchmarks.peers import Peers
from benchmarks.pretrained import PretrainedBench
from benchmarks.report import ReportBench
from benchmarks.soak import SoakBench
from docs_markdown import Command, Step
from hopplus.cli import main, parse
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS
from hopplus.config import JAXMARL, ConfigError, find_game

WIDTH = "200"  # so that names of files are not broken


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    output: str
    errors: str


@dataclass
class Runner:
    """A folder as a reader's clone, in which the steps of a document are taken."""

    folder: Path
    makers: dict[str, Command]  # runs and recorded play by name, and the command that makes each
    namespace: dict[str, Any] = field(default_factory=dict)  # of the document's Python
    elsewhere: set[tuple[str, ...]] = field(default_factory=set)  # run with another document
    done: set[tuple[str, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        (self.folder / "examples").symlink_to(docs_small.ROOT / "examples")

    def take(self, step: Step) -> list[str]:
        """What is wrong with a step of the document."""
        if isinstance(step, Command):
            return [] if step.words in self.elsewhere else self.run(step)
        wrong = self._make_what_it_needs(named_folders(step.text))
        ended = captured(lambda: _execute(step.text, self.namespace), self.folder)
        return wrong + _look(ended, must_say=False)

    def run(self, command: Command) -> list[str]:
        if docs_small.is_name(command):
            return []
        words = [docs_small.PLACEHOLDERS.get(word, word) for word in command.words]
        if words[0] == "hopplus" and "--help" not in words:
            try:
                parse(words[1:])  # all as it stands, before some of it is overridden
            except ConfigError as error:
                return [str(error)]
        if str(command) in docs_small.NOT_RUN or command.words in self.done:
            return []
        self.done.add(command.words)
        wrong = self._make_what_it_needs(named_folders(str(command)) - set(made_folders(command)))
        before = self._pages()
        began = time.monotonic()
        ended = self._run(docs_small.small(command))
        print(f"{time.monotonic() - began:6.1f} s  {command}", flush=True)
        wrong += _look(ended)
        if ended.status == 0:
            wrong += missing_files(command, ended.output, self.folder)
            if command.shown:
                wrong += missing_output(command.shown, ended.output)
            for page, written in self._pages().items():
                if before.get(page) != written:
                    wrong += wrong_page(page)
        return wrong

    def _pages(self) -> dict[Path, int]:
        """Pages in the folder, and when each was written."""
        return {path: path.stat().st_mtime_ns for path in sorted(self.folder.rglob("*.html"))}

    def _make_what_it_needs(self, names: set[str]) -> list[str]:
        """Runs another document's command for a run or a recording that this one does not make."""
        wrong = []
        for name in sorted(names):
            if not (self.folder / name).exists() and name in self.makers:
                maker = self.makers[name]
                wrong += [f"{maker}: {each}" for each in self.run(maker)]
        return wrong

    def _run(self, words: Sequence[str]) -> Ended:
        program, *arguments = words
        if program == "hopplus":
            return captured(lambda: _main(arguments), self.folder)
        if words[:2] == ["python", "-m"]:
            return _subprocess([sys.executable, *arguments], self.folder)
        if program == "python":
            return captured(lambda: _example(arguments), self.folder)
        if program == "pytest":
            return _subprocess([sys.executable, "-m", "pytest", *arguments])
        return _subprocess([program, *arguments])


def make_makers(documents: dict[Path, list[Step]]) -> dict[str, Command]:
    """Each run and each recording that some document makes; the first that does."""
    makers: dict[str, Command] = {}
    for steps in documents.values():
        for step in steps:
            if isinstance(step, Command):
                for name in made_folders(step):
                    makers.setdefault(name, step)
    return makers


def made_folders(command: Command) -> list[str]:
    """The folders and files that a command is told to write."""
    words = command.words
    runs = words[words.index("--runs") + 1] if "--runs" in words else "runs"
    kinds = {"--name": f"{runs}/", "--out": ""}
    return [
        kinds[option] + value
        for option, value in itertools.pairwise(words)
        if option in kinds and words[0] == "hopplus"
    ]


def used_before_made(steps: Sequence[Step]) -> list[str]:
    """Folders that a document names before its own command that makes them."""
    made = [made_folders(step) if isinstance(step, Command) else [] for step in steps]
    wrong = []
    for at, step in enumerate(steps):
        text = str(step) if isinstance(step, Command) else step.text
        before = {name for names in made[: at + 1] for name in names}
        later = {name for names in made[at + 1 :] for name in names}
        wrong += [f"line {step.line}: {name}" for name in named_folders(text) & later - before]
    return wrong


def named_folders(text: str) -> set[str]:
    """The runs and recordings that a command or a piece of Python names."""
    return set(re.findall(r"\b(?:runs|data)/[\w-]+", text))


def missing_files(command: Command, output: str, folder: Path) -> list[str]:
    """Files that the command, its comment or its output names and that are not there."""
    named = set(made_folders(command))
    # Help has examples, and make says what it would do.
    said = "" if "--help" in command.words or command.words[0] == "make" else output
    for text in (command.comment, said):
        named |= set(re.findall(r"[\w./-]+\.(?:html|json|gif|png|csv|safetensors|md)\b", text))
        named |= set(re.findall(r"\bruns/[\w-]+\b", text))
    known = ("docs/", "examples/", "tests/")  # of the repository; leftovers there count for nothing
    return [
        f"{name} is not there"
        for name in sorted(named)
        if not (folder / name).exists()
        and not name.startswith("players/")  # by which a run names those that it keeps
        and not (name.startswith(known) and (docs_small.ROOT / name).exists())
    ]


NUMBER = re.compile(r"-?\d+(,\d{3})*(\.\d+)?(e-?\d+)?")
DRAWN = re.compile(r"[\u2500-\u257f]")  # lines of tables


def skeleton(text: str) -> str:
    """The words of an output, without figures, lines of tables and line breaks."""
    text = re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b", "hash", DRAWN.sub(" ", text))
    return " ".join(NUMBER.sub("0", text).split())


def missing_output(shown: str, output: str) -> list[str]:
    """What a document shows, between its `...`, and the command did not say, but for figures."""
    said = skeleton(output)
    at = 0
    for piece in map(skeleton, shown.split("...")):
        found = said.find(piece, at)
        if found < 0:
            known = next(n for n in range(len(piece), -1, -1) if said.find(piece[:n], at) >= 0)
            return [f"the document shows {piece!r}, the output is other from {piece[known:]!r} on"]
        at = found + len(piece)
    return []


def wrong_page(path: Path) -> list[str]:
    """What is wrong with a page: no text, or no number where one should be."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    text = " ".join(page.text)
    wrong = [f"{path.name} says little: {text[:80]!r}"] if len(text) < 200 else []
    for word in ("nan", "NaN", "undefined", "Traceback", "None"):
        if found := re.search(rf".{{0,40}}\b{word}\b.{{0,40}}", text):
            wrong.append(f"{path.name} says {word}: {found[0]!r}")
    for data in page.data:
        try:
            json.loads(data, parse_constant=_refuse)
        except ValueError as error:
            wrong.append(f"{path.name} holds data that no browser reads: {error}")
    return wrong


def _refuse(constant: str) -> None:
    raise ValueError(constant)


class _Page(HTMLParser):
    """The text that a page shows, and the data of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.data: list[str] = []
        self.within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self.within = "data" if dict(attrs).get("type") == "application/json" else tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.within = ""

    def handle_data(self, data: str) -> None:
        if not self.within:
            self.text += data.split()
        elif self.within == "data":
            self.data.append(data)


def known_options() -> set[str]:
    """The options of all commands, as `--help-all` has them; presets have the same."""
    found: set[str] = {"--help", "--help-all"}
    benches = (Breakdown, FaultBench, MethodsBench, Peers, PretrainedBench, ReportBench, SoakBench)
    for kind in benches:
        found |= {f"--{one.name.replace('_', '-')}" for one in fields(kind)}
    for name in COMMANDS:
        inner = [[name, part] for part in SUBCOMMANDS.get(name, ())] or [[name]]
        for path in inner[:1] if name == "train" else inner:
            text = captured(lambda: _main([*path, "--help-all"]), docs_small.ROOT).output  # noqa: B023
            found |= set(re.findall(r"(?<![\w-])--[a-z][\w.-]*", text))
    settings = fields(find_game(JAXMARL).config)  # of games that the default one does not show
    return found | {f"--game.{one.name}" for one in settings}


def _look(ended: Ended, must_say: bool = True) -> list[str]:
    """What is wrong with how a command ended, whatever it is."""
    if ended.status:
        return [f"status {ended.status}: {ended.errors.strip()[-2000:] or ended.output[-500:]}"]
    wrong = []
    if must_say and not ended.output.strip():
        wrong.append("it says nothing")
    for text in (ended.output, ended.errors):
        if found := re.search(r"Traceback|\bnan\b|\bNaN\b|\bundefined\b", text):
            wrong.append(f"it says {text[max(0, found.start() - 80) : found.end() + 80]!r}")
    return wrong


def captured(call: Callable[[], int], folder: Path) -> Ended:
    """Calls it in the folder, with what it prints; a traceback is an error like any other."""
    output, errors = io.StringIO(), io.StringIO()
    settings = {"COLUMNS": WIDTH, "BROWSER": "true"}
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        patch.dict(os.environ, settings),
        patch.object(webbrowser, "open", _opened),
        patch.object(sys, "argv", list(sys.argv)),
    ):
        try:
            status = call()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception:
            traceback.print_exc()
            status = 1
    return Ended(status, output.getvalue(), errors.getvalue())


def _opened(address: str) -> bool:
    """Stands in for a browser, which must be given a page that is there."""
    return Path(address.removeprefix("file://")).exists()


def _main(arguments: list[str]) -> int:
    sys.argv = ["hopplus", *arguments]
    return main(arguments)


def _example(arguments: list[str]) -> int:
    sys.argv = list(arguments)
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


def _execute(text: str, namespace: dict[str, Any]) -> int:
    exec(compile(text, "document", "exec"), namespace)
    return 0


def _subprocess(words: list[str], folder: Path = docs_small.ROOT) -> Ended:
    # `benchmarks` is found from any folder.
    path = os.pathsep.join([str(docs_small.ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        words, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def run_document(steps: Sequence[Step], runner: Runner) -> Iterator[str]:
    """Takes all steps and says what is wrong, by line."""
    for step in steps:
        for wrong in runner.take(step):
            yield f"line {step.line}: {step if isinstance(step, Command) else 'python'}\n  {wrong}"
