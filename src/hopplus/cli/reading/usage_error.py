"""What is wrong with a command line, as one sentence for people."""

import difflib
import re
from collections.abc import Mapping, Sequence

from hopplus.cli.commands import choices, name_choice
from hopplus.config.nearest import nearest

# Options there were: what to write instead.
RENAMED = {
    "--game.name": "it is --game",
    "--run-seed": "write the seed behind the run: runs/a#2",
    "--world.model.head": "it is --world.head",
    "--world.model.hidden": "it is --world.hidden",
    "--world.model.channel-weights": "it is --world.channel-weights",
    "--ppo.mix": "it is --ppo.gae-lambda",
}
# And those of some commands.
RENAMED_IN = {
    "pretrain goal": {
        f"--goal.{name}": f"it is --goal.prior.{name}"
        for name in ("kind", "size", "loss", "kl", "ahead", "temperature")
    }
    | {
        f"--goal.net.{name}": f"it is --goal.prior.net.{name}"
        for name in ("kind", "hidden", "layers", "channels")
    },
    "ablate": {"--games": "it is --ppo.games", "--unroll": "it is --ppo.unroll"},
    "bench search": {"--breakdown": "it is python -m benchmarks.breakdown, in the repository"},
    "adapt": {"--learning-rate": "it is --ppo.learning-rate"},
}
# Commands there were.
MOVED = {
    f"bench {name}": f"it is python -m benchmarks.{name}, in the repository"
    for name in ("faults", "report", "soak")
}
KINDS = {"INT": "a whole number of at most 9e15", "FLOAT": "a number", "STR": "a word"}


def sentence(box: str, path: tuple[str, ...]) -> str:
    """tyro's box of an error as a sentence: what is wrong, and where to read on about the command
    `path`."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│╭╮╰╯ ") for line in plain.strip().splitlines()[1:]]  # without its title
    ruled = "\n".join("" if set(line) <= set("─-") else line for line in lines)
    first = " ".join(re.split(r"\n{2,}", ruled.strip())[0].split())
    return f"{_wrong(first)}; {see(path)}"


def _wrong(said: str) -> str:
    if missing := re.match(r"Missing from (.+?): (\S+)", said):
        return f"{missing[1]} needs {missing[2]}"
    if valueless := re.match(r"Missing value for argument '(\S+)'", said):
        return f"{_option(valueless[1])} needs a value"
    if choice := re.match(r"invalid choice (.+) for argument '(\S+)'. Expected one of (.+)", said):
        allowed = re.findall(r"'([^']+)'", choice[3])
        given = choice[1].strip("'")
        hint = _said(difflib.get_close_matches(given, allowed, 1))
        said = f"{given!r}{hint} is not"
        if choice[2].startswith("-"):
            said = f"{_option(choice[2])} is {given!r}{hint} but must be"
        return f"{said} one of {', '.join(allowed)}"
    if value := re.match(r"Error parsing (\S+?): (.+)", said):
        if untyped := re.match(r"no type matching (\S+) could be .+ from \['(.*)'\]", value[2]):
            known = [kind for kind in untyped[1].split("|") if kind != "{None}"]
            kinds = " or ".join(KINDS.get(kind, kind) for kind in known)
            return f"{_option(value[1])} is {untyped[2]!r} but must be {kinds}"
        many = re.match(r"Could not find valid parse for arguments: (\[.*\])", value[2])
        wrong = f"cannot be read from {many[1]}" if many else value[2].rstrip(".")
        return f"{_option(value[1])}{' ' if many else ': '}{wrong}"
    return f"{said[:1].lower()}{said[1:].rstrip('.')}"


def see(path: tuple[str, ...]) -> str:
    """Where to read on about a command."""
    return f"see {' '.join(('hopplus', *path))} --help"


def _option(names: str) -> str:
    """An option by its own name: tyro tells the other names first."""
    return names.split("/")[-1]


def missing_command() -> str:
    """No command is given."""
    return f"expected one of {{{', '.join(choices(()))}}}; {see(())}"


def no_command(word: str, path: tuple[str, ...], known: Sequence[str]) -> str:
    """A command, or one of a command's own, that there is not."""
    if instead := MOVED.get(" ".join((*path, word))):
        return f"no command {word!r}: {instead}; {see(path)}"
    hint = _said(difflib.get_close_matches(word.lower(), known, 1))
    return f"no {name_choice(path)} {word!r}{hint}; there are {', '.join(known)}; {see(path)}"


def unexpected(word: str, path: tuple[str, ...], options: Mapping[str, bool]) -> str:
    """An option or another word that a command does not take; `options` are all it has, and whether
    its help shows them."""
    if not word.startswith("-"):
        return f"{word!r} is not expected there; {see(path)}"
    word = word.partition("=")[0]
    name = word.replace("_", "-").lower()
    if instead := RENAMED_IN.get(" ".join(path), {}).get(name) or RENAMED.get(name):
        return f"no option {word!r}: {instead}; {see(path)}"
    if path == ("sweep",) and "." in word:
        return f"no option {word!r}: quote it with the preset, as 'ppo {word} ...'; {see(path)}"
    if inner := choices(path):
        what = name_choice(path)
        return f"no option {word!r} without a {what}: give one of {', '.join(inner)}; {see(path)}"
    return f"no option {word!r}{_said(nearest(name, options))}; {see(path)}"


def as_typed(message: str, given: Sequence[str]) -> str:
    """A message about an option with the name that was typed: a network does not know whose it is,
    so it speaks of --net.hidden where --opponent.net.hidden was given."""
    if not (found := re.match(r"--[a-z0-9.-]+(?= is )", message)) or found[0] in given:
        return message
    longer = [name for name in given if name.endswith(f".{found[0].removeprefix('--')}")]
    return message.replace(found[0], " or ".join(dict.fromkeys(longer)), 1) if longer else message


def _said(names: Sequence[str]) -> str:
    return f" (did you mean {' or '.join(names)}?)" if names else ""
