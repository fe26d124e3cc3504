"""Rows of a table of runs: presets with options of `hopplus train`, each one word of the line."""

import re
import shlex
from collections.abc import Mapping, Sequence

from hopplus.config import ConfigError, TrainConfig
from hopplus.runs.folder import check_name

# What a row does not say for itself: the same for all, or none of a row's business.
COMMON = ("game", "steps", "seeds", "seed", "trial", "seats", "train-against", "held-out")
FOREIGN = ("name", "runs", "json")


def read_rows(rows: Sequence[str], common: Mapping[str, str]) -> dict[str, TrainConfig]:
    """The settings of `ppo`, `ppo-memory --net.hidden 128` and `wide=ppo --net.hidden 256`, with
    the options that all have in common, by name; or `ConfigError` in one sentence."""
    found: dict[str, TrainConfig] = {}
    for row in rows:
        name, config = _read(row, common)
        if name in found:
            raise ConfigError(f"two rows are called {name}: name one, as in other='{row}'")
        found[name] = config
    return found


def _read(row: str, common: Mapping[str, str]) -> tuple[str, TrainConfig]:
    from hopplus.cli import parse  # which knows all commands, and so whoever asks here

    try:
        preset, *words = shlex.split(row)
    except ValueError:
        raise ConfigError(f"the row {row!r} is no preset with options of hopplus train") from None
    name, named, after = preset.partition("=")
    preset = after if named else preset
    for word in words:
        option = re.split(r"[.=]", word.removeprefix("--"))[0]
        if word.startswith("--") and option in (*COMMON, *FOREIGN):
            raise ConfigError(f"the row {row!r} has --{option}, which is not a row's own to say")
    given = [part for option, value in common.items() for part in (f"--{option}", value)]
    try:
        config = parse(["train", preset, *words, *given]).config
        return check_name(name if named else preset.rpartition(":")[2]), config
    except ConfigError as error:
        raise ConfigError(f"the row {row!r}: {error}") from None
