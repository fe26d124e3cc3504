"""Folders that are made whole or not at all, and what is written down when a run is made."""

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hopplus.config import RunConfig, to_json
from hopplus.runs import checkpoint
from hopplus.runs.folder import LAYOUT, check_free, clear_errors
from hopplus.runs.loggers import check_loggers
from hopplus.runtime import device_line


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yields a folder to put files into, which takes its name when all is written."""
    writing = path.with_name(f".{path.name}{checkpoint.WRITING}")
    shutil.rmtree(writing, ignore_errors=True)
    made = [one for one in (writing.parent, *writing.parent.parents) if not one.exists()]
    writing.mkdir(parents=True)
    try:
        yield writing
        os.rename(writing, path)
    except BaseException:  # nothing half made is left behind
        shutil.rmtree(writing, ignore_errors=True)
        for folder in made:
            with suppress(OSError):  # somebody else has put something there meanwhile
                folder.rmdir()
        raise


@contextmanager
def make_run(path: Path, config: RunConfig, about: dict[str, Any] | None = None) -> Iterator[Path]:
    """Make a run's folder: yields one to put more into. `about` is what else to write down."""
    check_loggers(config)
    with clear_errors(f"make the run folder {path}"):
        check_free(path, f"take another --name, or go on with hopplus resume {path}")
        facts = {
            "layout": LAYOUT,
            "kind": config.kind,
            "config": to_json(config),
            **(about or {}),
            "seeds": list(range(config.seed, config.seed + config.seeds)),
            "command": sys.argv,
            "git": _git_revision(),
            "hardware": device_line(),
            "versions": {
                "python": platform.python_version(),
                **{
                    name: importlib.metadata.version(name)
                    for name in ("jax", "jaxlib", "equinox", "optax", "numpy")
                },
            },
        }
        with whole_folder(path) as writing:
            content = json.dumps(facts, indent=2).encode()
            checkpoint.write_durably(writing / "config.json", content)
            yield writing


def _git_revision() -> str | None:
    here = Path(__file__).resolve().parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True
        )
    except OSError:
        return None
    return found.stdout.strip() or None
