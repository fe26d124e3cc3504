"""What all commands share: how numbers may be written, and simple checks."""

import math

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from hopplus.config import check_above, check_range

MOST = 10**12  # of anything that is counted

registry = ConstructorRegistry()


@registry.primitive_rule
def whole_numbers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int] | None:
    """Whole numbers may be written as 10000, 10_000 or 1e4."""
    if info.type is not int:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: whole(words[0]),
        is_instance=lambda value: isinstance(value, int) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


@registry.primitive_rule
def numbers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[float] | None:
    """Numbers are finite: there is nothing here that inf or nan would be a sensible value of."""
    if info.type is not float:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="FLOAT",
        instance_from_str=lambda words: finite(words[0]),
        is_instance=lambda value: isinstance(value, int | float) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


def finite(text: str) -> float:
    """A finite number, or `ValueError`."""
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a finite number")
    return number


def whole(text: str) -> int:
    """A whole number, or `ValueError`."""
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if math.isfinite(number) and abs(number) > 2**53:
        raise ValueError(f"{text!r} is too large a number")
    if not math.isfinite(number) or number != round(number):
        raise ValueError(f"{text!r} is not a whole number")
    return int(number)


def check_positive(**counts: float) -> None:
    """Raise `ConfigError` for the first option that is not above zero, or absurdly large."""
    for name, given in counts.items():
        if isinstance(given, int):
            check_range(f"--{name}", given, 1, MOST)
        else:
            check_above(f"--{name}", given, 0, MOST)


def check_seed(seed: int) -> None:
    check_range("--seed", seed, 0, 2**32 - 1)


def check_seat(seat: int, seats: int) -> None:
    check_range("--seat", seat, 0, seats - 1)


def check_games(games: int) -> None:
    check_range("--games", games, 1, 2**22)
