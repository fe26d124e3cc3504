"""What is wrong with a setting, in one sentence."""

import types
import typing
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

from hopplus.errors import ConfigError as ConfigError

LARGE = 1_000_000  # a weight or a rate beyond that is a mistake, and single precision suffers
MANY = 2**24  # the same for counts of what is held in memory
MOST = 10**12  # of anything that is counted
RANGES = {"games": (1, 2**22), "seed": (0, 2**32 - 1)}


def check(held: bool, name: str, given: object, allowed: str) -> None:
    """Raise `ConfigError` naming the option as it is typed, what was given and what is allowed,
    unless it held."""
    if not held:
        raise ConfigError(f"{option(name)} is {given!r} but must be {allowed}")


def check_range(name: str, given: float | None, low: float, high: float) -> None:
    """Raise `ConfigError` with both ends unless a number that is given lies between them."""
    held = given is None or low <= given <= high  # nan does not
    check(held, name, given, f"from {low} to {high}")


def check_above(name: str, given: float | None, low: float, high: float) -> None:
    """The same for a number that must not be the lower end itself."""
    held = given is None or low < given <= high
    check(held, name, given, f"above {low} and at most {high}")


class Between(NamedTuple):
    """What a number may be: in a field's type, `size: Annotated[int, Between(1, 32)]`."""

    low: float
    high: float


class Above(Between):
    """The same without the lower end."""


class Inside(Between):
    """The same without either end."""


Share: TypeAlias = Annotated[float, Between(0, 1)]
Weight: TypeAlias = Annotated[float, Between(0, LARGE)]
Positive: TypeAlias = Annotated[float, Above(0, LARGE)]
Count: TypeAlias = Annotated[int, Between(1, MANY)]


@dataclass(frozen=True)
class Settings:
    """Settings that check themselves when made, by the types of their fields."""

    prefix: ClassVar[str]  # of their options

    def __post_init__(self) -> None:
        check_fields(self, self.prefix)


def check_fields(config: Any, prefix: str) -> None:
    """Raise `ConfigError` for a field that is not what its type says: a number, one of a range, a
    switch, one of some words."""
    check_whole(config, prefix)
    for name, hint in typing.get_type_hints(type(config), include_extras=True).items():
        given, called = getattr(config, name), f"{prefix}{name}"
        if hint is bool:
            check(isinstance(given, bool), called, given, "yes or no")
        inner = typing.get_args(hint)
        for choice in (hint, *inner):
            if typing.get_origin(choice) is Literal and not (given is None and type(None) in inner):
                words = typing.get_args(choice)
                allowed = " or ".join(words) if len(words) == 2 else ", ".join(words)
                check(given in words, called, given, allowed)
        several = typing.get_origin(hint) is tuple
        for one in given if several else (given,):
            for limit in getattr(inner[0] if several else hint, "__metadata__", ()):
                match limit:
                    case Above():
                        check_above(called, one, *limit)
                    case Inside(low, high):
                        check(low < one < high, called, one, f"above {low} and below {high}")
                    case Between():
                        check_range(called, one, *limit)


def option(name: str) -> str:
    """A setting as it is typed: `--goal.mixing-until` for `goal.mixing_until`."""
    return f"--{name.removeprefix('--').replace('_', '-')}"


def check_whole(config: Any, prefix: str) -> None:
    """Raise `ConfigError` for a field of numbers that holds something else: whole ones where they
    are counted, and None only where it may be left out."""
    for name, hint in typing.get_type_hints(type(config)).items():
        kinds = {hint, *(typing.get_args(hint) if isinstance(hint, types.UnionType) else ())}
        given = getattr(config, name)
        if (given is None and type(None) in kinds) or not kinds & {int, float}:
            continue
        whole = int in kinds
        held = isinstance(given, int if whole else int | float) and not isinstance(given, bool)
        check(held, f"{prefix}{name}", given, "a whole number" if whole else "a number")


def check_options(**given: float | None) -> None:
    """Raise `ConfigError` for the first option that is out of its range: not above zero, or
    absurdly large, unless `RANGES` has another. One that is None was not given."""
    for name, value in given.items():
        if isinstance(value, float):
            check_above(f"--{name}", value, 0, MOST)
        else:
            check_range(f"--{name}", value, *RANGES.get(name, (1, MOST)))
