"""The command line: `hopplus COMMAND [options]`."""

import contextlib
import functools
import io
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.text import Text

from hopplus import __version__
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS, choices, preset_named
from hopplus.cli.reading.manual import (
    HELP,
    HELP_ALL,
    WIDTH,
    Captured,
    Manual,
    hidden_in,
    list_commands,
    path_of,
    read_manual,
    reorder,
    set_manual,
)
from hopplus.cli.reading.options import game_named, options_of
from hopplus.cli.reading.usage_error import (
    as_typed,
    missing_command,
    no_command,
    sentence,
    unexpected,
)
from hopplus.config import DEFAULT_GAME, ConfigError, TrainConfig
from hopplus.errors import RunError
from hopplus.presets import PRESETS
from hopplus.runs.watchdog import say

FILE, PRINT = "--config", "--print-config"  # of `train`, read before the others


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 2 for a wrong option and 130 for Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack a letter: show it as ?
            stream.reconfigure(errors="replace")
    try:
        return int(parse(arguments).run())
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
        if error.filename is not None:  # a file that nobody has looked after
            say(f"cannot use {error.filename}: {error.strerror}")
            return 2
        # Whoever reads our output has gone, as in `hopplus list | head -1`, or its disk is full.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            say(f"cannot write: {error.strerror}")
        return 1


def parse(arguments: Sequence[str] | None) -> Any:
    """Read the command line, or raise `ConfigError` with one sentence."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"hopplus {__version__}")
        raise SystemExit(0)
    if os.getcwd() not in sys.path:  # where people keep a game of their own
        sys.path.append(os.getcwd())
    words, written = _with_file(words)
    preset = preset_named(words)
    usual = written or (PRESETS[preset] if preset else None)
    game = game_named(words, usual.game.name if usual else DEFAULT_GAME)
    words = reorder(words, lambda path: _manual(path, game).options)
    path = path_of(words)
    if (known := choices(path)) and words[len(path) :] and not words[len(path)].startswith("-"):
        raise ConfigError(no_command(words[len(path)], path, known))
    if asked := [word for word in words if word in (*HELP, HELP_ALL)]:
        width = min(shutil.get_terminal_size().columns, WIDTH)
        text = Text(set_manual(_manual(path, game), path, HELP_ALL in asked, width))
        text.highlight_regex(r"(?m)^ +--?[a-z][a-z0-9.-]*", "cyan")
        Console(highlight=False, soft_wrap=True).print(text)
        raise SystemExit(0)
    if not path:
        named = [word for word in words if word.startswith("--")]
        raise ConfigError(unexpected(named[0], (), {}) if named else missing_command())
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            command, rest = _read(words, game, written)
    except ConfigError as error:
        raise ConfigError(as_typed(str(error), [_name(word) for word in words])) from None
    except SystemExit as end:
        if end.code in (0, None):
            raise
        # What is missing may be there under a wrong name, so that is said first.
        options = _shown(path, game)
        given = [word for word in words if word.startswith("--")]
        rest = [word for word in given if _name(word) not in options]
        if not rest:
            raise ConfigError(sentence(printed.getvalue(), path)) from None
    if rest:
        raise ConfigError(unexpected(rest[0], path, _shown(path, game)))
    return command


def _name(word: str) -> str:
    """The name of an option, however it is written: --json for --json=True."""
    return word.partition("=")[0].replace("_", "-")


def _with_file(words: list[str]) -> tuple[list[str], TrainConfig | None]:
    """The words with a preset right behind `train`, and what a file makes of that, where the line
    names one: what options are by default depends on it."""
    if words[:1] != ["train"]:
        return words, None
    bare = [place for place, word in enumerate(words) if word == PRINT]
    if bare and words[bare[-1] + 1 : bare[-1] + 2] not in (["changed"], ["all"]):
        words = [*words[: bare[-1] + 1], "changed", *words[bare[-1] + 1 :]]
    both = [one for word in words for one in word.split("=", 1 if word.startswith(FILE) else 0)]
    if FILE not in both[:-1]:
        return words, None
    words = reorder(words, lambda path: _manual(path, DEFAULT_GAME).options)
    from hopplus.api.training import written_config

    preset, written = written_config(Path(both[both.index(FILE) + 1]), preset_named(words))
    return ["train", preset, *words[1 + (preset_named(words) is not None) :]], written


def _read(
    words: Sequence[str], game: str, written: TrainConfig | None = None
) -> tuple[Any, list[str]]:
    """The command, and the words that it does not take; with the options of that game, on top of
    what a file says."""
    command, *words = words
    kind = COMMANDS[command].load()
    choices: dict[tuple[type, str], Any] = {}
    preset = preset_named([command, *words])
    if preset and (written or preset not in SUBCOMMANDS["train"]):
        # tyro writes names with a hyphen where they have an underscore, so that it is not told.
        from hopplus.cli.train import OWN, own_preset

        words = [OWN, *words[1:]]
        choices = {(kind, "config"): own_preset(preset, written or PRESETS[preset])}
    with options_of(game, choices):
        return tyro.cli(
            kind,
            prog=f"hopplus {command}",
            args=words,
            return_unknown_args=True,
            config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.CascadeSubcommandArgs),
        )


@functools.cache
def _manual(path: tuple[str, ...], game: str = DEFAULT_GAME) -> Manual:
    """All of a command's help, with the options of that game."""
    if not path:
        return list_commands()
    out = Captured()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)  # with more room, tyro sets boxes side by side
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            _read([*path, "--help"], game)
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
    return read_manual(out.getvalue())


def _shown(path: tuple[str, ...], game: str) -> dict[str, bool]:
    """Every option of a command, and whether its help shows it."""
    hidden = hidden_in(path)
    return {
        name: not hidden(option.names[0])
        for option in _manual(path, game).options
        for name in option.names
    }
