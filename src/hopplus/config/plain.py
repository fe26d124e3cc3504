"""Settings as plain data and back."""

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from hopplus.config.check import ConfigError, check
from hopplus.config.game import GameConfig
from hopplus.config.games import find_game, make_config
from hopplus.config.nearest import nearest

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


def change(config: Config, given: Mapping[str, Any], above: str = "") -> Config:
    """The settings with others in place of some, by their names: `{"ppo": {"games": 8}}`, or
    `{"ppo.games": 8}`. A game may be its name alone.

    An unknown name is an error that says which may be meant. A whole number may be written as 1e6,
    and "None" stands for None, which TOML has not.
    """
    config_kind: Any = type(config)
    hints = typing.get_type_hints(config_kind)
    names = [one.name for one in dataclasses.fields(config_kind) if one.init]
    changes: dict[str, Any] = {}
    for name, value in _nested(given).items():
        if name not in names:
            raise ConfigError(_no_setting(f"{above}{name}", config, above))
        now = getattr(config, name)
        if hints[name] is GameConfig:
            value = {"name": value} if isinstance(value, str) else value
            if isinstance(value, Mapping) and value.get("name", now.name) != now.name:
                now = make_config(value["name"])
        if isinstance(value, Mapping) and dataclasses.is_dataclass(now):
            changes[name] = change(now, value, f"{above}{name}.")
        else:
            changes[name] = _read(hints[name], value, f"{above}{name}")
    return dataclasses.replace(config, **changes)  # type: ignore[type-var]


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the first part of their names; those with dots or hyphens as they are typed."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        first, _, rest = name.replace("-", "_").partition(".")
        if not rest:
            found[first] = value
            continue
        inner = found.get(first, {})
        if not isinstance(inner, Mapping):  # a game by its name, say
            inner = {"name": inner} if isinstance(inner, str) else dataclasses.asdict(inner)
        found[first] = {**inner, rest: value}
    return found


def _no_setting(name: str, config: Any, above: str) -> str:
    known = [f"--{above}{one}".replace("_", "-") for one in flat(to_json(config))]
    here = [one for one in known if one.count(".") == above.count(".")]  # which is meant rather
    word = f"--{name}".replace("_", "-")
    near = nearest(word, dict.fromkeys(here, True)) or nearest(word, dict.fromkeys(known, True))
    meant = " or ".join(one.removeprefix("--").replace("-", "_") for one in near)
    return f"there is no setting {name!r}" + (f": did you mean {meant}?" if meant else "")


def _read(hint: Any, value: Any, name: str) -> Any:
    """A value of that type as a person writes it; what is wrong with it, its settings will say."""
    kinds = typing.get_args(hint) if _optional(hint) else (hint,)
    if value == "None" and _optional(hint):
        return None
    if any(typing.get_origin(kind) is tuple for kind in kinds):
        check(isinstance(value, list | tuple), name, value, "a list")
        return tuple(value)
    if any(dataclasses.is_dataclass(kind) for kind in kinds):
        held = any(isinstance(value, kind) for kind in kinds)
        check(held, name, value, f"a {kinds[0].__name__}, or settings by name")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if int in kinds and float(value).is_integer():
        return int(value)
    return float(value) if float in kinds else value


def _optional(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)
