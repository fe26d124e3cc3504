"""Make the zoo: the trained players that come with the package (`make zoo`).

Each is trained by the command that its manifest tells, with a seed that was chosen before anybody
looked. What only training needs is left behind, the log is thinned to its returns, and parameters
are kept in half precision: the package carries all of them.
"""

import difflib
import hashlib
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from benchmarks import main
from benchmarks.zoo_entries import ENTRIES, GAMES, KINDS, Kind
from hopplus.cli.paged import show
from hopplus.config import ConfigError
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.checkpoint import MANIFEST, PLAYERS, file_of, read_record, steps_of, write_durably
from hopplus.runs.folder import RunError, RunFolder
from hopplus.runs.zoo import FOLDER
from hopplus.runs.zoo import MANIFEST as ZOO_MANIFEST

_LOGGED = ("update", "steps", "episodes", "return_sum")  # what is left of a log
MOST_UPDATES = 40  # that the log keeps


DOCS = Path(__file__).parents[1] / "docs"
# The documents with a table of the zoo, how it begins, and what it says of a preset.
PAGES: list[tuple[str, str, Callable[[Kind], str]]] = [
    ("play.md", "| preset | who |", lambda kind: kind.about),
    ("play.zh-CN.md", "| 预设 | 玩家 |", lambda kind: kind.chinese),
]
COLUMNS: dict[str | Column, Any] = {
    "name": lambda one: one["name"],
    "about": lambda one: one["about"],
    "return": lambda one: f"{one['return']:.3f}",
    "KB": lambda one: f"{one['bytes'] / 1024:.0f}",
}


@dataclass(frozen=True)
class MakeZoo:
    """Train the players of the zoo, those that are not there or those that are named, and write
    its manifest and its tables in the documents."""

    only: tuple[str, ...] = ()
    """Which of them, even if they are there."""
    out: Path = FOLDER
    """Where the zoo is."""
    train: bool = True
    """Train them; else the manifest alone is written, of those that are there."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        if unknown := [name for name in self.only if name not in ENTRIES]:
            near = difflib.get_close_matches(unknown[0], ENTRIES, n=3)
            meant = f": did you mean {' or '.join(near)}?" if near else ""
            raise ConfigError(f"the zoo has no entry {unknown[0]!r}{meant}")
        self.out.mkdir(parents=True, exist_ok=True)
        for name in self.only or ENTRIES:
            if self.train and (self.only or not (self.out / name).exists()):
                self._train(name)
        found = [{"name": name, **_facts(self.out / name)} for name in self._there]
        manifest = {one["name"]: {**one} for one in found}
        for one in manifest.values():
            del one["name"]
        write_durably(self.out / ZOO_MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
        if self.out == FOLDER:
            for page, header, told in PAGES:
                _write_table(DOCS / page, header, overview(manifest, told))
        table = make_table(f"The zoo in {self.out}", COLUMNS, found)
        return show(Page("zoo", "", sections=[table], payload=manifest), as_json=self.json)

    @property
    def _there(self) -> list[str]:
        return [name for name in ENTRIES if (self.out / name / "result.json").exists()]

    def _train(self, name: str) -> None:
        command = ENTRIES[name].command(name)
        with TemporaryDirectory() as folder:
            words = [sys.executable, "-m", *shlex.split(command), "--runs", folder]
            if subprocess.run(words).returncode:
                raise RunError(f"{name} could not be trained")
            shutil.rmtree(self.out / name, ignore_errors=True)
            keep(RunFolder(Path(folder) / name), self.out / name, command)


def keep(run: RunFolder, out: Path, command: str) -> None:
    """Copy of a finished run what those need who play with it, or look at it."""
    step = steps_of(run.checkpoints)[-1]
    newest, kept = run.checkpoints / str(step), out / "checkpoints" / str(step)
    kept.mkdir(parents=True)
    arrays = load_tensors((newest / file_of(PLAYERS)).read_bytes())
    content = save_tensors({name: halved(array) for name, array in arrays.items()})
    write_durably(kept / file_of(PLAYERS), content)
    facts = read_record(newest / MANIFEST)
    facts["sha256"] = {PLAYERS: hashlib.sha256(content).hexdigest()}
    _write(kept / MANIFEST, facts)
    _write(out / "config.json", run.facts() | {"command": shlex.split(command)})
    shutil.copy(run.path / "result.json", out)
    lines = [{name: one[name] for name in _LOGGED} for one in run.metrics()]
    thinned = [lines[-1 - place] for place in range(0, len(lines), -(-len(lines) // MOST_UPDATES))]
    text = "".join(json.dumps(line) + "\n" for line in reversed(thinned))
    write_durably(out / "metrics.jsonl", text.encode())


def halved(array: np.ndarray) -> np.ndarray:
    """In half precision, if it is of a network."""
    if array.dtype != np.float32:
        return array
    with np.errstate(over="ignore"):  # that is looked at next
        half = array.astype(np.float16)
    if not np.isfinite(half).all():
        raise RunError("a parameter is too large for half precision")
    return half


def overview(zoo: Mapping[str, Mapping[str, Any]], told: Callable[[Kind], str]) -> list[str]:
    """The rows of a table with the return of every preset in every game; a dash stands for those
    that nobody has trained."""
    cells = {(one["game"], one["preset"]): f"{one['return']:.2f}" for one in zoo.values()}
    return [
        " | ".join(
            [f"| `{preset}`", told(kind), *(cells.get((game, preset), "-") for game in GAMES)]
        )
        + " |"
        for preset, kind in KINDS.items()
    ]


def _write(path: Path, record: Mapping[str, Any]) -> None:
    write_durably(path, json.dumps(record, indent=1).encode() + b"\n")


def _write_table(path: Path, header: str, rows: Sequence[str]) -> None:
    """Put a table in the place of the one whose header begins so."""
    text = path.read_text("utf-8")
    before, _, rest = text.partition(f"\n{header}")
    _, _, after = rest.partition("\n\n")
    games = "".join(f" `{game}` |" for game in GAMES)
    lines = [header + games, "|---|---|" + "---:|" * len(GAMES), *rows]
    path.write_text(before + "\n" + "\n".join(lines) + "\n\n" + after, encoding="utf-8")


def _facts(folder: Path) -> dict[str, Any]:
    """What the manifest tells of one."""
    run = RunFolder(folder)
    result, name = run.result(), folder.name
    assert result is not None
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    entry = ENTRIES[name]
    return {
        "about": entry.about,
        "game": entry.game,
        "preset": entry.preset,
        "command": entry.command(name),
        "return": result["mean_return"],
        "hardware": run.facts()["hardware"],
        "bytes": sum(path.stat().st_size for path in files),
        "sha256": {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        },
    }


if __name__ == "__main__":
    sys.exit(main(MakeZoo))
