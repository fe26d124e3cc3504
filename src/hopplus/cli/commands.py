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
        "Go on with a run that was stopped, as if it had not been; or make a finished one longer.",
    ),
    "evaluate": Entry(
        "evaluate",
        "Evaluate",
        "Play whole episodes and print what every seat got; of a run, with each of its seeds.",
    ),
    "collect": Entry(
        "collect",
        "Collect",
        "Play whole episodes and write down what everyone saw, did and got.",
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
        "Measure what being told whom one faces brings, among every lineup.",
    ),
    "adapt": Entry(
        "adapt",
        "Adapt",
        "Seat one player among others who stay the same, and watch its returns by the number of"
        " the episode.",
    ),
    "crossplay": Entry(
        "crossplay",
        "CrossPlay",
        "Put one player of each run among those of each other, in every seat in turn.",
    ),
    "ablate": Entry(
        "studies.ablate",
        "Ablate",
        "Train the ladder from PPO to HOP+, a part more on every rung, and compare the rungs.",
    ),
    "leave-one-out": Entry(
        "studies.leave_one_out",
        "LeaveOneOut",
        "Train among a population without one of its families, then play among that one, for every"
        " family in turn, and compare.",
    ),
    "sweep": Entry(
        "studies.sweep",
        "Sweep",
        "Train with every combination of some settings, or with some of them, and find the best.",
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
        "Look at episodes, with what the players think: with keys in a terminal, else one as text;"
        " or write one to a GIF or PNG file.",
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
        "Write one learned player of a run as a safetensors file that any seat can take.",
    ),
    "list": Entry(
        "listing",
        "List",
        "List the games, the scripted players, or the presets of `hopplus train`.",
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
