"""The zoo: what comes with the package is whole, was made as it says, and is named like any run."""

import hashlib
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

import hopplus
from benchmarks.zoo import halved, keep, overview
from benchmarks.zoo_entries import ENTRIES, GAMES, KINDS, name_of
from hopplus.cli import main, parse
from hopplus.config import GAMES as GAME_CONFIGS
from hopplus.config import ConfigError
from hopplus.learning.from_run import find_trained
from hopplus.play.names import Kind, full_name, kind_of, read_run_name
from hopplus.presets import PRESETS
from hopplus.runs.folder import RunError, open_run
from hopplus.runs.zoo import FOLDER, ZOO, find_home, zoo
from refusals import refused
from tiny_run import random_run
from tiny_search import config_of

# Of all, as everyone who installs the package gets them: some 60 players of 100 KB each.
MOST_BYTES = 6_500_000
FIRST = f"{ZOO}{next(iter(zoo()))}"


def test_all_that_it_tells_of_are_there_and_nothing_else() -> None:
    assert list(zoo()) == [name for name in ENTRIES if name in zoo()]
    assert {path.name for path in FOLDER.iterdir()} == {*zoo(), "zoo.json"}
    assert sum(about["bytes"] for about in zoo().values()) < MOST_BYTES


def test_every_preset_has_a_player_in_every_game() -> None:
    """Who adds a preset says in `KINDS` what it is, and who adds a game does so in `GAMES`."""
    assert set(KINDS) == set(PRESETS.listed())
    played = [game for game, board in GAMES.items() if not board.only]
    assert {GAMES[game].option for game in played} == set(GAME_CONFIGS.listed())
    for game in played:
        for preset in PRESETS.listed():
            entry = ENTRIES[name_of(game, preset)]
            assert (entry.game, entry.preset) == (game, preset)
    # And somebody has trained each, if not in every game: `make zoo` trains the others.
    assert {about["preset"] for about in zoo().values()} == set(PRESETS.listed())


@pytest.mark.parametrize("name", zoo())
def test_each_is_what_its_command_makes(name: str) -> None:
    """Files have their hashes, and settings are those of the command; nothing tells of the machine
    that it was made on but what it computes with."""
    about, run = zoo()[name], open_run(Path(f"{ZOO}{name}"))
    files = [path for path in run.path.rglob("*") if path.is_file()]
    hashes = {
        path.relative_to(run.path).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    assert hashes == about["sha256"]
    assert about["command"] == ENTRIES[name].command(name) == shlex.join(run.facts()["command"])
    asked = parse(shlex.split(about["command"])[1:]).config
    made = run.config()  # presets may have changed since, but not what the command says
    for what in ("game", "net", "memory", "steps", "seed"):
        assert getattr(made, what) == getattr(asked, what)
    entry = ENTRIES[name]
    assert (about["game"], about["preset"]) == (entry.game, entry.preset)
    preset = PRESETS[entry.preset]
    for what in ("parts", "search", "trial", "train_against"):
        assert getattr(asked, what) == getattr(preset, what)
    # All on one board and, but for lola, with as many seats: they can be tried with each other.
    first = open_run(Path(f"{ZOO}{entry.game}")).config().game
    assert replace(made.game, seats=first.seats) == first
    assert preset.ppo.lola.step or made.game == first
    told = run.result()
    assert told is not None
    assert told["mean_return"] == about["return"]
    assert "/" not in "".join(run.facts()["command"])


def test_they_are_named_as_runs_are() -> None:
    said = read_run_name(f"{FIRST}#0@1")
    assert (str(said), said.seed, said.seat) == (f"{FIRST}#0@1", 0, 1)
    assert kind_of(FIRST) is Kind.RUN
    assert full_name(FIRST, 2) == f"{FIRST}#0@2"
    assert find_trained(f"{FIRST}@0").config.game == open_run(Path(FIRST)).config().game
    assert hopplus.Run(FIRST).result is not None
    players = hopplus.load_players(FIRST)
    assert list(players) == [0, 1, 2, 3]
    assert find_home(Path(f"{ZOO}coin-ppo-shared")) == find_home(Path(f"{ZOO}coin"))
    assert find_home(Path(f"{ZOO}coin-hop-plus-memory")) == find_home(Path(f"{ZOO}coin-memory"))


def test_a_wrong_name_tells_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused("evaluate zoo:stag-hunt-4x", f"did you mean {ZOO}stag-hunt-4x4, {ZOO}stag", capsys)
    refused("play --seats human,zoo:stag-hunt-4x@0,stag,stag", f"{ZOO}stag-hunt-4x4", capsys)
    refused("report zoo:xyz", f"in the zoo: hopplus list zoo has all {len(zoo())}", capsys)
    with pytest.raises(ConfigError, match="did you mean"):
        read_run_name(f"{FIRST}@x")


def test_nothing_is_written_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*")}
    refused(f"resume {FIRST} --steps 9e6", "without what only training needs", capsys)
    refused(f"diagnose seats {FIRST}", "without what only training needs", capsys)
    assert main(["report", FIRST, "--quick"]) == 0
    assert (tmp_path / "report.html").exists()
    assert {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*")} == before


def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "zoo", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [name.removeprefix(ZOO) for name in told] == list(zoo())
    assert main(["list", "zoo"]) == 0
    shown = capsys.readouterr().out.splitlines()
    games = list(dict.fromkeys(about["game"] for about in zoo().values()))
    for name, about in zoo().items():
        row = next(line.split("│")[1:-1] for line in shown if f" {about['preset']} " in line)
        assert row[1 + games.index(about["game"])].strip() == f"{about['return']:.2f}", name


def test_what_only_training_needs_is_left_behind(tmp_path: Path) -> None:
    run = random_run(tmp_path / "a", config_of())
    run.write_result({"steps": 1})
    for update in range(1, 131):
        run.log({"update": update, "steps": update, "episodes": [1], "return_sum": [[1.0]], "x": 1})
    keep(run, tmp_path / "kept", "hopplus train ppo")
    kept = open_run(tmp_path / "kept")
    assert {path.name for path in kept.path.rglob("*.safetensors")} == {"players.safetensors"}
    logged = kept.metrics()
    assert [record["update"] for record in logged][-2:] == [126, 130]
    assert set(logged[0]) == {"update", "steps", "episodes", "return_sum"}
    own, whole = find_trained(f"{kept.path}@0"), find_trained(f"{run.path}@0")
    assert own.actor == whole.actor
    for half, full in zip(*map(jax.tree.leaves, (own.params, whole.params)), strict=True):
        assert half.dtype == full.dtype
        np.testing.assert_allclose(half, full, rtol=2**-11, atol=2**-24)
    size = (kept.checkpoints / "1" / "players.safetensors").stat().st_size
    assert size < 0.7 * (run.checkpoints / "1" / "players.safetensors").stat().st_size


def test_what_half_precision_cannot_hold_is_refused() -> None:
    with pytest.raises(RunError, match="too large for half precision"):
        halved(np.array([1.0, 1e6], np.float32))


@pytest.mark.parametrize("page", ["play.md", "play.zh-CN.md"])
def test_documents_tell_who_is_there_and_what_they_get(page: str) -> None:
    text = (Path(__file__).parents[1] / "docs" / page).read_text("utf-8")
    for row in overview(zoo(), lambda kind: kind.chinese if "zh" in page else kind.about):
        assert row in text.splitlines()
    for name in re.findall(r"zoo:([a-z][\w-]*)", text):
        assert name in zoo(), f"{page} names zoo:{name}"
