"""`python -m benchmarks.hop_setting`: one table, and what is done is not done again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import hop_setting, main, training
from benchmarks.hop_setting import KEPT, HopSetting
from hopplus.config import NetConfig, PPOConfig, TrainConfig
from hopplus.evaluation.certificate import Certificate
from hopplus.evaluation.statistics import estimate
from hopplus.runs.folder import open_run

COMMAND = (
    "--game snowdrift-v1 --game.size 3 --game.seats 2 --game.drifts 2 --game.horizon 6 --only ppo"
    " --steps 256 --seeds 2 --trial-steps 64 --last 20 --trials 2 --reference-steps 8192"
    " --episodes 8 --against idle reciprocal --json"
)


def test_it_trains_adapts_and_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = TrainConfig(
        net=NetConfig(hidden=8), ppo=PPOConfig(games=8, unroll=8, minibatches=2, epochs=1)
    )
    monkeypatch.setattr(hop_setting, "PRESETS", {"ppo": tiny})
    command = [*COMMAND.split(), "--runs", str(tmp_path)]
    assert main(HopSetting, command) == 0
    first = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in first["rows"]}
    assert list(rows) == ["oracle", "blind", "random", "ppo"]
    assert all(rows[name]["fixed"] and not rows[name]["learning"] for name in list(rows)[:3])
    kept = json.loads((tmp_path / "ppo" / KEPT).read_text())
    assert np.shape(kept["fixed"]) == (2, 2)  # seeds, lineups
    assert np.shape(kept["learning"]) == (2, 1)
    found = estimate(np.array(kept["fixed"]).mean(axis=1))
    assert rows["ppo"]["fixed"]["mean"] == pytest.approx(found.mean)
    result = open_run(tmp_path / "ppo").result()
    assert result is not None
    assert rows["ppo"]["self_play"]["mean"] == pytest.approx(result["mean_return"])

    def never(*_: Any) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(hop_setting, "adapt", never)
    monkeypatch.setattr(training, "carry_on", never)
    monkeypatch.setattr(Certificate, "_measured", never)
    assert main(HopSetting, command) == 0
    assert json.loads(capsys.readouterr().out) == first


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--only", "hops"], "--only has 'hops'"),
        (["--last", "10", "--game.horizon", "20"], "--last must hold an episode"),
    ],
)
def test_wrong_options(
    more: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(HopSetting, [*more, "--runs", str(tmp_path / "new")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
