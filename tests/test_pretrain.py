"""Fitting models to recorded play: whole runs, resumed ones, and what is held out."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from conftest import record_small
from fake_runs import saved_arrays
from hopplus.cli import main
from hopplus.config import FitConfig, PretrainOpponent
from hopplus.recorded import dataset
from hopplus.recorded.dataset import open_data
from hopplus.recorded.pretrain import _batches
from hopplus.recorded.samples import seat_steps
from hopplus.runs import checkpoint
from hopplus.runs.folder import open_run

FIT = ["--fit.epochs", "3", "--fit.batch", "128", "--seeds", "2"]
RARELY = ["--measure-every", "99"]
NET = ["--opponent.net.hidden", "16", "--opponent.net.kind", "mlp"]


@pytest.fixture(scope="module")
def data(recorded: Path) -> Path:
    return recorded


def opponent(runs: Path, name: str, data: Path, *more: str) -> list[str]:
    where = ["--runs", str(runs), "--name", name, "--data", str(data)]
    return ["pretrain", "opponent", *where, *NET, *FIT, *more]


def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hopplus.report.figures.models.try_figure", lambda *_: None)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For runs whose pictures nobody looks at."""
    draw_nothing(monkeypatch)


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    assert main(opponent(runs, "whole", data)) == 0
    return runs / "whole"


def arrays_of(run: Path) -> dict[str, np.ndarray]:
    steps = checkpoint.steps_of(run / "checkpoints")
    return saved_arrays(run / "checkpoints" / str(steps[-1]))


def assert_same(one: Path, two: Path) -> None:
    assert (one / "metrics.jsonl").read_bytes() == (two / "metrics.jsonl").read_bytes()
    first, second = arrays_of(one), arrays_of(two)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_the_folder_holds_everything(whole: Path) -> None:
    facts = json.loads((whole / "config.json").read_text())
    assert facts["kind"] == "opponent"
    assert facts["game"]["size"] == 3
    records = open_run(whole).metrics()
    assert [record["update"] for record in records] == [1, 2, 3]
    assert np.shape(records[0]["held_out_loss"]) == (2,)
    result = json.loads((whole / "result.json").read_text())
    best = np.argmin([record["held_out_loss"] for record in records], axis=0) + 1
    assert result["best_epoch"] == best.tolist()
    assert result["held_out_loss"] == np.min([r["held_out_loss"] for r in records], axis=0).tolist()
    assert list((whole / "tensorboard").iterdir())
    for epoch in ("1", "2", "3"):
        folder = whole / "epochs" / epoch
        assert len(json.loads((folder / "measures.json").read_text())["seeds"]) == 2
        assert (folder / "classes.csv").read_text().startswith("seed,action,count,share,precision")
        assert (folder / "opponent.png").stat().st_size > 10_000
    measured = json.loads((whole / "diagnosis" / "measures.json").read_text())
    assert list(measured["seeds"]) == ["0", "1"]
    for seed, figures in enumerate(measured["seeds"].values()):
        # The best parameters, on the held-out episodes: the loss that was logged.
        assert figures["cross_entropy"] == pytest.approx(result["held_out_loss"][seed], rel=1e-4)
        assert figures["samples"] == result["samples_held_out"]


@pytest.mark.usefixtures("undrawn")
def test_killed_and_resumed(whole: Path, data: Path, tmp_path: Path) -> None:
    run = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "hopplus", *opponent(tmp_path, "killed", data)],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while not (run / "checkpoints" / "1").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert not (run / "result.json").exists()
    assert main(["resume", str(run)]) == 0
    assert_same(whole, run)
    before = (run / "result.json").read_bytes()
    assert main(["resume", str(run)]) == 0  # a finished run is left alone
    assert (run / "result.json").read_bytes() == before


def test_interrupted(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "stopped"
    arguments = opponent(
        tmp_path, "stopped", data, "--fit.epochs", "100000", "--fit.patience", "9999", *RARELY
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "hopplus", *arguments], stderr=subprocess.PIPE, text=True
    )
    while not (run / "checkpoints").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"hopplus resume {run}" in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("undrawn")
def test_a_seed_alone_is_that_beside_others(whole: Path, data: Path, tmp_path: Path) -> None:
    assert main(opponent(tmp_path, "alone", data, "--seeds", "1", "--seed", "1", *RARELY)) == 0
    both, alone = open_run(whole).metrics(), open_run(tmp_path / "alone").metrics()
    for one, two in zip(both, alone, strict=True):
        assert one["held_out_loss"][1] == pytest.approx(two["held_out_loss"][0], rel=1e-4)
    assert both[0]["held_out_loss"][0] != both[0]["held_out_loss"][1]


