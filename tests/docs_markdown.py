"""Commands in the documents: every block and every piece of inline code that is meant to be run.

What a reader may copy is a command: an indented block or a fence of shell lines, a fence of Python,
and inline code that begins with a program. Shell lines are read by bash itself, so that quotes,
comments and variables (`H="--game.size 8"`, `hopplus train ppo $H`) mean what they mean there.
"""

import os
import re
import shutil
import subprocess
import textwrap
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from hopplus.cli.commands import COMMANDS

PROGRAMS = (
    "hopplus",
    "python",
    "pytest",
    "make",
    "pip",
    "apt",
    "nvidia-cuda-mps-control",
    "tensorboard",
)
COMMAND_COLUMNS = ("command", "命令")  # tables with such a column have a command in every row
BASH = shutil.which("bash") or "bash"
FENCES = {"python": "python", "sh": "shell", "console": "shell", "text": "text"}


CALLED = re.compile(rf"\bhopplus (?:{'|'.join(COMMANDS)})\b")


class DocumentError(Exception):
    """Something in a document that looks like code and that nothing here knows how to run."""


@dataclass(frozen=True)
class Code:
    """A block or a span of code as it stands in the document."""

    kind: Literal["shell", "python", "text", "inline"]
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command, its words as the shell would pass them on."""

    words: tuple[str, ...]
    line: int
    inline: bool = False
    comment: str = ""  # what stands behind `#`
    shown: str = ""  # the output that the document shows, if any

    def __str__(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Script:
    """A block of Python."""

    text: str
    line: int


Step = Command | Script


@cache
def read_steps(path: Path) -> list[Step]:
    """All that is to be run in a document, in reading order."""
    return steps_of(path.read_text(encoding="utf-8"), path.name)


def steps_of(text: str, name: str = "text") -> list[Step]:
    steps: list[Step] = []
    shell = Shell()
    for code in code_of(text):
        try:
            if code.kind == "python":
                steps.append(Script(code.text, code.line))
            elif code.kind == "shell":
                steps += shell_block(code, shell)
            elif code.kind == "inline":
                steps += inline_commands(code, shell)
            elif found := [line for line in code.text.splitlines() if CALLED.search(line)]:
                raise DocumentError(f"a command in a block of text: {found[0]}")
        except DocumentError as error:
            raise DocumentError(f"{name}:{code.line}: {error}") from None
    for line in _unread(text):
        raise DocumentError(f"{name}:{line}: a command that nothing runs")
    for line, cell in _command_cells(text):
        if not any(step.line == line for step in steps):
            raise DocumentError(f"{name}:{line}: a row of commands without a whole one: {cell}")
    return steps


def _unread(text: str) -> list[int]:
    """Lines with a call of hopplus that is in no code: quotes, HTML, blocks indented by tabs."""
    known = {
        code.line + below for code in code_of(text) for below in range(code.text.count("\n") + 2)
    }
    lines = enumerate(text.splitlines(), 1)
    return [number for number, line in lines if CALLED.search(line) and number not in known]


def options_of(text: str) -> list[str]:
    """Options that running text names by themselves: `--game.size 8`, also `--goal.*`."""
    spans = [code.text for code in code_of(text) if code.kind == "inline"]
    named = [re.findall(r"(?<!\S)--[a-z][\w.*-]*", s) for s in spans if not _starts_program(s)]
    return [option for options in named for option in options]


def code_of(text: str) -> list[Code]:
    """Blocks and spans of code in reading order."""
    found: list[Code] = []
    lines = text.splitlines()
    at = 0
    paragraph: list[str] = []
    while at < len(lines):
        line = lines[at]
        if fence := re.fullmatch(r"\s*(```+|~~~+)\s*(\S*).*", line):
            ends = (i for i in range(at + 1, len(lines)) if lines[i].strip() == fence[1])
            end = next(ends, None)
            if end is None:
                raise DocumentError(f"line {at + 1}: a fence that does not end")
            if fence[2] not in FENCES:
                known = ", ".join(FENCES)
                raise DocumentError(f"line {at + 1}: a fence marked {fence[2]!r} (known: {known})")
            found += _spans(paragraph, at)
            kind: Literal["shell", "python", "text"] = FENCES[fence[2]]  # type: ignore[assignment]
            inside = textwrap.dedent("\n".join(lines[at + 1 : end]))  # a list indents its fences
            found.append(Code(kind, inside, at + 2))
            at, paragraph = end + 1, []
        elif line.startswith("    ") and not paragraph:
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            block = "\n".join(each[4:] for each in lines[at:end]).rstrip()
            found.append(Code("shell", block, at + 1))
            at = end
        else:
            if not line.strip() or line.startswith(("|", "#")):
                found += _spans(paragraph, at)  # ends here
                found += _spans([line.replace(r"\|", "|")], at + 1)
                paragraph = []
            else:
                paragraph.append(line)
            at += 1
    return found + _spans(paragraph, at)


def _spans(lines: list[str], end: int) -> list[Code]:
    """Inline code of a paragraph, whose last line has the number `end`."""
    text = "\n".join(lines)
    first = end - len(lines) + 1
    return [
        Code("inline", " ".join(span[2].split()), first + text.count("\n", 0, span.start()))
        for span in re.finditer(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", text, re.DOTALL)
    ]


def _command_cells(text: str) -> list[tuple[int, str]]:
    """Line and text of all cells, of a table with a column of commands, that are in it."""
    found = []
    column: int | None = None
    lines = [line.replace(r"\|", " ") for line in text.splitlines()]
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            column = None
            continue
        cells = [cell.strip() for cell in line.strip().removeprefix("|").split("|")]
        if number == 1 or not lines[number - 2].startswith("|"):
            heads = [i for i, cell in enumerate(cells) if cell.startswith(COMMAND_COLUMNS)]
            column = heads[0] if heads else None
        elif column is not None and not set(line) <= set("|-: ") and cells[column]:
            found.append((number, cells[column]))
    return found


def _starts_program(line: str) -> bool:
    return bool(re.match(rf"(\$ )?({'|'.join(PROGRAMS)})( |$)", line))


@dataclass
class Shell:
    """A shell that says what commands it would run; variables stay from line to line."""

    before: list[str] = field(default_factory=list)

    def read(self, line: str) -> list[tuple[str, ...]]:
        says = r'{ printf "%s\0" "$FUNCNAME" "$@"; printf "\n\0"; }'
        programs = [f"{program}() {says}" for program in PROGRAMS]
        # No PATH and a restricted shell: nothing is run and nothing is written.
        ended = subprocess.run(
            [BASH, "--restricted", "-c", "\n".join(["set -eu", *programs, *self.before, line])],
            env={"PATH": "", "HOME": os.devnull},
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            *_, wrong = ["?", *ended.stderr.strip().splitlines()]
            raise DocumentError(f"no command and no setting of a variable: {line!r} ({wrong})")
        called = [tuple(each.split("\0")[:-1]) for each in ended.stdout.split("\n\0") if each]
        if not all(called):
            raise DocumentError(f"no command that is known here: {line!r}")
        if not called:
            self.before.append(line)
        return called


def shell_block(code: Code, shell: Shell) -> list[Command]:
    """Commands of a block: one in each line or, with `$ ` before each, followed by its output."""
    lines = re.sub(r"\\\n\s*", " ", code.text).split("\n")
    shows = lines[0].startswith("$ ")
    found: list[Command] = []
    shown: list[str] = []
    for number, line in enumerate(lines, code.line):
        if shows and not line.startswith("$ "):
            shown.append(line)
        elif line.strip():
            comment = re.search(r"\s#\s+(.*)$", line)
            called = shell.read(line.removeprefix("$ "))
            found = _with_output(found, shown)
            shown = []
            found += [
                Command(words, number, comment=comment[1] if comment else "") for words in called
            ]
    return _with_output(found, shown)


def _with_output(commands: list[Command], shown: list[str]) -> list[Command]:
    if not commands or not shown:
        return commands
    last = commands[-1]
    held = Command(last.words, last.line, last.inline, last.comment, "\n".join(shown))
    return [*commands[:-1], held]


def inline_commands(code: Code, shell: Shell) -> list[Command]:
    """The command that a piece of inline code is, if it is one."""
    if _starts_program(code.text) and " " in code.text:
        return [Command(words, code.line, inline=True) for words in shell.read(code.text)]
    if re.search(r"\$[A-Za-z]", code.text) or (
        CALLED.search(code.text) and not _starts_program(code.text)
    ):
        raise DocumentError(f"a part of a command: write all of it: `{code.text}`")
    return []
