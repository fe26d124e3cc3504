"""Runs that never lose anything: checkpoints, resuming, and what may go wrong with a disk."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from conftest import SMALL_RUN
from fake_runs import saved_arrays
from hopplus.cli import main
from hopplus.config import ConfigError, StagHuntConfig, TrainConfig, from_json, to_json
from hopplus.learning.from_run import new_run
from hopplus.learning.train import Moment, train
from hopplus.runs import checkpoint
from hopplus.runs.folder import open_run
from test_checkpoints import cut_short

pytestmark = pytest.mark.usefixtures("shared_programs")


def command(runs: Path, name: str) -> list[str]:
    # On one device, as is the undisturbed run in a process whose JAX has started.
    return ["train", "ppo", "--runs", str(runs), "--name", name, *SMALL_RUN, "--devices", "1"]


@pytest.fixture(scope="module")
def whole(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 30 updates that nothing disturbed."""
    return shutil.copytree(small_run, tmp_path_factory.mktemp("runs") / "whole")


def final_arrays(run: Path) -> dict[str, np.ndarray]:
    return saved_arrays(run / "checkpoints" / "30")


def assert_same_run(one: Path, two: Path) -> None:
    """Bit for bit: metrics and everything in the last checkpoint."""
    assert (one / "metrics.jsonl").read_bytes() == (two / "metrics.jsonl").read_bytes()
    first, second = final_arrays(one), final_arrays(two)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def test_the_folder_holds_everything(whole: Path) -> None:
    facts = json.loads((whole / "config.json").read_text())
    assert facts["config"]["game"]["size"] == 3
    assert facts["seeds"] == [0, 1]
    assert facts["versions"]["jax"] == jax.__version__
    assert facts["hardware"]
    records = open_run(whole).metrics()
    assert [record["update"] for record in records] == list(range(1, 31))
    assert np.shape(records[-1]["return_sum"]) == (2, 2)  # seeds, seats
    result = json.loads((whole / "result.json").read_text())
    assert np.shape(result["returns"]) == (2, 2)
    assert result["steps"] == 3840
    assert list((whole / "tensorboard").iterdir())
    names = sorted(int(path.name) for path in (whole / "checkpoints").iterdir())
    assert names[-3:] == [24, 28, 30]  # the last three, and the best
    assert len(names) <= 4


def test_players_are_kept_apart(whole: Path) -> None:
    """Nobody who only plays needs the other file, which is most of a checkpoint."""
    newest = [path.parent.name for path in whole.glob("checkpoints/*/training.safetensors")]
    assert sorted(newest) == ["28", "30"]
    assert len(list(whole.glob("checkpoints/*/players.safetensors"))) >= 3
    names = saved_arrays(whole / "checkpoints" / "30")
    assert any(name.startswith("players.policy") for name in names)
    assert not any(".params" in name for name in names)


def test_who_only_plays_reads_players_alone(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "played")
    for file in run.glob("checkpoints/*/training.safetensors"):
        file.unlink()
    assert main(["evaluate", str(run), "--episodes", "2"]) == 0
    assert main(["export", f"{run}@0", "--out", str(tmp_path / "x.safetensors")]) == 0


def test_runs_of_another_layout(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "old")
    facts = json.loads((run / "config.json").read_text())
    del facts["layout"]
    (run / "config.json").write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match=r"old is a run of hopplus 0\.1, which reads it"):
        open_run(run).config()
    (run / "config.json").write_text(json.dumps({**facts, "layout": 99}))
    with pytest.raises(ConfigError, match="another version"):
        open_run(run).config()


def test_seeds_side_by_side_are_those_alone(whole: Path, tmp_path: Path) -> None:
    """The second of two seeds starts from the same parameters as seed 1 alone, and differs."""
    assert main([*command(tmp_path, "alone"), "--seeds", "1", "--seed", "1"]) == 0
    both, alone = open_run(whole).metrics(), open_run(tmp_path / "alone").metrics()
    np.testing.assert_array_equal(both[0]["episodes"][1], alone[0]["episodes"][0])
    np.testing.assert_allclose(both[0]["return_sum"][1], alone[0]["return_sum"][0], rtol=1e-5)
    assert both[0]["return_sum"][0] != both[0]["return_sum"][1]


FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["hopplus.cli", "tensorboardX", "pytest"])  # without starting JAX


def started(arguments: list[str], dies_at: int | None = None) -> Any:
    """The program in a process of its own."""
    process = FORKED.Process(target=program, args=(arguments, dies_at))
    process.start()
    return process


