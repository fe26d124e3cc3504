"""The diagnosis of seats as a command."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import SMALL_RUN
from hopplus.cli import main
from hopplus.cli.diagnose import common
from hopplus.config import ConfigError, StagHuntConfig
from hopplus.diagnosis.faults import FAULTS, find_fault
from hopplus.diagnosis.subject import make_laboratory
from hopplus.runs.folder import LAYOUT
from tiny_diagnosis import (
    CONFIG,
    EPISODES,
    GAME_OPTIONS,
    LANES,
    with_ppo,
)


def read(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out)
    return found


COMMON = ["--episodes", str(EPISODES), "--quick"]


def test_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A small one, told as JSON."""
    small = {"ppo": replace(CONFIG, game=StagHuntConfig())}
    monkeypatch.setattr(common, "PRESETS", small)
    options = ["--steps", "640", "--seeds", str(LANES), "--out", str(tmp_path / "out"), "--json"]
    assert main(["diagnose", "seats", "ppo", *GAME_OPTIONS, *COMMON, *options]) == 0
    found = read(capsys.readouterr().out)
    assert found["verdict"] == "healthy"
    assert found["subject"] == "ppo"
    assert found["returns"]["samples"] == LANES
    assert found["page"] == str(tmp_path / "out" / "seats.html")
    del found["page"]
    assert read((tmp_path / "out" / "seats.json").read_text()) == found
    page = (tmp_path / "out" / "seats.html").read_text(encoding="utf-8")
    assert "Healthy" in page
    assert "✗ wrong" not in page
    assert "data:image/svg+xml" in page
    assert "<script" not in page


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the same tiny game."""
    runs = tmp_path_factory.mktemp("runs")
    assert (
        main(["train", "ppo", *SMALL_RUN, *GAME_OPTIONS, "--runs", str(runs), "--name", "a"]) == 0
    )
    return runs / "a"


def test_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words for people; the page lies in the run."""
    assert main(["diagnose", "seats", str(run), *COMMON]) == 0
    out = capsys.readouterr().out
    assert "2 runs cannot tell, whatever comes out (seat 0: " in out  # the seeds of the run
    assert "Gradient steps by seat: 60, 60, 60; there should be 60." in " ".join(out.split())
    assert "? Is it real?" in out
    assert "Verdict: not-known: no fault was found" in out
    assert "train with --seeds 5 or more" in " ".join(out.split())
    assert (run / "diagnosis" / "seats.html").exists()
    told = read((run / "diagnosis" / "seats.json").read_text())
    assert (told["subject"], told["verdict"]) == ("a", "not-known")
    assert told["checks"][0]["state"] == "unknown"
    page = (run / "diagnosis" / "seats.html").read_text(encoding="utf-8")
    assert '<div class="answer unknown">' in page
    assert page.count("? not known") == [check["state"] for check in told["checks"]].count(
        "unknown"
    )


def complaint(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that ends with status 2: one line."""
    assert main(["diagnose", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["seats", "pppo"], "neither a run's folder nor a preset (did you mean ppo?)"),
        (["value-loss", "nobody"], "neither a run's folder nor a preset; presets are ppo, "),
        (["seats", "ppo", "--fault", "gremlins"], "must be one of strength, first-seat, "),
        (["seats", "ppo", "--fault", "loud-world"], "needs the parts imagination: try hop-plus"),
        (["value-loss", "goal", "--fault", "zero-goals"], "needs the parts imagination"),
        (["seats", "ppo-shared", "--fault", "half-updates"], "parameters of their own"),
        (["seats", "ppo", "--fault", "step-size", "--game.seats", "2"], "at least 3 seats"),
        (["seats", "ppo", "--seeds", "0"], "--seeds is 0 but must be from 1 to"),
        (["seats", "ppo", "--episodes", "0"], "--episodes is 0"),
        (["seats", "ppo", "--episodes", "47"], "must be 48 or more to compare 4 seats"),
        (["seats", "ppo", "--steps", "0"], "--steps is 0"),
        (["seats", "ppo", "--seed", "-1"], "--seed is -1"),
        (["value-loss", "ppo", "--updates", "-1"], "--updates is -1"),
    ],
)
def test_wrong_options(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in complaint(arguments, capsys)


@pytest.mark.parametrize("command", ["seats", "value-loss"])
@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--game.size", "5"], "--game"),
        (["--steps", "9"], "--steps"),
        (["--fault", "strength"], "--fault"),
    ],
)
def test_a_run_has_its_own_game_and_steps(
    command: str,
    option: list[str],
    named: str,
    run: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = complaint([command, str(run), *option], capsys)
    assert f"{named} is given, but a run has its own" in said


def test_a_run_of_a_model_and_no_run_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").mkdir()
    facts = {"kind": "world", "config": {}, "layout": LAYOUT}
    (tmp_path / "model" / "config.json").write_text(json.dumps(facts))
    for command in ("seats", "value-loss"):
        said = complaint([command, str(tmp_path / "model")], capsys)
        assert "is a run of kind world, and one of kind training is needed" in said
        assert "has no config.json" in complaint([command, str(tmp_path)], capsys)


def test_a_run_without_a_checkpoint(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = run.parent / "empty"
    empty.mkdir()
    (empty / "config.json").write_bytes((run / "config.json").read_bytes())
    assert "no usable checkpoint and log yet" in complaint(["seats", str(empty)], capsys)


def test_faults_by_name() -> None:
    assert find_fault(None, CONFIG).about == "none"
    assert find_fault("half-updates", CONFIG) is FAULTS["half-updates"]
    with pytest.raises(ConfigError, match="parameters of their own"):
        find_fault("first-seat", with_ppo(parameters="shared"))
    uneven = find_fault("strength", CONFIG).config(CONFIG)
    assert isinstance(uneven.game, StagHuntConfig)
    assert uneven.game.strength == (1.0, 1.0, 2.0)
    assert make_laboratory(CONFIG, find_fault("strength", CONFIG), LANES).config.seeds == LANES
