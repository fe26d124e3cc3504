"""`python -m benchmarks.pretrained`: what models that were learned before bring."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import main, pretrained
from benchmarks.pretrained import PretrainedBench, compare
from conftest import SMALL_GAME
from hopplus.config import TrainConfig
from hopplus.evaluation.ablation import Trace
from hopplus.evaluation.statistics import estimate
from hopplus.learning.from_run import new_run
from hopplus.presets import PRESETS
from hopplus.runs.folder import RunFolder, open_run


def trace(name: str, by_update: list[list[float]]) -> Trace:
    returns = np.array(by_update)  # [U, S], one episode each
    return Trace(name, name, 1000, returns, np.ones_like(returns), np.ones_like(returns), 1.0)


def test_the_table_by_hand() -> None:
    """Three updates are one figure, so that 1, 4, 4, 4 is 3 after the third and 4 after the
    fourth. The second row is a half ahead of the first at first, and level with it later."""
    scratch = trace("scratch", [[0, 0], [3, 0], [3, 3], [3, 3], [3, 3]])
    world = trace("world", [[1.5, 1.5], [3, 0], [3, 3], [3, 3], [3, 3]])
    one, two = compare([scratch, world], 2.4, (3000, 5000, 9000))
    assert one.row.steps_to_level_by_seed == [4000, 5000]
    assert two.row.steps_to_level_by_seed == [3000, 5000]
    assert two.reached == [3000, 5000]
    assert two.at[3000] == estimate(np.array([2.5, 1.5]))
    assert two.ahead[3000] == estimate(np.array([0.5, 0.5]))
    assert two.ahead[5000] == estimate(np.zeros(2))
    assert two.ahead[9000] is None  # nobody has played so long
    assert two.gain is not None
    assert two.gain.mean == pytest.approx(0.5 / 3)
    (never,) = compare([scratch], 5.0, ())
    assert never.steps_to_level == "never"


SMALL = [
    *["--episodes", "40", "--epochs", "1", "--steps", "12288", "--seeds", "2", "--level", "0.1"],
    *["--budgets", "12288", *SMALL_GAME],
]


def make_run(path: Path, config: TrainConfig) -> RunFolder:
    """A run that begins with the models it should, with figures that nobody has learned."""
    if path.exists():
        return open_run(path)
    run = new_run(path, config)
    found = np.arange(config.updates * config.seeds * 3).reshape(config.updates, -1, 3)
    for number, returns in enumerate(found, 1):
        losses = {"value_loss": [[0.5]] * config.seeds}
        episodes = {"episodes": [2] * config.seeds, "return_sum": returns.tolist()}
        run.log({"update": number, "steps": number * config.ppo.steps, **episodes, **losses})
    run.write_result({"steps_per_second": 1000.0})
    return run


def test_it_records_fits_trains_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command prepares and others train rows, each with its own models, and none fits again."""
    monkeypatch.setattr(pretrained, "train_in", make_run)
    where = ["--runs", str(tmp_path / "r"), *SMALL]
    assert main(PretrainedBench, ["--only", "goal-opponent", "--prepare", *where]) == 0
    folder = tmp_path / "r/scripted"
    assert {path.name for path in folder.iterdir()} == {"data", "goal", "told-opponent"}
    for forbidden in ("new_pretrain", "pretrain"):
        monkeypatch.setattr(pretrained, forbidden, lambda *_: pytest.fail("done again"))
    capsys.readouterr()

    def run(*only: str) -> Any:
        assert main(PretrainedBench, [*where, "--json", "--only", *only]) == 0
        return json.loads(capsys.readouterr().out)

    run("goal-opponent", "goal")
    found = run("scratch")  # the table is of all that are done
    assert [row["name"] for row in found["rows"]] == ["scratch", "goal", "goal-opponent"]
    begun = {}
    for name in ("goal", "goal-opponent"):
        config = open_run(folder / f"from-{name}").config()
        begun[name] = [part for part, one in config.fitted.items() if one.from_run]
        preset = PRESETS["hop-plus"]
        assert (config.opponent.net, config.goal.prior) == (preset.opponent.net, preset.goal.prior)
    assert begun == {"goal": ["goal"], "goal-opponent": ["opponent", "goal"]}
    assert set(found["held_out_loss"]) == {"goal", "told-opponent"}
    assert np.shape(found["curves"]["goal"]) == (3, 2)
    assert found["rows"][0]["at"]["12288"]["mean"] == np.arange(18).mean() / 2
    assert found["rows"][1]["gain"]["mean"] == 0
    assert (folder / "curves.png").stat().st_size > 10_000
    assert json.loads((folder / "pretrained.json").read_text())["rows"] == found["rows"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "worlds"], "no row 'worlds'; there are scratch"),
        (["--preset", "ppo"], "ppo has no goal and no opponent and no world model"),
        (["--preset", "pp0"], "no preset 'pp0'"),
        (["--episodes", "0"], "--episodes is 0"),
    ],
)
def test_complaints(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(PretrainedBench, options) == 2
    assert words in capsys.readouterr().err
