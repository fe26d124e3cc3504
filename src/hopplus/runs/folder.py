"""A run's folder: everything about it, and nothing outside it.

<run>/  config.json  metrics.jsonl  tensorboard/  result.json
        checkpoints/<step>/{players,training}.safetensors  (model instead of players: pretrain)
"""

import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np

from hopplus import __version__
from hopplus.config import ConfigError, RunConfig, TrainConfig, from_json, to_json
from hopplus.devices import Used
from hopplus.errors import RunError as RunError
from hopplus.runs import checkpoint
from hopplus.runs.watchdog import say
from hopplus.runs.zoo import ZOO, find_home, in_zoo

Kind = TypeVar("Kind", bound=RunConfig)
RUN_KINDS = [config.kind for config in get_args(RunConfig)]
LAYOUT = 2  # of a run's folder; 1 had players and buffers in one file, and no number
LONGEST = 2**20  # bytes of a line of the log, at most
SHOWN = 4  # runs to name where one that is asked for does not exist


class BusyError(ConfigError):
    """A run that another process is training."""


@contextmanager
def clear_errors(doing: str) -> Iterator[None]:
    """Turn what the disk may refuse into one sentence."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"cannot {doing}: {error.strerror or error}") from error


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes from the same meanwhile: they wait for the end of it, or are told."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with clear_errors(f"write in {folder}"):
        file = (folder / ".lock").open("a")  # leaves the time of a finished run alone
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            raise BusyError(f"{folder} is being trained by another process") from None
        yield


def is_busy(folder: Path) -> bool:
    """Whether another process keeps this one from it now."""
    try:
        with locked(folder):
            return False
    except BusyError:
        return True


class Saved(NamedTuple):
    """A checkpoint read back."""

    step: int
    trees: dict[str, Any]  # by the names of its files
    facts: dict[str, Any]


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

    @property
    def pages(self) -> Path:
        """The folder for pages about it: its own; or here, if it came with the package."""
        return Path() if in_zoo(self.path) else self.path

    def check_own(self) -> None:
        """Raise `ConfigError` if it came with the package: it cannot go on training."""
        if in_zoo(self.path):
            raise ConfigError(
                f"{ZOO}{self.path.name} came with hopplus, without what only training needs:"
                " hopplus list zoo has the command that trains one like it"
            )

    def facts(self) -> dict[str, Any]:
        """What was written down when the run was made."""
        try:
            facts = checkpoint.read_record(self.path / "config.json")
        except (OSError, ValueError) as error:
            raise self._unusable() from error
        if (layout := facts.get("layout", 1)) != LAYOUT:
            reader = "hopplus 0.1" if layout == 1 else "another version of hopplus"
            raise ConfigError(
                f"{self.path} is a run of {reader}, which reads it; this is hopplus {__version__}"
            )
        return facts

    @property
    def kind(self) -> str:
        """What the run is of: training, or the name of a part."""
        kind = self.facts().get("kind", TrainConfig.kind)
        if kind not in RUN_KINDS:
            raise ConfigError(f"{self.path} is a run of kind {kind!r}, which there is not")
        return str(kind)

    def config_of(self, kind: type[Kind]) -> Kind:
        """The configuration the run was made with, if it is one of that kind."""
        facts = self.facts()
        if self.kind != kind.kind:
            hint = f"; see hopplus diagnose models {self.path}" if kind is TrainConfig else ""
            raise ConfigError(
                f"{self.path} is a run of kind {self.kind}, and one of kind {kind.kind} is"
                f" needed{hint}"
            )
        try:
            return from_json(kind, facts["config"])
        except ConfigError as error:
            raise ConfigError(f"the settings of {self.path} cannot be used: {error}") from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unusable() from error

    def _unusable(self) -> ConfigError:
        return ConfigError(f"{self.path} is not a run of hopplus: no usable config.json")

    def config(self) -> TrainConfig:
        """The configuration of a training run."""
        return self.config_of(TrainConfig)

    def extend(self, config: TrainConfig) -> None:
        """Let a run of training have another number of steps, and write down how many it had; what
        came of it before is no result."""
        self.check_own()
        facts = self.facts()
        before = [*facts.get("steps_before", []), facts["config"]["steps"]]
        facts |= {"config": to_json(config), "steps_before": before}
        with clear_errors(f"write in {self.path}"):
            (self.path / "result.json").unlink(missing_ok=True)
        self._write("config.json", json.dumps(facts, indent=2))

    def load(self, like: Mapping[str, Any], step: int | None = None) -> Saved | None:
        """The newest checkpoint whose files of these names are whole, if any, as pytrees shaped as
        these, or the one of that step; damaged ones are named and passed over."""
        steps = checkpoint.steps_of(self.checkpoints) if step is None else [step]
        for step in reversed(steps):
            path = self.checkpoints / str(step)
            try:
                arrays = checkpoint.read_checkpoint(path, like)
                trees = {
                    name: checkpoint.filled(tree, arrays[name], str(path))
                    for name, tree in like.items()
                }
                return Saved(step, trees, checkpoint.read_manifest(path))
            except checkpoint.DamagedError as damage:
                before = (
                    "using the one before it" if step != steps[0] else "there is none before it"
                )
                say(f"{damage}; {before}")
        return None

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from training the same run meanwhile."""
        self.check_own()
        return locked(self.path)

    def save(self, step: int, trees: Mapping[str, Any], facts: dict[str, Any], keep: int) -> None:
        """Write a checkpoint, a file for each pytree, and drop those no longer wanted."""
        with clear_errors(f"write a checkpoint in {self.path}"):
            if self.metrics_file.exists():  # metrics must not fall behind a checkpoint
                with self.metrics_file.open("rb") as file:
                    os.fsync(file.fileno())
            checkpoint.set_aside(self.checkpoints, step)
            checkpoint.write_checkpoint(self.checkpoints, step, trees, facts)
            checkpoint.prune(self.checkpoints, keep)

    def trained_on(self) -> Used | None:
        """What its newest checkpoint was trained on; None if it has none that says so."""
        for step in checkpoint.steps_of(self.checkpoints)[-1:]:
            with suppress(checkpoint.DamagedError):  # whoever loads it will say so
                manifest = checkpoint.read_manifest(self.checkpoints / str(step))
                if isinstance(said := manifest.get(checkpoint.DEVICES), dict):
                    return Used(**said)
        return None

    def metrics(self) -> list[dict[str, Any]]:
        """What was logged, a record per update; an unfinished last line is left out."""
        return list(self.records())

    def records(self) -> Iterator[dict[str, Any]]:
        """The same, one after the other: all of a long run take much room."""
        if not self.metrics_file.exists():
            return
        with clear_errors(f"read {self.metrics_file}"), self.metrics_file.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                try:
                    record = json.loads(line)
                except ValueError as error:
                    raise ConfigError(f"{self.metrics_file} is damaged: {error}") from error
                if not isinstance(record, dict):
                    raise ConfigError(f"{self.metrics_file} is damaged: {line[:20]!r} is no record")
                yield record

    def steps_logged(self) -> int:
        """How far the log goes, by its last whole line: read often, so nothing else is."""
        try:
            with self.metrics_file.open("rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - LONGEST))
                *_, last = file.read().rpartition(b"\n")[0].splitlines()
            return int(json.loads(last)["steps"])
        except (OSError, ValueError, KeyError, TypeError):  # nothing yet, or damaged
            return 0

    def log_until(self, update: int) -> list[dict[str, Any]]:
        """What was logged up to an update, all of it."""
        try:
            kept = [record for record in self.metrics() if record["update"] <= update]
        except (KeyError, TypeError) as error:
            raise ConfigError(f"{self.metrics_file} is damaged: no number of an update") from error
        if len(kept) < update:
            raise ConfigError(f"{self.metrics_file} is damaged: it ends before update {update}")
        return kept

    def rewind(self, update: int) -> None:
        """Forget what was logged after an update, because it will be logged again."""
        kept = [json.dumps(record) + "\n" for record in self.log_until(update)]
        self._write(self.metrics_file.name, "".join(kept))

    def log(self, record: dict[str, Any]) -> None:
        """Add one record to the metrics."""
        with clear_errors(f"write in {self.path}"), self.metrics_file.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def result(self) -> dict[str, Any] | None:
        """What came of the run, if it is finished."""
        file = self.path / "result.json"
        if not file.exists():
            return None
        try:
            return checkpoint.read_record(file)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{file} is damaged: {error}") from error

    def write_result(self, result: dict[str, Any]) -> None:
        self._write("result.json", json.dumps(result, indent=2))

    def _write(self, name: str, text: str) -> None:
        """Put a file in the place of the one before: the old one or the new one is there, whole."""
        temporary = (self.path / name).with_suffix(".writing")
        with clear_errors(f"write in {self.path}"):
            checkpoint.write_durably(temporary, text.encode())
            os.replace(temporary, self.path / name)


def check_free(path: Path, advice: str = "take another --out") -> None:
    """Raise `ConfigError` if something is there already that would be written over, or if nothing
    can be there."""
    with clear_errors(f"write {path}"):
        if path.exists():
            raise ConfigError(f"{path} exists already: {advice}")
        above = next((parent for parent in path.parents if parent.exists()), Path())
        if not above.is_dir():
            raise ConfigError(f"cannot write {path}: {above} is not a folder")


def check_name(name: str) -> str:
    """A name for a folder inside another: no path, and none of the marks of players' names."""
    if not re.fullmatch(r"[\w+=-][\w+=. -]*", name) or name != name.strip():
        raise ConfigError(
            f"--name is {name!r} but must be a plain name, of letters, digits and . _ - + ="
        )
    return name


def open_run(path: Path) -> RunFolder:
    """An existing run, or one of the zoo."""
    path = find_home(path)
    try:
        if (path / "config.json").is_file():
            return RunFolder(path)
        exists = path.exists()
    except (OSError, ValueError) as error:  # such as a name that is too long
        raise ConfigError(f"cannot open {str(path)!r}: {error}") from error
    if exists:
        inside = f"; it holds {_listed(found)}" if (found := runs_in(path)) else ""
        raise ConfigError(f"{path} is not a run of hopplus: it has no config.json{inside}")
    whole = path.with_name(re.sub(r"(#\d+)?(~[\d.]+)?(@\d+)?$", "", path.name))
    if whole != path and (whole / "config.json").is_file():
        raise ConfigError(f"this is about whole runs: write {whole} instead of {path}")
    near = sorted(runs_in(path.parent), key=lambda run: -_alike(path.name, run.name))
    there = f"; there are {_listed(near)}" if near else f", and {path.parent} holds no runs"
    raise ConfigError(f"there is no run {path}{there}")


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder, by name."""
    try:
        return sorted(inner for inner in folder.iterdir() if (inner / "config.json").is_file())
    except OSError:
        return []


def _listed(runs: list[Path]) -> str:
    """A few runs, and how many more."""
    more = f" and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
    return f"{', '.join(map(str, runs[:SHOWN]))}{more}"


def _alike(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def spoilt(record: dict[str, Any]) -> str | None:
    """The first of the numbers in a record that is not finite, by name."""
    return next((name for name, value in record.items() if not np.isfinite(value).all()), None)


def plain(tree: dict[str, Any]) -> dict[str, Any]:
    """Arrays as nested lists of numbers, for JSON."""
    return {name: np.asarray(value).tolist() for name, value in tree.items()}
