"""The commands, by name, in the order in which help lists them."""

from collections.abc import Sequence
from typing import Any

from hopplus.cli.adapt import Adapt
from hopplus.cli.bench import BENCHES, Bench
from hopplus.cli.certify import Certify
from hopplus.cli.collect import Collect
from hopplus.cli.crossplay import CrossPlay
from hopplus.cli.diagnose.command import DIAGNOSES, Diagnose
from hopplus.cli.evaluate import Evaluate
from hopplus.cli.export import Export
from hopplus.cli.listing import List
from hopplus.cli.play import Play
from hopplus.cli.pretrain import MODELS, Pretrain
from hopplus.cli.replay import Replay
from hopplus.cli.report import Report
from hopplus.cli.studies.ablate import Ablate
from hopplus.cli.studies.leave_one_out import LeaveOneOut
from hopplus.cli.studies.sweep import Sweep
from hopplus.cli.train import Resume, Train
from hopplus.presets import PRESETS

COMMANDS: dict[str, Any] = {
    "train": Train,
    "resume": Resume,
    "evaluate": Evaluate,
    "collect": Collect,
    "pretrain": Pretrain,
    "diagnose": Diagnose,
    "certify": Certify,
    "adapt": Adapt,
    "crossplay": CrossPlay,
    "ablate": Ablate,
    "leave-one-out": LeaveOneOut,
    "sweep": Sweep,
    "report": Report,
    "replay": Replay,
    "play": Play,
    "export": Export,
    "list": List,
    "bench": Bench,
}
SUBCOMMANDS: dict[str, tuple[str, ...]] = {
    name: tuple(table)
    for name, table in (
        ("train", PRESETS),
        ("pretrain", MODELS),
        ("diagnose", DIAGNOSES),
        ("bench", BENCHES),
    )
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
