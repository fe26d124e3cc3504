"""Does it learn? The smallest board on which only cooperation pays."""

from pathlib import Path

import pytest

from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.learning.from_run import new_run
from hopplus.learning.train import train
from hopplus.program_cache import LEVEL


@pytest.mark.parametrize("parameters", ["independent", "shared"])
def test_two_learn_to_meet_at_the_stag(
    parameters: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3x3, two seats, one stag, no hare: 5 each for meeting there, else nothing.

    Compiled as a person's run is and not as quickly as can be: it takes half of the time then.
    """
    monkeypatch.setattr("hopplus.learning.compilation.start_options", lambda _: {LEVEL: 1})
    config = TrainConfig(
        game=StagHuntConfig(size=3, seats=2, hares=0, horizon=15),
        net=NetConfig(hidden=32),
        ppo=PPOConfig(games=64, parameters=parameters),  # type: ignore[arg-type]
        steps=150_000,
        seeds=3,
    )
    result = train(new_run(tmp_path / "run", config))
    assert min(result["mean_return_by_seed"]) >= 4.8
    assert result["value_loss"] < 0.6
