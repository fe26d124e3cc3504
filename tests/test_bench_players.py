"""Players whose adaptation `python -m benchmarks.faults` diagnoses."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.players import Players
from hopplus.config import ConfigError, NetConfig, PPOConfig
from hopplus.presets import PRESETS
from hopplus.runs.executor import Here
from tiny_diagnosis import GAME

TINY = replace(PRESETS["belief"], net=NetConfig(hidden=8), ppo=PPOConfig(games=4, minibatches=1))


def test_they_learn_once_and_have_faults_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Side by side, so that the player of a seed is one of a run; in trials among all kinds."""
    monkeypatch.setattr("benchmarks.players.PRESETS", {"tiny": TINY})
    players = Players("tiny", GAME, 128, seed=7, seeds=2, runs=tmp_path)
    assert Here().execute([players.task()]) == []
    (run,) = tmp_path.iterdir()
    written = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    assert Here().execute([players.task()]) == []
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == written
    with pytest.raises(ConfigError, match="has other settings"):
        replace(players, steps=256).task()
    # Without the fault it is lost in the policy, which has learned next to nothing.
    assert players.diagnosis("wiped-memory", 180)(8).name == "lost-in-inference"


def test_goal_trial_is_trained_as_it_is() -> None:
    """And its trials and models of the others are those of all."""
    made = PRESETS["goal-trial"]
    config = Players("goal-trial", GAME, 1000, 7, 2, Path()).config
    assert config == replace(made, game=GAME, steps=1000, seed=7, seeds=2)
    belief = Players("belief", GAME, 1000, 7, 2, Path()).config
    assert belief == replace(
        config, net=belief.net, parts=("opponent", "belief"), goal=belief.goal, belief=belief.belief
    )
