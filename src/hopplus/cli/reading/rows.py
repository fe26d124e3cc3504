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
    preset, words = split_row(row)
    name, named, after = preset.partition("=")
    preset = after if named else preset
    refuse(row, words, (*COMMON, *FOREIGN), "which is not a row's own to say")
    given = [part for option, value in common.items() for part in (f"--{option}", value)]
    try:
        config = read_settings(preset, [*words, *given])
        return check_name(name if named else preset.rpartition(":")[2]), config
    except ConfigError as error:
        raise ConfigError(f"the row {row!r}: {error}") from None


def split_row(row: str) -> tuple[str, list[str]]:
    """The preset of a row, and its options."""
    try:
        preset, *words = shlex.split(row)
    except ValueError:
        raise ConfigError(f"the row {row!r} is no preset with options of hopplus train") from None
    return preset, words


def refuse(row: str, words: Sequence[str], options: Sequence[str], why: str) -> None:
    """Raise `ConfigError` if one of these options is among a row's words."""
    for word in words:
        option = re.split(r"[.=]", word.removeprefix("--"))[0]
        if word.startswith("--") and option in options:
            raise ConfigError(f"the row {row!r} has --{option}, {why}")


def read_settings(preset: str, words: Sequence[str]) -> TrainConfig:
    """The settings of `hopplus train PRESET WORDS`."""
    from hopplus.cli import parse  # which knows all commands, and so whoever asks here

    config: TrainConfig = parse(["train", preset, *words]).config
    return config
