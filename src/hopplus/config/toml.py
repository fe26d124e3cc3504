"""Settings of a run in a file that people write: TOML."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from hopplus.config.check import ConfigError
from hopplus.config.games import DEFAULT_GAME, make_config
from hopplus.config.train import TrainConfig


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a file by name, for `change`; `preset` names what they are changes of."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # no TOML, or no text
        raise ConfigError(f"{path} cannot be read: {error}") from error


def to_toml(config: TrainConfig, *, everything: bool = False) -> str:
    """The settings that differ from those of `TrainConfig()`, or all of them, so that a file says
    what it says whatever becomes of a preset."""
    usual = _given(replace(TrainConfig(), game=make_config(config.game.name)))
    if config.game.name != DEFAULT_GAME:
        del usual["game"]["name"]  # the others are settings of a game that has to be said
    tree = _given(config)
    return "\n".join(_lines(tree if everything else _differing(tree, usual))).lstrip() + "\n"


def _given(config: Any) -> dict[str, Any]:
    """Settings as plain data, without those that follow from others."""
    values = {one.name: getattr(config, one.name) for one in fields(config) if one.init}
    return {name: _given(value) if is_dataclass(value) else value for name, value in values.items()}


def _differing(tree: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: _differing(value, usual[name]) if isinstance(value, dict) else value
        for name, value in tree.items()
        if name not in usual or value != usual[name]
    }
    return {name: value for name, value in found.items() if value != {}}


def _lines(tree: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """What is a table comes last, as TOML wants it."""
    for name, value in tree.items():
        if not isinstance(value, dict):
            yield f"{name} = {_text(value)}"
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from ("", f"[{above}{name}]", *_lines(value, f"{above}{name}."))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return '"None"' if value is None else repr(value)
