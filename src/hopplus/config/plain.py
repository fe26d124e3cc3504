"""Settings as plain data and back."""

import dataclasses
import types
import typing
from collections.abc import Sequence
from typing import Any, TypeVar

from hopplus.config.check import ConfigError
from hopplus.config.game import GameConfig
from hopplus.config.games import find_game

Config = TypeVar("Config")


def to_json(config: Any) -> dict[str, Any]:
    """A configuration as plain data."""
    return dataclasses.asdict(config)


def from_json(kind: type[Config], data: dict[str, Any]) -> Config:
    """The configuration that `to_json` wrote; an unknown field is an error. Of a `GameConfig` the
    class is that of the game it names."""
    if kind is GameConfig:
        kind = typing.cast(type[Config], find_game(str(data.get("name"))).config)
    hints = typing.get_type_hints(kind)
    unknown = set(data) - set(hints)
    if unknown:
        raise ConfigError(f"{kind.__name__} has no field {sorted(unknown)[0]}")
    derived = {one.name for one in dataclasses.fields(kind) if not one.init}  # type: ignore[arg-type]
    given = {name: value for name, value in data.items() if name not in derived}
    return kind(**{name: _restored(hints[name], value) for name, value in given.items()})


def differing(configs: Sequence[Any]) -> dict[str, list[Any]]:
    """The settings in which configurations of one kind differ, by name, with each one's value."""
    named = [flat(to_json(config)) for config in configs]
    names = dict.fromkeys(name for one in named for name in one)
    values = {name: [one.get(name) for one in named] for name in names}
    return {name: each for name, each in values.items() if any(one != each[0] for one in each)}


def flat(tree: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Nested settings by their names with dots."""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        inner = isinstance(value, dict)
        found |= flat(value, f"{above}{name}.") if inner else {f"{above}{name}": value}
    return found


def _restored(hint: Any, value: Any) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    inner = next((option for option in options if dataclasses.is_dataclass(option)), None)
    if inner is not None and value is not None:
        return from_json(typing.cast(type, inner), value)
    is_tuple = any(typing.get_origin(option) is tuple for option in options)
    return tuple(value) if is_tuple and value is not None else value
