"""The command line: `hopplus COMMAND [options]`."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from hopplus import __version__
from hopplus.cli.ablate import Ablate
from hopplus.cli.adapt import Adapt
from hopplus.cli.bench import Bench
from hopplus.cli.certify import Certify
from hopplus.cli.collect import Collect
from hopplus.cli.complaint import sentence
from hopplus.cli.crossplay import CrossPlay
from hopplus.cli.diagnose import Diagnose
from hopplus.cli.evaluate import Evaluate
from hopplus.cli.export import Export
from hopplus.cli.listing import List
from hopplus.cli.options import registry
from hopplus.cli.pretrain import Pretrain
from hopplus.cli.replay import Replay
from hopplus.cli.report import Report
from hopplus.cli.train import Resume, Train
from hopplus.config import ConfigError
from hopplus.runs.folder import RunError
from hopplus.runs.watchdog import say

Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Resume, tyro.conf.subcommand("resume")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Pretrain, tyro.conf.subcommand("pretrain")]
    | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
    | Annotated[Certify, tyro.conf.subcommand("certify")]
    | Annotated[Adapt, tyro.conf.subcommand("adapt")]
    | Annotated[CrossPlay, tyro.conf.subcommand("crossplay")]
    | Annotated[Ablate, tyro.conf.subcommand("ablate")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Replay, tyro.conf.subcommand("replay")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 2 for a wrong option and 130 for Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack a letter: show it as ?
            stream.reconfigure(errors="replace")
    try:
        return parse(arguments).run()
    except ConfigError as error:
        say(str(error))
        return 2
    except RunError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 130
    except OSError as error:
        # Whoever reads our output has gone, as in `hopplus list | head -1`, or its disk is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            say(f"cannot write: {error.strerror}")
        return 1


def parse(arguments: Sequence[str] | None) -> Command:
    """Read the command line, or raise `ConfigError` with one sentence."""
    complaint = io.StringIO()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"hopplus {__version__}")
        raise SystemExit(0)
    try:
        with registry, contextlib.redirect_stderr(complaint):
            return tyro.cli(
                Command,
                prog="hopplus",
                description="Opponent-modelling players for mixed-motive Markov games.",
                args=words,
                config=(
                    tyro.conf.OmitSubcommandPrefixes,
                    tyro.conf.CascadeSubcommandArgs,
                ),
            )
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise ConfigError(sentence(complaint.getvalue())) from None
