"""What was measured, in files by what it depends on: the same is not measured twice."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hopplus.config import ConfigError
from hopplus.runs.checkpoint import read_record, write_durably
from hopplus.runs.folder import clear_errors

About = Mapping[str, Any]  # all that figures depend on, as JSON has it


def kept_at(folder: Path, about: About) -> Path:
    """The file that keeps what is measured with these settings."""
    text = json.dumps(about, sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def find_kept(folder: Path, about: About) -> dict[str, Any] | None:
    """What an earlier call has kept, if there was one."""
    path = kept_at(folder, about)
    if not path.exists():
        return None
    try:
        return read_record(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is damaged, so delete it: {error}") from error


def keep(folder: Path, about: About, figures: Mapping[str, Any]) -> None:
    """Write them down, with what they depend on."""
    path = kept_at(folder, about)
    with clear_errors(f"write {path}"):
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(path, json.dumps({**about, **figures}, indent=2).encode())
