"""Finished runs: said to be so, and made longer."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from conftest import SMALL_RUN
from fake_runs import saved_arrays, write_run
from hopplus.cli import main
from hopplus.report.pages.summary import summarise
from hopplus.report.translations import Translations
from hopplus.runs.folder import open_run

pytestmark = pytest.mark.usefixtures("shared_programs")
# Nothing falls over the run, so that a longer one is the same as one that was to be longer at once.
STEADY = [*SMALL_RUN, "--ppo.no-anneal", "--ppo.entropy-end", "None", "--seeds", "1"]


def test_a_run_made_longer_is_as_one_that_was(tmp_path: Path) -> None:
    common = ["train", "ppo", "--runs", str(tmp_path), *STEADY]
    assert main([*common, "--name", "long", "--steps", "2560"]) == 0
    assert main([*common, "--name", "short", "--steps", "1280"]) == 0
    short = tmp_path / "short"
    assert main(["resume", str(short), "--steps", "2560"]) == 0
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("short", "long")]
    assert metrics[0] == metrics[1]
    arrays = [saved_arrays(tmp_path / name / "checkpoints" / "20") for name in ("short", "long")]
    assert all((arrays[0][name] == arrays[1][name]).all() for name in arrays[1])
    assert open_run(short).config().steps == 2560
    result = open_run(short).result()
    assert result
    assert result["steps"] == 2560
    run = summarise([open_run(short)])[0]
    assert run.command.endswith(f"; hopplus resume {short} --steps 2560")
    said = [Translations()(one) for one in run.warnings()]
    assert any(one.startswith("made longer: it had 1,280 steps before") for one in said)
    long = summarise([open_run(tmp_path / "long")])[0]
    assert not any("made longer" in Translations()(one) for one in long.warnings())


def test_what_falls_over_a_run_rises_again_where_it_is_made_longer(tmp_path: Path) -> None:
    """As the help says: with the learning rate fallen to nothing, nothing would be learned."""
    words = ["train", "ppo", "--runs", str(tmp_path), "--name", "a", *SMALL_RUN]
    assert main([*words, "--seeds", "1", "--steps", "1280"]) == 0
    assert main(["resume", str(tmp_path / "a"), "--steps", "2560"]) == 0
    moved = [np.mean(record["kl"]) for record in open_run(tmp_path / "a").metrics()]
    assert moved[10] > 4 * moved[9]  # the eleventh update is the first of the longer run


def test_a_finished_run_says_so(small_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(small_run), "--json"]) == 0
    captured = capsys.readouterr()
    assert f"{small_run} is finished, after 3,840 steps" in captured.err
    assert f"hopplus resume {small_run} --steps" in captured.err
    assert json.loads(captured.out)["steps"] == 3840


def test_a_fitted_model_counts_epochs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a", updates=2)
    facts = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**facts, "kind": "world"}))
    assert main(["resume", str(run), "--steps", "100"]) == 2
    assert "is fitted by epochs" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["3840", "100", "0", "-1"])
def test_fewer_steps_than_there_are(
    steps: str, small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert main(["resume", str(run), "--steps", steps]) == 2
    assert "--steps is" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_run_that_is_stopped_may_be_made_shorter_but_not_than_it_is(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(small_run, tmp_path / "run")
    (run / "result.json").unlink()
    assert main(["resume", str(run), "--steps", "2000"]) == 2
    assert "has come to 3,840 already" in capsys.readouterr().err
