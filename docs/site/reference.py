"""The reference, made from the code: commands with all of their options, and the Python API."""

import html
import inspect
import re
from collections.abc import Iterator

import hopplus
from hopplus.cli import _manual
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS
from hopplus.cli.reading.manual import INNER, Manual


def commands_page() -> str:
    """Every command and every option, as `--help-all` has them; presets differ in defaults."""
    parts = [
        "# Commands",
        "Made from the code. `--help` shows the options that act in a command, `--help-all` these.",
    ]
    for name in COMMANDS:
        inner = SUBCOMMANDS.get(name, ())
        parts.append(f"## hopplus {name}")
        parts += _sections(_manual((name,)), own=not inner or name in ("train", "pretrain"))
        if name == "train":
            parts.append("### hopplus train ppo")
            parts += _sections(_manual((name, "ppo")), own=True)
        elif name in ("diagnose", "bench", "pretrain"):
            for part in inner:
                parts.append(f"### hopplus {name} {part}")
                parts += _sections(_manual((name, part)), own=True)
    return "\n\n".join(parts) + "\n"


def _sections(found: Manual, own: bool) -> Iterator[str]:
    """What a command does and tables of its options."""
    intro = found.intro.partition("\n")[2].strip()
    if intro:
        yield "\n\n".join(" ".join(one.split()) for one in intro.split("\n\n"))
    for group in found.groups:
        options = [one for one in group.options if "--help" not in one.names]
        if not options or not (own or group.title == INNER):
            continue
        title = "" if group.title == "options" else group.title
        rows = [f"| {title or 'option'} | |", "|---|---|"]
        rows += [f"| `{_cell(one.shown)}` | {_cell(one.about)} |" for one in options]
        yield "\n".join(rows)


def _cell(text: str) -> str:
    text = re.sub(r"\{None,", "{", re.sub(r"\{None\}\|", "", text))
    text = re.sub(r" ?\(default: (None)?\)", "", text)
    return text.replace("|", "\\|")


def python_page() -> str:
    """Everything that `import hopplus` offers, with signatures and docstrings."""
    parts = ["# Python", "Made from the code. [A guide](../python.md) shows how it is used."]
    for name in hopplus.__all__:
        thing = getattr(hopplus, name)
        parts.append(f"## {name}")
        parts += list(_described(name, thing))
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for own, member in vars(thing).items():
                if own.startswith("_"):
                    continue
                if isinstance(member, property) or callable(member) or hasattr(member, "func"):
                    parts.append(f"### {name}.{own}")
                    parts += list(_described(own, member))
    return "\n\n".join(parts) + "\n"


def _described(name: str, thing: object) -> Iterator[str]:
    if isinstance(thing, property):
        thing = thing.fget
        yield "*property*"
    elif not callable(thing):  # a cached property
        thing = getattr(thing, "func", thing)
        yield "*property*"
    elif not (inspect.isclass(thing) and issubclass(thing, Exception)):  # whose is nobody's
        yield f"```python\n{name}{_signature(thing)}\n```"
    if text := inspect.getdoc(thing):
        yield html.escape(text, quote=False)


def _signature(thing: object) -> str:
    """The signature, an argument a line where it is long."""
    shown = str(inspect.signature(thing))  # type: ignore[arg-type]
    shown = re.sub(r"<factory>", "...", re.sub(r"\b(?:\w+\.)+(?=\w)", "", shown))
    if len(shown) > 80:
        parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
        lines = [re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", str(one)) for one in parameters]
        _, _, returned = shown.rpartition(") -> ")
        shown = "(\n" + "".join(f"    {line},\n" for line in lines) + f") -> {returned}"
    return shown
