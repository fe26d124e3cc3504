"""Kinds of options that commands share."""

from typing import Annotated

import tyro

from hopplus.config import check


def _whole(words: list[str]) -> int:
    try:
        number = float(words[0].replace("_", ""))
    except ValueError:
        raise ValueError(f"{words[0]!r} is not a whole number") from None
    if number != number or number != round(number) or abs(number) > 2**53:
        raise ValueError(f"{words[0]!r} is not a whole number")
    return int(number)


Count = Annotated[
    int,
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=_whole,
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    ),
]
"""A whole number that may be written as 10000, 10_000 or 1e4."""


def check_positive(**counts: float) -> None:
    """Raise `ConfigError` for the first option that is not above zero."""
    for name, given in counts.items():
        check(given > 0, f"--{name}", given, "above 0")


def check_seed(seed: int) -> None:
    check(0 <= seed < 2**32, "--seed", seed, "from 0 to 4294967295")
