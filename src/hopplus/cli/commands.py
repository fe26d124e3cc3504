"""The commands, by name, in the order in which help lists them.

A command is imported when it is named: most of them need JAX, and who asks for help, or mistypes a
name, should not wait for that.
"""

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from hopplus.presets import PRESETS


class Entry(NamedTuple):
    """A command: which class of which module of `hopplus.cli` it is, and how that begins to say
    what it does."""

    module: str
    name: str
    about: str

    def load(self) -> Any:
        """The class."""
        return getattr(importlib.import_module(f"hopplus.cli.{self.module}"), self.name)


COMMANDS = {
    "train": Entry("train", "Train", "Train players and keep everything about it in a run folder."),
    "resume": Entry(
        "train",
        "Resume",
        "Resume a stopped run, bit for bit; or make a finished one longer.",
    ),
    "evaluate": Entry(
        "evaluate",
        "Evaluate",
        "Play episodes and print the return of every seat; for a run, with each of its seeds.",
    ),
    "collect": Entry(
        "collect",
        "Collect",
        "Record episodes: observations, actions and rewards of every seat.",
    ),
    "pretrain": Entry(
        "pretrain",
        "Pretrain",
        "Fit a model to recorded play and keep everything about it in a run folder.",
    ),
    "diagnose": Entry(
        "diagnose.command",
        "Diagnose",
        "Find out what is wrong with a run, a preset, a model or a game.",
    ),
    "certify": Entry(
        "certify",
        "Certify",
        "Measure the value of knowing your co-players: oracle against blind PPO, for every lineup.",
    ),
    "adapt": Entry(
        "adapt",
        "Adapt",
        "Play trials among fixed co-players and show the focal player's return by episode.",
    ),
    "crossplay": Entry(
        "crossplay",
        "CrossPlay",
        "Seat one player of each run among the players of every other, in every seat in turn.",
    ),
    "ablate": Entry(
        "studies.ablate",
        "Ablate",
        "Train the ladder from PPO to HOP+, adding one part on every rung, and compare the rungs.",
    ),
    "leave-one-out": Entry(
        "studies.leave_one_out",
        "LeaveOneOut",
        "Train with one family of co-players held out and test with that family, for every family"
        " in turn.",
    ),
    "sweep": Entry(
        "studies.sweep",
        "Sweep",
        "Search for good settings: a grid, random draws or successive halving.",
    ),
    "report": Entry(
        "report",
        "Report",
        "Write one page about a run, or about several side by side: summary, curves, models,"
        " replay.",
    ),
    "replay": Entry(
        "replay",
        "Replay",
        "Step through episodes in a terminal, with policies, values and predictions; print one as"
        " text elsewhere, or write it to a GIF or PNG file.",
    ),
    "play": Entry(
        "play",
        "Play",
        "Play yourself, in the browser, among trained or scripted players, and see what they think"
        " of you. Only this machine can open the page; Ctrl-C ends it.",
    ),
    "export": Entry(
        "export",
        "Export",
        "Write one trained player of a run to a safetensors file that any seat can load.",
    ),
    "list": Entry(
        "listing",
        "List",
        "List the games, the scripted players, the presets of `hopplus train`, or the trained"
        " players that come with hopplus.",
    ),
    "bench": Entry("bench", "Bench", "Measure speed on this machine."),
}
SUBCOMMANDS: dict[str, tuple[str, ...]] = {
    "train": tuple(PRESETS),
    "pretrain": ("goal", "opponent", "world"),
    "diagnose": ("seats", "value-loss", "models", "adaptation"),
    "bench": ("game", "train", "update", "search"),
}


def preset_named(words: Sequence[str]) -> str | None:
    """The preset that a command line names right behind the command, or None.

    It is looked for before the line is parsed, because what its options are by default depends on
    it.
    """
    if words[:1] != ["train"] or not words[1:] or words[1].startswith("-"):
        return None
    name = words[1]
    if ":" in name:
        PRESETS[name]  # raises if it is none
    return name if name in PRESETS else None


def choices(path: tuple[str, ...]) -> tuple[str, ...]:
    """What may stand behind a command: one of its own, of all for none; nothing if it has none."""
    if not path:
        return tuple(COMMANDS)
    if path == ("train",):
        return PRESETS.known_names()  # with what was asked for from outside
    return SUBCOMMANDS.get(path[0], ()) if len(path) == 1 else ()


def name_choice(path: tuple[str, ...]) -> str:
    """What such a choice is called."""
    return "preset" if path == ("train",) else "command"
