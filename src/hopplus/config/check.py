"""What is wrong with a setting, in one sentence."""

import typing
from typing import Any


class ConfigError(Exception):
    """A setting, a name or a layout that cannot be used; the message is one sentence for people."""


def check(held: bool, name: str, given: object, allowed: str) -> None:
    """Raise `ConfigError` naming the field, what was given and what is allowed, unless it held."""
    if not held:
        raise ConfigError(f"{name} is {given!r} but must be {allowed}")


def check_whole(config: Any, prefix: str) -> None:
    """Raise `ConfigError` for a field of whole numbers that holds something else."""
    for name, hint in typing.get_type_hints(type(config)).items():
        kinds = typing.get_args(hint) or (hint,)
        given = getattr(config, name)
        if int in kinds and not (given is None and type(None) in kinds):
            held = isinstance(given, int) and not isinstance(given, bool)
            check(held, f"{prefix}{name}", given, "a whole number")