def program(arguments: list[str], dies_at: int | None) -> None:
    """`hopplus` with these arguments, which kills itself in the midst of a write."""
    real, calls = checkpoint.write_durably, 0

    def dying(path: Path, content: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            with path.open("wb") as file:
                file.write(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        real(path, content)

    checkpoint.write_durably = dying
    sys.exit(main(arguments))


def test_killed_while_writing_and_resumed(whole: Path, tmp_path: Path) -> None:
    """In the midst of the configuration, of arrays, of a manifest: as if never stopped."""
    run = tmp_path / "killed"
    arguments = command(tmp_path, "killed")
    # config.json is the first write, rewinding the second, then three for each checkpoint.
    for call in (1, 3, 4, 5, 10):
        process = started(arguments, dies_at=call)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert not (run / "result.json").exists()
        assert run.exists() == (call > 1)
        arguments = ["resume", str(run), "--devices", "1"] if run.exists() else arguments
    assert main(["resume", str(run)]) == 0
    assert_same_run(whole, run)


def test_killed_at_random_moments_and_resumed(whole: Path, tmp_path: Path) -> None:
    run, dice, kills = tmp_path / "killed", random.Random(5), 0
    arguments = command(tmp_path, "killed")
    for _ in range(3):
        process = started(arguments)
        metrics, begun = run / "metrics.jsonl", len(open_run(run).metrics()) if kills else 0
        target = begun + dice.randint(1, 8)
        while process.is_alive():
            if metrics.exists() and metrics.read_bytes().count(b"\n") >= target:
                time.sleep(dice.random() * 0.02)
                process.kill()
                break
            time.sleep(0.005)
        process.join()
        kills += process.exitcode == -signal.SIGKILL
        arguments = ["resume", str(run), "--devices", "1"]
    assert kills >= 2
    assert main(["resume", str(run)]) == 0
    assert_same_run(whole, run)


def test_ctrl_c_saves_and_says_how_to_go_on(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "stopped"
    arguments = [*command(tmp_path, "stopped"), "--steps", "12800000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hopplus", *arguments], stderr=subprocess.PIPE, text=True
    )
    while not (run / "metrics.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.05)
    while (run / "metrics.jsonl").read_bytes().count(b"\n") < 6:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"hopplus resume {run}" in err
    assert "Traceback" not in err
    done = len(open_run(run).metrics())
    assert checkpoint.steps_of(run / "checkpoints")[-1] == done


def test_a_finished_run_is_left_alone(whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    assert main(["resume", str(whole)]) == 0
    after = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file()}
    assert before == after


def test_all_damaged_begins_anew(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "copy"
    shutil.copytree(whole, run)
    (run / "result.json").unlink()
    for path in (run / "checkpoints").iterdir():
        cut_short(path)
    assert main(["resume", str(run)]) == 0
    assert "there is none before it" in capsys.readouterr().err
    assert_same_run(whole, run)


def test_interrupted_between_updates_and_resumed(whole: Path, tmp_path: Path) -> None:
    run = new_run(tmp_path / "stopped", open_run(whole).config())

    def interrupt(moment: Moment) -> None:
        if moment.update == 7:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(run, interrupt)
    assert checkpoint.steps_of(run.checkpoints)[-1] in (7, 8)
    assert main(["resume", str(run.path)]) == 0
    assert_same_run(whole, run.path)


def test_one_process_at_a_time(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = open_run(whole).locked(), open_run(whole).locked()
    with first, pytest.raises(ConfigError, match="by another process"), second:
        pass


def test_metrics_that_fell_behind_are_named(whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(whole, run)
    with pytest.raises(ConfigError, match="ends before update 31"):
        open_run(run).rewind(31)
    (run / "metrics.jsonl").write_text('{"update": 1}\nnonsense\n')
    with pytest.raises(ConfigError, match=r"metrics\.jsonl is damaged"):
        open_run(run).metrics()


def test_a_full_disk_damages_nothing(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The third checkpoint finds no room: one sentence, and the run goes on from the second."""
    real, calls = checkpoint.write_durably, 0

    def full(path: Path, content: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise OSError(28, os.strerror(28))
        real(path, content)

    monkeypatch.setattr(checkpoint, "write_durably", full)
    assert main(command(tmp_path, "full")) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "Traceback" not in said
    monkeypatch.setattr(checkpoint, "write_durably", real)
    assert main(["resume", str(tmp_path / "full")]) == 0
    assert_same_run(whole, tmp_path / "full")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name", "whole"], "exists already"),
        (["--runs", "/proc/none"], "cannot make the run folder"),
        (["--seats", "stag,hare"], "nobody learns"),
        (["--seats", "learn"], "names 1 player but the game has 2 seats"),
        (["--seats", "learn,stagg"], "did you mean stag?"),
        (["--ppo.minibatches", "3"], "divisor"),
        (["--steps", "0"], "--steps is 0"),
    ],
)
def test_wrong_runs_make_no_folder(
    arguments: list[str], words: str, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(whole.parent.iterdir())
    assert main([*command(whole.parent, "other"), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert sorted(whole.parent.iterdir()) == before


def test_resume_needs_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(tmp_path)]) == 2
    assert "is not a run of hopplus" in capsys.readouterr().err
    (tmp_path / "config.json").write_text("{nonsense")
    assert main(["resume", str(tmp_path)]) == 2
    assert "no usable config.json" in capsys.readouterr().err


def test_no_number_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wild = ["--ppo.learning-rate", "1e6", "--ppo.gradient-norm", "1e6"]
    assert main([*command(tmp_path, "wild"), *wild]) == 1
    said = capsys.readouterr().err
    assert "is not a finite number" in said
    assert "of update " in said
    assert "checkpoint" in said


def test_configurations_round_trip() -> None:
    config = TrainConfig(game=StagHuntConfig(strength=(1, 2, 3, 4.5), sight=2), seats="a,b")
    assert from_json(TrainConfig, json.loads(json.dumps(to_json(config)))) == config
    with pytest.raises(ConfigError, match="no field other"):
        from_json(TrainConfig, {"other": 1})
