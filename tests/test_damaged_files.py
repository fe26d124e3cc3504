"""Damaged files, wherever one is read: each is named in one sentence, and nothing is written."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from hopplus.recorded.dataset import FACTS
from refusals import FOUR, Damage, refused


def put(name: str, content: str | bytes) -> Damage:
    """Damage that replaces a file."""
    data = content.encode() if isinstance(content, str) else content

    def damage(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return damage


def cut(name: str) -> Damage:
    """Damage that leaves half of a file."""

    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def gone(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def folder_for(name: str) -> Damage:
    """Damage that puts a folder where a file should be."""

    def damage(folder: Path) -> None:
        gone(name)(folder)
        (folder / name).mkdir()

    return damage


def edited(name: str, *keys: str, value: object) -> Damage:
    """Damage within a JSON file."""

    def damage(folder: Path) -> None:
        whole = json.loads((folder / name).read_text())
        inner = whole
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        (folder / name).write_text(json.dumps(whole))

    return damage


CONFIG_DAMAGE: dict[str, Damage] = {
    "no config": gone("config.json"),
    "empty config": put("config.json", ""),
    "half a config": cut("config.json"),
    "config of words": put("config.json", "once upon a time"),
    "config of bytes": put("config.json", b"\xff\xfe\x00"),
    "config is a list": put("config.json", "[1]"),
    "config without settings": put("config.json", "{}"),
    "config is a folder": folder_for("config.json"),
    "settings are a number": edited("config.json", "config", value=3),
    "a group is a number": edited("config.json", "config", "ppo", value=3),
    "a count is a word": edited("config.json", "config", "ppo", "games", value="x"),
    "a rate is a word": edited("config.json", "config", "ppo", "learning_rate", value="x"),
    "a rate is nothing": edited("config.json", "config", "ppo", "learning_rate", value=None),
    "a setting is out of range": edited("config.json", "config", "game", "size", value=99),
    "a setting is unknown": edited("config.json", "config", "sauce", value=1),
    "parts are a number": edited("config.json", "config", "parts", value=3),
    "strengths are words": edited("config.json", "config", "game", "strength", value=["a", "b"]),
    "kind is unknown": edited("config.json", "kind", value="opera"),
    "kind is a list": edited("config.json", "kind", value=[1]),
}
READERS = (
    "resume runs/a",
    "evaluate runs/a",
    "replay runs/a --episode 0",
    "export runs/a --out x.safetensors",
    "adapt runs/a --trials 2",
    "crossplay runs/a stag",
    "report runs/a --quick",
    "diagnose seats runs/a",
    "diagnose value-loss runs/a",
    "diagnose adaptation runs/a --trials 2",
    "collect runs/a --episodes 2",
    "diagnose models runs/a",
)


@pytest.mark.parametrize("damage", CONFIG_DAMAGE)
@pytest.mark.parametrize("command", READERS)
def test_damaged_settings(
    command: str, damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a run: whoever reads it says which run."""
    CONFIG_DAMAGE[damage](place["runs/a"])
    refused(command, "runs/a", capsys)


def checkpointed(damage: Damage) -> Damage:
    """The same for the files of the newest checkpoint, of which there is one then."""

    def spoil(folder: Path) -> None:
        steps = sorted((folder / "checkpoints").iterdir(), key=lambda path: int(path.name))
        for step in steps[:-1]:
            shutil.rmtree(step)
        damage(steps[-1])

    return spoil


def rehashed(content: bytes) -> Damage:
    """Arrays that are what the manifest says, and no arrays."""

    def damage(folder: Path) -> None:
        put("players.safetensors", content)(folder)
        digest = hashlib.sha256(content).hexdigest()
        edited("manifest.json", "sha256", "players", value=digest)(folder)

    return damage


