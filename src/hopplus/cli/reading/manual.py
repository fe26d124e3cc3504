"""The help of a command: which options it has, and which of them are worth showing.

tyro writes the help, in boxes of options. It is read back here rather than built a second time, and
set anew: without the options that do nothing in a preset, and in half as many lines. The names are
also what a mistyped option is compared with. So what is shown, suggested and accepted is always
what the parser knows, and an option that is left out still works when it is given.
"""

import io
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hopplus.cli.commands import COMMANDS, choices, name_choice
from hopplus.config import PARTS, TrainConfig
from hopplus.presets import PRESETS

HELP, HELP_ALL = ("-h", "--help"), "--help-all"
WIDTH = 100  # that tyro writes for, and the most that is used
INNER = "subcommands"  # tyro's title for a list of them
# One host has no use for some of them, and the others are in the docs for who looks for them.
RARE = (
    *("--coordinator", "--processes", "--process", "--print-config", "--log", "--keep-stages"),
    "--ppo.gradient",
)
COLUMN, NARROW = 28, 18  # where explanations begin: of options, of commands

_NAME = re.compile(r"--[a-z][a-z0-9.-]*")


@dataclass(frozen=True)
class Option:
    """One option of a command, or a word it takes without one."""

    shown: str  # --ppo.games INT
    about: str

    @property
    def names(self) -> tuple[str, ...]:
        """Its names, with aliases; a switch also has its other way."""
        return tuple(_NAME.findall(re.sub(r"\{.*?\}", "", self.shown)))

    @property
    def is_switch(self) -> bool:
        """Whether nothing stands behind it."""
        return not _NAME.sub("", self.shown).strip(", ")


@dataclass(frozen=True)
class Group:
    """Options that belong together."""

    title: str
    about: str
    options: tuple[Option, ...]  # or commands


@dataclass(frozen=True)
class Manual:
    """All of a command's help."""

    intro: str
    groups: tuple[Group, ...]

    @property
    def options(self) -> list[Option]:
        return [option for group in self.groups for option in group.options if option.names]


def path_of(words: Sequence[str]) -> tuple[str, ...]:
    """The command in a command line: `train ppo` in `train ppo --steps 4e4`."""
    path: tuple[str, ...] = ()
    for word in words[:2]:
        if word not in choices(path):
            break
        path = (*path, word)
    return path


def reorder(words: Sequence[str], options: Callable[[tuple[str, ...]], list[Option]]) -> list[str]:
    """The words with the preset in front of the options, where people may have put it behind some.

    The parser takes an option for that of the command to its left, and `train` alone has few. A
    word behind an option that takes one is a value, even if a preset is called that too.
    """
    inner = choices(tuple(words[:1]))
    places = [place for place, word in enumerate(words) if place > 1 and word in inner]
    if not places or not words[1].startswith("--"):
        return list(words)
    known = options((words[0], words[places[0]]))
    valued = {name for one in known if not one.is_switch for name in one.names}
    free = [place for place in places if words[place - 1] not in valued]
    if not free:
        return list(words)
    chosen = free[-1]  # `--parts opponent goal ppo`: what is last ends the values
    return [words[0], words[chosen], *words[1:chosen], *words[chosen + 1 :]]


class Captured(io.StringIO):
    """Takes what tyro would print; it draws boxes only where they can be shown."""

    encoding = "utf-8"


def list_commands() -> Manual:
    """The help of `hopplus` itself, which imports none of its commands."""
    commands = tuple(Option(name, one.about) for name, one in COMMANDS.items())
    options = (Option(", ".join(HELP), "show this help message and exit"),)
    intro = "\nOpponent-modelling players for mixed-motive Markov games."
    return Manual(intro, (Group("options", "", options), Group(INNER, "", commands)))


def read_manual(text: str) -> Manual:
    """What tyro has written."""
    intro: list[str] = []
    groups: list[Group] = []
    box: list[str] = []
    for line in text.splitlines():
        match line[:1]:
            case "╭":
                box = [line.strip("╭─╮ ")]
            case "│":
                box.append(line.removeprefix("│ ").removesuffix("│").rstrip())
            case "╰":
                groups.append(_read_group(box))
            case _:
                intro.append(line)
    return Manual("\n".join(intro).strip(), tuple(groups))


def _read_group(box: Sequence[str]) -> Group:
    """A title, what it is about above a rule, and options, each with its explanation next to it or
    below."""
    title, *lines = box
    title = title.removeprefix("what.")  # the name of a field, which says nothing to a reader
    if title == INNER:
        return Group(title, "", tuple(_commands(lines)))
    rules = [place for place, line in enumerate(lines) if line and set(line) <= {"─"}]
    about = " ".join(lines[: rules[0]]) if rules else ""
    options: list[Option] = []
    for line in lines[rules[0] + 1 :] if rules else lines:
        if line.startswith(" "):  # goes on with the last one
            last = options.pop()
            options.append(replace(last, about=f"{last.about} {line.strip()}".strip()))
        else:
            shown, _, said = line.partition("  ")
            options.append(Option(shown, said.strip()))
    return Group(title, about, tuple(options))


