"""Make the zoo: the trained players that come with the package (`make zoo`).

Each is trained by the command that its manifest tells, with a seed that was chosen before anybody
looked. What only training needs is left behind, and the log is thinned to its returns.
"""

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
from typing import Any, NamedTuple

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.config import ConfigError
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.checkpoint import MANIFEST, PLAYERS, file_of, read_record, steps_of, write_durably
from hopplus.runs.folder import RunError, RunFolder
from hopplus.runs.zoo import FOLDER
from hopplus.runs.zoo import MANIFEST as ZOO_MANIFEST

# Small nets, as the package carries them, and batches as small, for many updates in few steps.
_SMALL = "--net.hidden 64 --memory.size 32 --opponent.net.hidden 32"
_SMALL += " --ppo.games 128 --ppo.minibatches 16"
_LOGGED = ("update", "steps", "episodes", "return_sum")  # what is left of a log
MOST_UPDATES = 60  # that the log keeps


class Entry(NamedTuple):
    """One of the zoo."""

    about: str
    chinese: str
    options: str  # of `hopplus train`

    def command(self, name: str) -> str:
        return f"hopplus train {self.options} --seed 0 --name {name}"


ENTRIES = {
    "stag-hunt-4x4": Entry(
        "Stag-Hunt, 4x4: PPO self-play, one player for all seats",
        "猎鹿，4x4：PPO 自我对弈，所有座位同一个玩家",
        "ppo-shared --steps 1e6",
    ),
    "stag-hunt-4x4-hop-plus": Entry(
        "Stag-Hunt, 4x4: HOP+, which infers goals and predicts what you do",
        "猎鹿，4x4：HOP+，推断目标并预测你的动作",
        "hop-plus --ppo.parameters shared --steps 5e5",
    ),
    "stag-hunt-4x4-hop": Entry(
        "Stag-Hunt, 4x4: HOP, which has a belief about you and searches",
        "猎鹿，4x4：HOP，对你有信念并进行搜索",
        "hop --ppo.parameters shared --steps 3e5",
    ),
    "stag-hunt-8x8": Entry(
        "Stag-Hunt, 8x8: PPO self-play, one player for all seats",
        "猎鹿，8x8：PPO 自我对弈，所有座位同一个玩家",
        "ppo-shared --game.size 8 --steps 4e6",
    ),
    "stag-hunt-8x8-memory": Entry(
        "Stag-Hunt, 8x8: HOP+ with a memory, learned among a population",
        "猎鹿，8x8：带记忆的 HOP+，在群体中学习",
        f"hop-plus-memory --game.size 8 {_SMALL} --steps 2e6",
    ),
    "snowdrift": Entry(
        "Snowdrift, 8x8: PPO self-play, one player for all seats",
        "雪堆，8x8：PPO 自我对弈，所有座位同一个玩家",
        "ppo-shared --game snowdrift-v1 --steps 6e5",
    ),
    "snowdrift-memory": Entry(
        "Snowdrift, 8x8: HOP+ with a memory, learned among a population",
        "雪堆，8x8：带记忆的 HOP+，在群体中学习",
        f"hop-plus-memory --game snowdrift-v1 {_SMALL} --steps 2e6",
    ),
    "coin": Entry(
        "Coin game, 5x5: PPO self-play, one player for all seats",
        "硬币游戏，5x5：PPO 自我对弈，所有座位同一个玩家",
        "ppo-shared --game coin-v1 --steps 6e5",
    ),
    "coin-memory": Entry(
        "Coin game, 5x5: HOP+ with a memory, learned among a population",
        "硬币游戏，5x5：带记忆的 HOP+，在群体中学习",
        f"hop-plus-memory --game coin-v1 {_SMALL} --steps 2e6",
    ),
}
DOCS = Path(__file__).parents[1] / "docs"
PAGES: list[tuple[str, str, Callable[[Any], str]]] = [
    (
        "play.md",
        "| | who | return | trained on |",
        lambda one: f"{one['about']} | {one['return']:.2f} | {one['hardware']}",
    ),
    (
        "play.zh-CN.md",
        "| | 玩家 | 回报 | 训练于 |",
        lambda one: f"{ENTRIES[one['name']].chinese} | {one['return']:.2f} | {one['hardware']}",
    ),
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
            raise ConfigError(f"no {unknown[0]!r} in the zoo, only {', '.join(ENTRIES)}")
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
                rows = [f"| `zoo:{one['name']}` | {told(one)} |" for one in found]
                _write_table(DOCS / page, [header, "|---|---|---|---|", *rows])
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
    shutil.copy(newest / file_of(PLAYERS), kept)
    facts = read_record(newest / MANIFEST)
    facts["sha256"] = {PLAYERS: facts["sha256"][PLAYERS]}
    _write(kept / MANIFEST, facts)
    _write(out / "config.json", run.facts() | {"command": shlex.split(command)})
    shutil.copy(run.path / "result.json", out)
    lines = [{name: one[name] for name in _LOGGED} for one in run.metrics()]
    thinned = [lines[-1 - place] for place in range(0, len(lines), -(-len(lines) // MOST_UPDATES))]
    text = "".join(json.dumps(line) + "\n" for line in reversed(thinned))
    write_durably(out / "metrics.jsonl", text.encode())


def _write(path: Path, record: Mapping[str, Any]) -> None:
    write_durably(path, json.dumps(record, indent=1).encode() + b"\n")


def _write_table(path: Path, lines: Sequence[str]) -> None:
    """Put a table in the place of the one with the same header."""
    text = path.read_text("utf-8")
    before, _, rest = text.partition(lines[0])
    _, _, after = rest.partition("\n\n")
    path.write_text(before + "\n".join(lines) + "\n\n" + after, encoding="utf-8")


def _facts(folder: Path) -> dict[str, Any]:
    """What the manifest tells of one."""
    run = RunFolder(folder)
    result, name = run.result(), folder.name
    assert result is not None
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        "about": ENTRIES[name].about,
        "command": ENTRIES[name].command(name),
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
