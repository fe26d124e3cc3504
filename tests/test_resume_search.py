"""A run that learns from search goes on bit for bit; settings that do not go together are named."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fake_runs import saved_arrays
from hopplus.cli import main
from hopplus.config import PPOConfig, StagHuntConfig, TrainConfig
from hopplus.learning.compilation import Update, repeated
from hopplus.learning.from_run import make_learner, new_run
from hopplus.learning.train import train
from hopplus.play.seeds import seed_keys
from hopplus.presets import PRESETS
from hopplus.runs.folder import open_run
from tiny_hop_plus import OPPONENT, TINY, jit


def test_a_run_of_hop_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its players remember from episode to episode. Four updates in a row, and the last two of them
    once more after a pause."""
    ppo = PPOConfig(games=8, unroll=4, minibatches=1, epochs=1)
    config = TrainConfig(
        game=StagHuntConfig(size=2, seats=2, hares=1, horizon=5),
        net=TINY,
        ppo=ppo,
        parts=PRESETS["hop"].parts,
        opponent=OPPONENT,
        search=replace(PRESETS["hop"].search, simulations=3, trees=1),
        steps=4 * ppo.steps,
        checkpoint_every=2,
    )
    learner = make_learner(config, {})
    update = Update(jit(repeated(learner.update_all)))  # compiled once, and quickly
    first = jit(learner.init_all)(seed_keys(config))
    monkeypatch.setattr("hopplus.learning.train.first_and_next", lambda *_: (first, update))
    monkeypatch.setattr("hopplus.learning.train.update_from_kept", lambda *_: update)
    whole = new_run(tmp_path / "whole", config)
    train(whole)
    shutil.copytree(whole.path, tmp_path / "half")
    shutil.rmtree(tmp_path / "half/checkpoints/4")
    (tmp_path / "half/result.json").unlink()
    half = open_run(tmp_path / "half")
    train(half)
    one, two, start = (
        saved_arrays(run.path / f"checkpoints/{number}")
        for run, number in ((whole, 4), (half, 4), (half, 2))
    )
    assert set(one) == set(two)
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
        if name.startswith("players"):
            assert array.shape[:2] == (1, 2)  # of one seed and two seats
            moved = (array != start[name]).reshape(2, -1).any(axis=1)
            assert moved.all(), name
    assert whole.metrics() == half.metrics()
    assert sum(record["episodes"][0] for record in whole.metrics()) > 3
    for record in whole.metrics():
        assert np.isfinite(
            [record[name] for name in ("kl", "value_loss", "opponent/accuracy")]
        ).all()
    # Models of the others learn with what these turned out to be after, or with nothing.
    (goals,) = (array for name, array in one.items() if ".buffer.inferred" in name)
    assert set(np.unique(goals)) == {0, 1}
    # What was taken is remembered across the pause.
    (counts,) = (array for name, array in start.items() if ".memory" in name and "counts" in name)
    assert counts.any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["direct-om", "--ppo.prosociality", "0.5"], "0 with a search, which looks for own"),
        (["hop", "--search.infer-every", "1"], "search.infer-every is 1 but must be 0 with a"),
        (["hop", "--parts", "belief"], "--parts has belief, which needs opponent"),
        (["hop", "--parts", "opponent", "belief", "goal"], "--parts has goal and belief"),
        (["direct-om", "--search.world", "learned"], "learned no world"),
        (["one-step", "--search.choice", "visits"], "search.choice is 'visits' but must be values"),
        (["ppo", "--search.trees", "2"], "without --search.simulations"),
        (["hop-plus", "--search.simulations", "2"], "without imagination where a search is"),
        (["ppo", "--distil.replay", "9"], "--distil options are given without --search"),
        (["hop", "--distil.gate", "0.2"], "distil.gate is 0.2 but must be 1 where --search.world"),
    ],
    ids=str,
)
def test_wrong_settings(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *options, "--name", "never"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
