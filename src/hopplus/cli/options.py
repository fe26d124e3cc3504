"""What all commands share: how numbers may be written, and simple checks."""

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from hopplus.config import check

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


def whole(text: str) -> int:
    """A whole number, or `ValueError`."""
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if not (abs(number) <= 2**53 and number == round(number)):  # also for inf and nan
        raise ValueError(f"{text!r} is not a whole number")
    return int(number)


def check_positive(**counts: float) -> None:
    """Raise `ConfigError` for the first option that is not above zero."""
    for name, given in counts.items():
        check(given > 0, f"--{name}", given, "above 0")


def check_seed(seed: int) -> None:
    check(0 <= seed < 2**32, "--seed", seed, "from 0 to 4294967295")


def check_seat(seat: int, seats: int) -> None:
    check(0 <= seat < seats, "--seat", seat, f"from 0 to {seats - 1}")


def check_games(games: int) -> None:
    check(games <= 2**22, "--games", games, "at most 4194304")
