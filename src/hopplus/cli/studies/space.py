"""What a sweep goes over: options of training, each with values or a range, and their settings."""

import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.cli.reading.rows import FOREIGN
from hopplus.config import ConfigError, TrainConfig

SEEDS = ("seed", "seeds")  # an axis of every run's own program
DIGITS = 4  # of a number that is drawn
LONGEST = 150  # letters of a folder's name
NUMBER = r"[+-]?[\d_]*\.?\d+(?:e[+-]?\d+)?"
RANGE = re.compile(rf"(log:)?({NUMBER})\.\.({NUMBER})", re.IGNORECASE)

Setting = Mapping[str, str]  # what is given for each option, as it is typed


@dataclass(frozen=True)
class Axis:
    """An option with the values it may have, or the ends between which they are drawn."""

    option: str  # ppo.learning-rate
    values: tuple[str, ...] = ()
    ends: tuple[float, float] | None = None
    log: bool = False  # whether every factor is as likely, instead of every difference

    def draw(self, rng: np.random.Generator, whole: bool) -> str:
        """One of the values; of a range one with few digits, so that a folder's name tells all."""
        if self.ends is None:
            return self.values[rng.integers(len(self.values))]
        low, high = np.log(self.ends) if self.log else self.ends
        found = rng.uniform(low, high)
        found = float(np.exp(found) if self.log else found)
        return str(round(found)) if whole else f"{found:.{DIGITS}g}"


def read_axis(text: str) -> Axis:
    """`ppo.learning_rate=1e-3,5e-4` or `ppo.learning_rate=log:1e-4..1e-2`."""
    option, _, values = text.partition("=")
    return make_axis(option, values.split(","))


def make_axis(option: str, values: Sequence[str]) -> Axis:
    """Values as they are typed behind an option, or one range."""
    option = option.strip().removeprefix("--").replace("_", "-")
    given = tuple(dict.fromkeys(filter(None, (value.strip() for value in values))))
    if not option or not given:
        raise ConfigError(
            f"--over is {option or '='!r} without values: write it as ppo.learning-rate=1e-3,5e-4"
        )
    if option in SEEDS:
        raise ConfigError(f"--over has {option}, but seeds are an axis of every run: give --seeds")
    if option in FOREIGN:
        raise ConfigError(f"--over has {option}, which is no setting of training")
    if not (found := RANGE.fullmatch(given[0])) or len(given) > 1:
        return Axis(option, given)
    log, low, high = bool(found[1]), float(found[2]), float(found[3])
    if not low < high or (log and low <= 0):
        above = "above 0 and " if log else ""
        raise ConfigError(f"--over {option} is {given[0]!r}, and its ends must be {above}in order")
    return Axis(option, ends=(low, high), log=log)


def read_sweep(path: Path, takes: Sequence[str]) -> dict[str, Any]:
    """What a file says for each of these names; of `over`, the axes."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no TOML: {error}") from error
    if wrong := next((name for name in found if name not in takes), None):
        raise ConfigError(f"{path} has {wrong!r}, and takes {', '.join(takes)}")
    over = found.get("over", {})
    if not isinstance(over, dict):
        raise ConfigError(f"{path} has an over that is no table of options")
    axes = [
        make_axis(option, [_typed(one) for one in (value if isinstance(value, list) else [value])])
        for option, value in _flat(over)
    ]
    return {**found, "over": axes}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`ppo.entropy` for the entropy of the table ppo."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _typed(value: Any) -> str:
    """As it is typed on a command line; several words for an option that takes several."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def grid(axes: Sequence[Axis]) -> list[Setting]:
    """Every value of every axis with every other."""
    if ranged := next((axis for axis in axes if axis.ends), None):
        raise ConfigError(f"--over {ranged.option} is a range, to be drawn from with --random")
    options = [axis.option for axis in axes]
    every = itertools.product(*(axis.values for axis in axes))
    return [dict(zip(options, values, strict=True)) for values in every]


def draw(axes: Sequence[Axis], count: int, seed: int, like: TrainConfig) -> list[Setting]:
    """So many settings drawn from the axes, which with more are the first of them; those that are
    drawn twice are there once."""
    drawn: list[Setting] = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        whole = {axis.option: isinstance(value_of(like, axis.option), int) for axis in axes}
        one = {axis.option: axis.draw(rng, whole[axis.option]) for axis in axes}
        if one not in drawn:
            drawn.append(one)
    return drawn


def value_of(config: TrainConfig, option: str) -> Any:
    """What an option is in settings; None if there is none."""
    found: Any = config
    for name in option.replace("-", "_").split("."):
        found = getattr(found, name, None)
    return found


def words_of(setting: Setting, like: TrainConfig) -> list[str]:
    """A setting on a command line of `hopplus train`."""
    words: list[str] = []
    for option, value in setting.items():
        try:
            parts = shlex.split(value)
        except ValueError:
            raise ConfigError(f"--over {option} has {value!r}, whose quotes do not end") from None
        if isinstance(value_of(like, option), bool) and value.lower() in ("true", "false"):
            group, dot, last = option.rpartition(".")
            words.append(f"--{group}{dot}{'' if value.lower() == 'true' else 'no-'}{last}")
        elif len(parts) == 1:
            words.append(f"--{option}={parts[0]}")  # which may begin with a minus
        else:
            words += [f"--{option}", *parts]
    return words


def name_settings(settings: Sequence[Setting]) -> dict[str, Setting]:
    """By folders' names that say what is in them: `learning-rate=1e-3+size=4`."""
    options = list(settings[0])
    last = [option.rpartition(".")[2] for option in options]
    short = {
        option: one if last.count(one) == 1 else option
        for option, one in zip(options, last, strict=True)
    }
    named: dict[str, Setting] = {}
    for setting in settings:
        pairs = [f"{short[option]}={value}" for option, value in setting.items()]
        name = re.sub(r"[^\w.=+-]+", "-", "+".join(pairs))
        if name in named or len(name) > LONGEST:
            name = f"{name[:LONGEST]}+{len(named) + 1}"
        named[name] = setting
    return named
