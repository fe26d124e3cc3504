"""The help of a command: which options it has, and which of them are worth showing.

tyro writes the help, in boxes of options. It is read back here rather than built a second time: the
options that do nothing in a preset are left out of the text before it is printed, and the names are
what a mistyped option is compared with. So what is shown, suggested and accepted is always what the
parser knows, and an option that is left out still works when it is given.
"""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hopplus.config import TrainConfig
from hopplus.presets import PRESETS

COMMANDS = (
    "train",
    "resume",
    "evaluate",
    "collect",
    "pretrain",
    "diagnose",
    "certify",
    "adapt",
    "crossplay",
    "ablate",
    "report",
    "replay",
    "export",
    "list",
    "bench",
)
SUBCOMMANDS: dict[str, tuple[str, ...]] = {
    "train": tuple(PRESETS),
    "pretrain": ("goal", "opponent", "world"),
    "diagnose": ("seats", "value-loss", "models", "adaptation"),
    "bench": ("game", "train", "update", "search", "faults", "report", "soak"),
}
HELP, HELP_ALL = ("-h", "--help"), "--help-all"
ASCII = str.maketrans("╭╮╰╯│─•", "++++|-*")  # for terminals that lack the letters of boxes

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NAME = re.compile(r"--[a-z][a-z0-9.-]*")


@dataclass(frozen=True)
class Option:
    """One option of a command."""

    names: tuple[str, ...]  # as shown, with aliases; a switch also with its other way
    takes: str  # what stands behind it; nothing for a switch

    @property
    def is_switch(self) -> bool:
        return not self.takes


def path_of(words: Sequence[str]) -> tuple[str, ...]:
    """The command in a command line: `train ppo` in `train ppo --steps 4e4`."""
    if not words or words[0] not in COMMANDS:
        return ()
    inner = words[1:2] if words[1:2] and words[1] in SUBCOMMANDS.get(words[0], ()) else []
    return (words[0], *inner)


def ordered(words: Sequence[str], options: Callable[[tuple[str, ...]], list[Option]]) -> list[str]:
    """The words with the preset in front of the options, where people may have put it behind some.

    The parser takes an option for that of the command to its left, and `train` alone has few. A
    word behind an option that takes one is a value, even if a preset is called that too.
    """
    inner = SUBCOMMANDS.get(words[0], ()) if words else ()
    if not inner or len(words) < 3 or not words[1].startswith("--"):
        return list(words)
    places = [place for place, word in enumerate(words) if word in inner and place > 1]
    if not places:
        return list(words)
    known = {name: one for one in options((words[0], words[places[0]])) for name in one.names}

    def is_value(place: int) -> bool:
        before = known.get(words[place - 1])
        return before is not None and not before.is_switch

    free = [place for place in places if not is_value(place)]
    if not free:
        return list(words)
    chosen = free[-1]  # `--parts opponent goal ppo`: what is last ends the values
    return [words[0], words[chosen], *words[1:chosen], *words[chosen + 1 :]]


def plain(line: str) -> str:
    """A line of the help without colours."""
    return _COLOUR.sub("", line)


def option_in(line: str) -> Option | None:
    """The option that begins in a line of the help, if any."""
    text = plain(line)
    if not (found := re.match(r"│ (-\w, )?(--[a-z].*?)(?: {2,}| *│?$)", text)):
        return None
    shown = found[2]
    names = tuple(_NAME.findall(re.sub(r"\{.*?\}", "", shown)))
    return Option(names, _NAME.sub("", shown).replace(",", "").strip())


def options_in(text: str) -> list[Option]:
    """All options of a help."""
    return [option for line in text.splitlines() if (option := option_in(line))]


def without(text: str, hidden: Callable[[str], bool]) -> tuple[str, int]:
    """The help without the options that are hidden, and how many those are; a box that is left with
    none goes too."""
    kept: list[str] = []
    gone = 0
    for block in _boxes(text.splitlines()):
        if not any(option_in(line) for line in block):
            kept += block
            continue
        lines, shows, left = [], True, False
        for line in block:
            if option := option_in(line):
                shows = not hidden(option.names[0])
                gone += not shows
                left |= shows
            if shows or plain(line)[:1] != "│":
                lines.append(line)
        kept += lines if left else []
    return "\n".join(kept), gone


def _boxes(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines in blocks: each box for itself, and what is between boxes."""
    block: list[str] = []
    for line in lines:
        edge = plain(line)[:1]
        if edge == "╭" and block:
            yield block
            block = []
        block.append(line)
        if edge == "╰":
            yield block
            block = []
    if block:
        yield block


class Captured(io.StringIO):
    """Takes what would be printed, boxes and all, in colour if the real output shows colours."""

    encoding = "utf-8"

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def manual(path: tuple[str, ...], text: str, everything: bool) -> str:
    """What `--help` shows of a command's whole help, or `--help-all`."""
    shown, gone = (text, 0) if everything else without(text, hidden_in(path))
    if not gone:
        return text.rstrip("\n")
    why = "which do nothing here unless they are given" if path[:1] == ("train",) else "for tuning"
    return f"{shown}\n{gone} more options, {why}: hopplus {' '.join(path)} {HELP_ALL}"


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
        "goal": "goal" in config.parts,
        "belief": "belief" in config.parts,
        "opponent": "opponent" in config.parts,
        "world": "world" in config.parts,
        "imagine": "imagination" in config.parts,
        "search": searches,
        "memory": remembers,
    }
    switches = {"--search.simulations", "--memory.kind"}
    # What a search finds is learned by cross-entropy, which has no ratio to clip and no bonus.
    useless = ("clip", "value-clip", "entropy", "entropy-end") if searches else ()

    def hidden(name: str) -> bool:
        group, _, field = name.removeprefix("--").partition(".")
        if not field or name in switches:
            return False
        return not groups.get(group, True) or (group == "ppo" and field in useless)

    return hidden