def rewritten(data: Path, out: Path, change: str) -> Path:
    """A copy of the data with other actions in some of its episodes, or in several files."""
    shutil.copytree(data, out)
    shard = open_data(data).shard(0)
    arrays = load((data / "00000.safetensors").read_bytes())
    held = dataset.is_held_out(shard.number, 0.1)[shard.episode]
    steps = arrays["joint"][:, :1] >= 0
    masks = {
        "held out": held[:, None] & steps & shard.rows.present,
        "gone": steps & ~np.asarray(shard.rows.present),
        "fitted": ~held[:, None] & steps & shard.rows.present,
    }
    assert masks[change].any()
    arrays["joint"] = np.where(masks[change], 4, arrays["joint"]).astype(np.int8)
    content = save(arrays)
    (out / "00000.safetensors").write_bytes(content)
    facts = json.loads((out / "data.json").read_text())
    facts["files"][0]["sha256"] = hashlib.sha256(content).hexdigest()
    (out / "data.json").write_text(json.dumps(facts))
    return out


@pytest.mark.parametrize("change", ["gone", "held out", "fitted"])
@pytest.mark.usefixtures("undrawn")
def test_what_is_learned_from(change: str, whole: Path, data: Path, tmp_path: Path) -> None:
    """Actions of players who are gone change nothing at all, bit for bit; held-out ones change
    what is measured and nothing that is fitted; the others change everything."""
    other = rewritten(data, tmp_path / "data", change)
    assert main(opponent(tmp_path, "run", other, *RARELY)) == 0
    ours, theirs = open_run(whole).metrics()[-1], open_run(tmp_path / "run").metrics()[-1]
    same = {
        name: np.array_equal(value, arrays_of(tmp_path / "run")[name])
        for name, value in arrays_of(whole).items()
        if name.startswith("training.params")
    }
    assert same
    match change:
        case "gone":
            assert_same(whole, tmp_path / "run")
        case "held out":
            assert all(same.values())
            assert ours["fitted_loss"] == theirs["fitted_loss"]
            assert ours["held_out_loss"] != theirs["held_out_loss"]
        case _:
            assert ours["fitted_loss"] != theirs["fitted_loss"]
            assert not any(same.values())


@pytest.mark.usefixtures("undrawn")
def test_early_stopping(data: Path, tmp_path: Path) -> None:
    """With steps so large that nothing gets better, a run ends long before its last epoch."""
    large = ["--fit.learning-rate", "3", "--fit.weight-decay", "0"]
    more = ["--fit.epochs", "30", "--fit.patience", "2", *large, *RARELY]
    assert main(opponent(tmp_path, "early", data, *more)) == 0
    result = json.loads((tmp_path / "early" / "result.json").read_text())
    assert result["epochs"] < 30
    assert result["epochs"] == max(result["best_epoch"]) + 2
    # What is measured in the end is the best epoch's model, which is not the last one's.
    measured = json.loads((tmp_path / "early" / "diagnosis" / "measures.json").read_text())
    found = [figures["cross_entropy"] for figures in measured["seeds"].values()]
    assert found == pytest.approx(result["held_out_loss"], rel=1e-4)


