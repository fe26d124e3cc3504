"""A run's folder: everything about it, and nothing outside it.

<run>/  config.json  metrics.jsonl  tensorboard/  checkpoints/<step>/  result.json
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.config import ConfigError, TrainConfig, from_json, to_json
from hopplus.runs import checkpoint
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line


@contextmanager
def clear_errors(doing: str) -> Iterator[None]:
    """Turn what the disk may refuse into one sentence."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot {doing}: {error.strerror or error}") from error


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    def config(self) -> TrainConfig:
        """The configuration the run was made with."""
        file = self.path / "config.json"
        try:
            return from_json(TrainConfig, json.loads(file.read_text(encoding="utf-8"))["config"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{self.path} is not a run of hopplus: no usable config.json"
            ) from error

    def load(self, like: Any) -> tuple[int, Any]:
        """The newest checkpoint that is whole, as (step, tree); damaged ones are named."""
        for step in reversed(checkpoint.steps_of(self.checkpoints)):
            path = self.checkpoints / str(step)
            try:
                return step, checkpoint.filled(like, checkpoint.read_checkpoint(path), str(path))
            except checkpoint.DamagedError as damage:
                say(f"{damage}; using the one before it")
        raise ConfigError(f"{self.path} has no usable checkpoint")

    def save(self, step: int, tree: Any, facts: dict[str, Any], keep: int) -> None:
        """Write a checkpoint and drop those no longer wanted."""
        with clear_errors(f"write a checkpoint in {self.path}"):
            checkpoint.write_checkpoint(self.checkpoints, step, tree, facts)
            checkpoint.prune(self.checkpoints, keep)

    def metrics(self) -> list[dict[str, Any]]:
        """What was logged, a record per update; an unfinished last line is left out."""
        if not self.metrics_file.exists():
            return []
        lines = self.metrics_file.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def rewind(self, update: int) -> None:
        """Forget what was logged after an update, because it will be logged again."""
        kept = [
            json.dumps(record) + "\n" for record in self.metrics() if record["update"] <= update
        ]
        with clear_errors(f"write in {self.path}"):
            temporary = self.metrics_file.with_suffix(".writing")
            checkpoint.write_durably(temporary, "".join(kept).encode())
            os.replace(temporary, self.metrics_file)

    def log(self, record: dict[str, Any]) -> None:
        """Add one record to the metrics."""
        with clear_errors(f"write in {self.path}"), self.metrics_file.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def result(self) -> dict[str, Any] | None:
        """What came of the run, if it is finished."""
        file = self.path / "result.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def write_result(self, result: dict[str, Any]) -> None:
        with clear_errors(f"write in {self.path}"):
            content = json.dumps(result, indent=2).encode()
            temporary = self.path / "result.writing"
            checkpoint.write_durably(temporary, content)
            os.replace(temporary, self.path / "result.json")


def make_run(path: Path, config: TrainConfig) -> RunFolder:
    """A new folder with its config.json; an existing one is refused."""
    with clear_errors(f"make the run folder {path}"):
        if path.exists():
            raise ConfigError(
                f"{path} exists already: take another --name, or go on with hopplus resume {path}"
            )
        path.mkdir(parents=True)
        facts = {
            "config": to_json(config),
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
        checkpoint.write_durably(path / "config.json", json.dumps(facts, indent=2).encode())
    return RunFolder(path)


def open_run(path: Path) -> RunFolder:
    """An existing run."""
    if not (path / "config.json").is_file():
        raise ConfigError(f"{path} is not a run of hopplus: it has no config.json")
    return RunFolder(path)


def _git_revision() -> str | None:
    here = Path(__file__).resolve().parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True
        )
    except OSError:
        return None
    return found.stdout.strip() or None


def plain(tree: dict[str, Any]) -> dict[str, Any]:
    """Arrays as nested lists of numbers, for JSON."""
    return {name: np.asarray(value).tolist() for name, value in tree.items()}
