"""What the option parser complains of, as one sentence for people."""

import difflib
import re


def sentence(box: str) -> str:
    """tyro's box of an error as a sentence: what is wrong, what may be meant, where to read on."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip("│╭╮╰╯ ") for line in plain.strip().splitlines()[1:]]  # without its title
    ruled = "\n".join("" if set(line) <= set("─-") else line for line in lines)
    first, *rest = (" ".join(text.split()) for text in re.split(r"\n{2,}", ruled.strip()))
    said = " ".join(rest)
    helped = re.findall(r"hopplus[a-z -]*? --help", said)
    see = f"see {helped[0] if helped else 'hopplus --help'}"
    if missing := re.match(r"Missing from (.+?): (\S+)", first):
        return f"{missing[1]} needs {missing[2]}; {see}"
    if unknown := re.match(r"Unrecognized (?:or misplaced )?options: ([^\s,]+)", first):
        return f"{_unknown(unknown[1], said)}; {see}"
    return f"{first[:1].lower()}{first[1:].rstrip('.')}; {see}"


def _unknown(word: str, said: str) -> str:
    """A command or an option that there is not."""
    commands = re.search(r"Available subcommands: ([\w, -]+?)(?: Perhaps| For full|$)", said)
    if commands and not word.startswith("-"):
        known = commands[1].split(", ")
        return f"no command {word!r}{_hint(word, known)}; there are {', '.join(known)}"
    return f"no option {word!r}{_hint(word, re.findall(r'--[a-z][a-z.-]*', said))}"


def _hint(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f" (did you mean {near[0]}?)" if near else ""
