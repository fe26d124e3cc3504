"""The command line: `hopplus COMMAND [options]`."""

import contextlib
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from hopplus.cli.bench import Bench
from hopplus.cli.evaluate import Evaluate
from hopplus.cli.listing import List
from hopplus.cli.options import registry
from hopplus.cli.replay import Replay
from hopplus.cli.train import Resume, Train
from hopplus.config import ConfigError
from hopplus.learning.train import RunError
from hopplus.runs.watchdog import say

Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Resume, tyro.conf.subcommand("resume")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Replay, tyro.conf.subcommand("replay")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 2 for a wrong option and 130 for Ctrl-C."""
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
    except BrokenPipeError:  # whoever read our output has gone, as in `hopplus list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parse(arguments: Sequence[str] | None) -> Command:
    """Read the command line, or raise `ConfigError` with one sentence."""
    complaint = io.StringIO()
    try:
        with registry, contextlib.redirect_stderr(complaint):
            return tyro.cli(
                Command,
                prog="hopplus",
                description="Opponent-modelling players for mixed-motive Markov games.",
                args=arguments,
                config=(
                    tyro.conf.OmitSubcommandPrefixes,
                    tyro.conf.FlagCreatePairsOff,
                    tyro.conf.CascadeSubcommandArgs,
                ),
            )
    except SystemExit as end:
        if end.code in (0, None):
            raise
        raise ConfigError(_sentence(complaint.getvalue())) from None


def _sentence(box: str) -> str:
    """The first paragraph of tyro's box of an error, without title and frame, as one sentence."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│╭╮╰╯ ") for line in plain.strip().splitlines()[1:]]
    ruled = "\n".join("" if set(line) <= set("─-") else line for line in lines)
    first, *rest = (" ".join(text.split()) for text in re.split(r"\n{2,}", ruled.strip()))
    missing = re.match(r"Missing from (.+?): (-*\w\S*)", first)
    if missing:
        return f"{missing[1]} needs {missing[2]}; see {missing[1]} --help"
    meant = re.search(r"Perhaps you meant: (--\S+)", " ".join(rest))
    hint = f" (did you mean {meant[1]}?)" if meant else ""
    help_at = re.search(r"hopplus[\w ]* --help", " ".join(rest))
    return (
        f"{first[:1].lower()}{first[1:].rstrip('.')}{hint};"
        f" see {help_at[0] if help_at else 'hopplus --help'}"
    )