def _commands(lines: Sequence[str]) -> Iterator[Option]:
    """The commands in a list of them, each with the first thing that is said about it."""
    for block in "\n".join(lines).split("  • ")[1:]:
        name, *rest = block.split(maxsplit=1)  # what is said of a long name begins below it
        said = rest[0] if rest else ""
        yield Option(name, " ".join(said.partition("\n\n")[0].split()))


def set_manual(found: Manual, path: tuple[str, ...], everything: bool, width: int) -> str:
    """What `--help` shows of a command's help, or `--help-all`."""
    hidden = (lambda name: False) if everything else hidden_in(path)
    command = " ".join(("hopplus", *path))
    blocks = [f"usage: {command} {_usage(found, path)}".rstrip()]
    paragraphs = found.intro.partition("\n")[2].strip().split("\n\n")
    blocks += [textwrap.fill(" ".join(one.split()), width) for one in paragraphs if one]
    gone = 0
    for group in found.groups:
        shown = [one for one in group.options if not (one.names and hidden(one.names[0]))]
        gone += len(group.options) - len(shown)
        if shown:
            inner = group.title == INNER
            longest = max(len(one.shown) for one in shown)
            column = max(NARROW, longest + 4) if inner else COLUMN
            title = f"{name_choice(path)}s" if inner else group.title
            head = f"{title}: {group.about}".rstrip()
            setting = [textwrap.fill(head, width, subsequent_indent="  ")]
            blocks.append("\n".join([*setting, *(_set(option, width, column) for option in shown)]))
    if gone:
        what = "option that does" if gone == 1 else "options that do"
        more = f"{gone} more {what} nothing here by default: {command} {HELP_ALL}"
        blocks.append(textwrap.fill(more, width, break_on_hyphens=False))
    return "\n\n".join(blocks)


def _usage(found: Manual, path: tuple[str, ...]) -> str:
    if any(group.title == INNER for group in found.groups):
        return f"{name_choice(path).upper()} [options]"
    words = [_plain(one.shown) for group in found.groups for one in group.options if not one.names]
    return " ".join([*words, "[options]"])


def _plain(shown: str) -> str:
    """What an option takes, without that it may be None, which is what it is when not given."""
    return re.sub(r"\{None,", "{", re.sub(r"\{None\}\|", "", shown))


def _set(option: Option, width: int, column: int) -> str:
    """An option and what it does; what it is when not given, its explanation says."""
    about = re.sub(r" ?\(default: (None)?\)", "", option.about)
    whole = re.sub(r"\(default: \S+\)$", lambda found: found[0].replace(" ", "\0"), about)
    indent = " " * column
    first = f"  {_plain(option.shown)}".ljust(column)
    wrapped = textwrap.wrap(whole, max(20, width - column), break_on_hyphens=False) or [""]
    lines = [line.replace("\0", " ") for line in wrapped]
    if len(first) > column or not first.endswith(" "):
        return "\n".join([first.rstrip(), *(indent + line for line in lines)])
    return "\n".join([first + lines[0], *(indent + line for line in lines[1:])]).rstrip()


def hidden_in(path: tuple[str, ...]) -> Callable[[str], bool]:
    """Which options a command's help leaves out unless everything is asked for."""
    if path[:1] == ("train",) and path[1:]:
        return _idle(PRESETS[path[1]])
    if path == ("bench", "train"):
        return _idle(TrainConfig())
    if path == ("bench", "search"):  # it is about that
        return lambda name: False
    return lambda name: name.startswith("--search.") and name != "--search.simulations"


def _idle(config: TrainConfig) -> Callable[[str], bool]:
    """Which options do nothing where this is what a run begins with; those that would switch
    something on are shown."""
    searches, remembers = bool(config.search.simulations), config.memory.kind != "none"
    groups = {
        **{rule.settings: name in config.parts for name, rule in PARTS.items()},
        "search": searches,
        "distil": searches,
        "memory": remembers,
        "types": "types" in config.context_names,
    }
    switches = {"--search.simulations", "--memory.kind"}
    # What a search finds is learned by cross-entropy, which has no ratio to clip and no bonus.
    useless = ["clip", "value-clip", "entropy", "entropy-end"] if searches else []
    useless += ["trial-discount"] if config.trial == 1 else []
    ppo = config.ppo
    social = {
        "inequity.": ppo.inequity.alpha or ppo.inequity.beta,
        "influence.": ppo.influence.weight,
        "lola.": ppo.lola.step,
    }
    unused = tuple(name for name, weight in social.items() if not weight)  # which have presets

    def hidden(name: str) -> bool:
        group, _, field = name.removeprefix("--").partition(".")
        if name == "--held-out":
            return not config.train_against
        if name in RARE:
            return True
        if not field or name in switches:
            return False
        idle = group == "ppo" and (field in useless or field.startswith(unused))
        return idle or not groups.get(group, True)

    return hidden