CHECKPOINT_DAMAGE: dict[str, Damage] = {
    "half of the arrays": checkpointed(cut("players.safetensors")),
    "no arrays": checkpointed(gone("players.safetensors")),
    "arrays of words": checkpointed(put("players.safetensors", "once")),
    "arrays that are none": checkpointed(rehashed(b"once upon a time")),
    "other arrays": checkpointed(rehashed(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")),
    "no manifest": checkpointed(gone("manifest.json")),
    "half a manifest": checkpointed(cut("manifest.json")),
    "manifest is a list": checkpointed(put("manifest.json", "[1]")),
    "arrays are a folder": checkpointed(folder_for("players.safetensors")),
}


@pytest.mark.parametrize("damage", CHECKPOINT_DAMAGE)
@pytest.mark.parametrize(
    "command", ["evaluate runs/a", "export runs/a --out x.safetensors", "crossplay runs/a stag"]
)
def test_damaged_checkpoints(
    command: str, damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever needs one says which is damaged, and that there is none left."""
    CHECKPOINT_DAMAGE[damage](place["runs/a"])
    refused(command, "has no usable checkpoint", capsys, said=2)


def test_no_checkpoint(place: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    gone("checkpoints")(place["runs/a"])
    refused("evaluate runs/a", "has no usable checkpoint", capsys)


LOG_DAMAGE: dict[str, tuple[str, Damage]] = {
    "metrics of words": ("report runs/a --quick", put("metrics.jsonl", "once\n")),
    "metrics of bytes": ("report runs/a --quick", put("metrics.jsonl", b"\xff\xfe\n")),
    "metrics are lists": ("report runs/a --quick", put("metrics.jsonl", "[1]\n")),
    "metrics are numbers": ("report runs/a --quick", put("metrics.jsonl", "3\n")),
    "metrics without steps": ("report runs/a --quick", put("metrics.jsonl", "{}\n")),
    "metrics are a folder": ("report runs/a --quick", folder_for("metrics.jsonl")),
    "result of words": ("report runs/a --quick", put("result.json", "once")),
    "result of bytes": ("report runs/a --quick", put("result.json", b"\xff\xfe")),
    "result is a list": ("report runs/a --quick", put("result.json", "[1]")),
    "half a result": ("report runs/a --quick", cut("result.json")),
    "result is a folder": ("report runs/a --quick", folder_for("result.json")),
    "half a result, resumed": ("resume runs/a", cut("result.json")),
    "result is a list, resumed": ("resume runs/a", put("result.json", "[1]")),
}


@pytest.mark.parametrize("damage", LOG_DAMAGE)
def test_damaged_logs(
    damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command, spoil = LOG_DAMAGE[damage]
    spoil(place["runs/a"])
    refused(command, "runs/a", capsys)


METRICS_DAMAGE: dict[str, Damage] = {
    "words": put("metrics.jsonl", "once\n"),
    "bytes": put("metrics.jsonl", b"\xff\xfe\n"),
    "lists": put("metrics.jsonl", "[1]\n"),
    "nothing": put("metrics.jsonl", ""),
    "no updates": put("metrics.jsonl", "{}\n"),
    "wrong updates": put("metrics.jsonl", '{"update": "x"}\n'),
    "a folder": folder_for("metrics.jsonl"),
}


@pytest.mark.parametrize("damage", METRICS_DAMAGE)
def test_damaged_metrics_of_a_run_that_goes_on(
    damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    gone("result.json")(place["runs/a"])
    METRICS_DAMAGE[damage](place["runs/a"])
    refused("resume runs/a", "metrics.jsonl", capsys)


DATA_DAMAGE: dict[str, Damage] = {
    "no facts": gone(FACTS),
    "half the facts": cut(FACTS),
    "facts of words": put(FACTS, "once"),
    "facts of bytes": put(FACTS, b"\xff\xfe"),
    "facts are a list": put(FACTS, "[1]"),
    "no facts in them": put(FACTS, "{}"),
    "facts are a folder": folder_for(FACTS),
    "another format": edited(FACTS, "format", value="x"),
    "a game that is none": edited(FACTS, "game", value=3),
    "a game out of range": edited(FACTS, "game", "size", value=99),
    "seats that are none": edited(FACTS, "seats", value=3),
    "files that are none": edited(FACTS, "files", value=3),
}


@pytest.mark.parametrize("damage", DATA_DAMAGE)
def test_damaged_data(
    damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    DATA_DAMAGE[damage](place["data"])
    refused("pretrain world --data data", "data", capsys)


@pytest.mark.parametrize("content", [b"", b"once", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"])
@pytest.mark.parametrize(
    "command",
    [
        "evaluate --players player.safetensors,stag --game.seats 2",
        "adapt player.safetensors",
        "train ppo --seats learn,player.safetensors --game.seats 2",
        "diagnose adaptation player.safetensors",
        "certify --game.seats 2 --against player.safetensors",
    ],
)
def test_damaged_players(
    command: str, content: bytes, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place["player.safetensors"].write_bytes(content)
    refused(command, "player.safetensors", capsys)


@pytest.mark.parametrize(
    "content", ["", "once", "[1]", "{}", '{"told": 3}', '{"told": 1, "config": 3}', "3", "null"]
)
def test_damaged_references(
    content: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("references.json").write_text(content)
    refused("adapt runs/a --references references.json", "references.json", capsys)


@pytest.mark.parametrize(
    "content", ["", "\n", "0 1 2 3\n", "0 1S\n. x\n", "0 0 1 .\n. . . .\n. . . .\n. . . .\n"]
)
def test_damaged_layouts(
    content: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("board.txt").write_text(content)
    refused(f"replay --players {FOUR} --layout board.txt", "", capsys)
