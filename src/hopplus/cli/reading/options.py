"""What all commands share: how numbers may be written, which game is meant, and simple checks."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Any, Union

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from hopplus.config import DEFAULT_GAME, GameConfig, find_game, make_config
from hopplus.config import check_options as check_options

registry = ConstructorRegistry()


@registry.primitive_rule
def read_numbers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Whole numbers may be written as 10000, 10_000 or 1e4. Others are finite: there is nothing
    here that inf or nan would be a sensible value of."""
    if info.type not in (int, float):
        return None
    read, kinds = (whole, int) if info.type is int else (finite, int | float)
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT" if info.type is int else "FLOAT",
        instance_from_str=lambda words: read(words[0]),
        is_instance=lambda value: isinstance(value, kinds) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


def one_of(commands: Mapping[str, type]) -> Any:
    """The type of a choice of one of several commands, as tyro reads it."""
    return Union[  # noqa: UP007
        tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in commands.items())
    ]


def game_named(words: Sequence[str], default: str = DEFAULT_GAME) -> str:
    """The game that a command line names with `--game`, or the default one.

    It is looked for before the line is parsed, because the options there are depend on it.
    """
    name = default
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word == "--game" and after and not after.startswith("-"):
            name = after
        elif word.startswith("--game="):
            name = word.partition("=")[2]
    return name


@contextmanager
def options_of(
    game: str, choices: Mapping[tuple[type, str], Any] = MappingProxyType({})
) -> Iterator[None]:
    """Has tyro read numbers as above, and offer the settings of that game wherever a command takes
    a `GameConfig`, and other choices than those it knows for these fields of these classes."""
    chosen = find_game(game).config
    under_way: set[Any] = set()

    def game_rule(info: StructTypeInfo) -> StructConstructorSpec | None:
        if info.type in under_way or not dataclasses.is_dataclass(info.type):
            return None
        under_way.add(info.type)  # so that tyro's own rule answers this time
        try:
            found = ConstructorRegistry.get_struct_spec(info)
        finally:
            under_way.remove(info.type)
        if not isinstance(found, StructConstructorSpec):
            return None
        # What follows from other settings is no option.
        given = {field.name for field in dataclasses.fields(info.type) if field.init}
        fields = tuple(of_game(one, info.type) for one in found.fields if one.name in given)
        return dataclasses.replace(found, fields=fields)

    def of_game(field: StructFieldSpec, owner: Any) -> StructFieldSpec:
        if field.type is GameConfig:
            given = field.default
            default = given if isinstance(given, chosen) else make_config(game)
            return dataclasses.replace(field, type=chosen, default=default)
        if owner is chosen and field.name == "name":
            return dataclasses.replace(field, type=NAME)
        return dataclasses.replace(field, type=choices.get((owner, field.name), field.type))

    games = ConstructorRegistry()
    games.struct_rule(game_rule)
    with registry, games:
        yield


NAME: Any = Annotated[
    str,
    tyro.conf.arg(
        name="",
        metavar="NAME",
        help="Which game, with options of its own: see hopplus list games, or module:ROW for one"
        " of your own.",
    ),
]


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