@pytest.mark.usefixtures("undrawn")
def test_in_several_files(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many samples, and about the same figures, when the data is in many files."""
    monkeypatch.setattr(dataset, "SHARD_ROWS", 600)
    parts = record_small(tmp_path / "parts")
    assert open_data(parts).shards > 2
    results = []
    for name, source in (("one", data), ("many", parts)):
        assert main(opponent(tmp_path, name, source, "--fit.epochs", "6", *RARELY)) == 0
        results.append(json.loads((tmp_path / name / "result.json").read_text()))
    assert results[0]["samples"] == results[1]["samples"]
    assert results[0]["samples_held_out"] == results[1]["samples_held_out"]
    assert results[1]["held_out_loss"] == pytest.approx(results[0]["held_out_loss"], rel=0.15)


def test_goals_given_to_opponents(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A goal prior is copied into the run that uses it, and helps to foresee the actions."""
    where = ["--runs", str(tmp_path), "--data", str(data)]
    fit = ["--fit.epochs", "6", "--fit.batch", "32", "--fit.learning-rate", "5e-3", *RARELY]
    goal = ["pretrain", "goal", *where, "--name", "goal", "--goal.prior.net.hidden", "32", *fit]
    assert main(goal) == 0
    measured = json.loads((tmp_path / "goal" / "diagnosis" / "measures.json").read_text())
    figures = measured["seeds"]["0"]
    assert figures["kind"]["classes"] == ["noisy-stag:0.1", "noisy-hare:0.1"]
    assert figures["hit_ratio"]["later"] > 2 * figures["hit_ratio"]["chance"]
    assert {"kind_by_time.csv", "goal.png", "projection.csv"} <= {
        path.name for path in (tmp_path / "goal" / "diagnosis").iterdir()
    }
    draw_nothing(monkeypatch)  # of the others
    given = {
        "hindsight": ["--opponent.goal", "hindsight", "--goal-run", str(tmp_path / "goal")],
        "none": [],
    }
    losses = {}
    for name, more in given.items():
        assert main(opponent(tmp_path, name, data, *more, *fit)) == 0
        result = json.loads((tmp_path / name / "result.json").read_text())
        losses[name] = np.mean(result["held_out_loss"])
    assert losses["hindsight"] < losses["none"]
    shutil.rmtree(tmp_path / "goal")  # the run that used it needs nothing outside
    assert main(["diagnose", "models", str(tmp_path / "hindsight")]) == 0
    capsys.readouterr()
    assert main(opponent(tmp_path, "x", data, "--opponent.goal", "hindsight")) == 2
    assert "belong together" in capsys.readouterr().err
    wrong = ["--opponent.goal", "hindsight", "--goal-run", str(tmp_path / "none")]
    assert main(opponent(tmp_path, "x", data, *wrong)) == 2
    assert "is a run of kind opponent, no goal" in capsys.readouterr().err


def test_other_data_is_measured_by_whole(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = record_small(tmp_path / "other", "--seed", "1")
    capsys.readouterr()
    out = tmp_path / "out"
    command = ["diagnose", "models", str(whole), "--data", str(other), "--out", str(out), "--json"]
    assert main(command) == 0
    figures = json.loads(capsys.readouterr().out)["seeds"]["0"]
    acted = open_data(other).facts["summary"].values()
    assert figures["samples"] == sum(player["acted"] for player in acted)
    assert {"measures.json", "classes.csv", "confusion.csv", "opponent.png"} <= set(os.listdir(out))
    page = (out / "models.html").read_text()
    assert f"Measured on {figures['samples']:,} steps" in page
    assert "data:image/svg" in page


def test_more_of_the_same_play_is_measured_by_what_is_held_out(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Episodes of the same seed are the same: those that were learned from must not judge."""
    more = record_small(tmp_path / "more", "--episodes", "500")
    capsys.readouterr()
    assert main(["diagnose", "models", str(whole), "--data", str(more), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    held = seat_steps(open_data(more).shard(0), 0.1, measured=True)
    assert told["seeds"]["0"]["samples"] == len(held)
    assert Path(told["out"]).name == "diagnosis-more"
    shutil.rmtree(told["out"])


def test_batches_hold_every_sample_once_and_differ() -> None:
    """From epoch to epoch and from seed to seed; a file too small for a batch fills one."""
    config = PretrainOpponent("", seeds=2, fit=FitConfig(batch=32))
    steps = np.stack([np.arange(100), np.arange(100)], axis=1).astype(np.int32)
    counts: Any = SimpleNamespace(batches=[3, 1], batch=32)
    one, two = (np.asarray(_batches(config, epoch, 0, steps, counts)) for epoch in (1, 2))
    assert one.shape == (2, 3, 32, 2)
    for batches in (one[0], one[1], two[0]):
        assert len(np.unique(batches[..., 0])) == 96
    assert (one[0] != one[1]).any()
    assert (one[0] != two[0]).any()
    few = np.asarray(_batches(config, 1, 1, steps[:20], counts))
    assert set(few[0, 0, :, 0].tolist()) == set(range(20))


@pytest.mark.usefixtures("undrawn")
def test_clear_errors(
    whole: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = tmp_path / "data"
    shutil.copytree(data, moved)
    assert main(opponent(tmp_path, "moved", moved, "--fit.epochs", "1")) == 0
    shutil.move(moved, tmp_path / "elsewhere")
    command = ["resume", str(tmp_path / "moved"), "--data", str(tmp_path / "elsewhere")]
    assert main(command) == 0  # it has its data again
    record_small(moved, "--seed", "5")
    shutil.copytree(tmp_path / "moved", tmp_path / "changed")
    (tmp_path / "changed" / "result.json").unlink()
    wide = record_small(tmp_path / "wide", "--episodes", "5", "--game.horizon", "11")
    for arguments, words in (
        (["resume", str(tmp_path / "changed")], "is not the data that"),
        (["evaluate", str(whole)], f"hopplus diagnose models {whole}"),
        (opponent(tmp_path, "x", tmp_path / "nowhere"), "there is no folder"),
        (["diagnose", "models", str(whole), "--data", str(wide)], "of another game"),
        (opponent(tmp_path, "x", data, "--fit.held-out", "1e-3"), "has no episode to measure"),
        (opponent(tmp_path, "x", data, "--opponent.goal", "wish"), "opponent.goal"),
        (["diagnose", "models", str(tmp_path / "nowhere")], "there is no run"),
        (["diagnose", "models", str(whole), "--data", str(whole)], "is not recorded play"),
    ):
        capsys.readouterr()
        assert main(arguments) == 2, arguments
        err = capsys.readouterr().err
        assert words in err
        assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()
