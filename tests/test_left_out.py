"""Runs that leave another family out each, in one program: the same as by themselves."""

import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import MemoryConfig, NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.games import make_game
from hopplus.learning import train as train_module
from hopplus.learning.compilation import Update
from hopplus.learning.from_run import new_run
from hopplus.learning.left_out import LeftOut
from hopplus.learning.train import Moment, by_run, train, train_side_by_side
from hopplus.players.scripted import mixed_names
from hopplus.presets import PRESETS
from hopplus.runs.checkpoint import read_arrays, steps_of
from hopplus.runs.folder import RunError, RunFolder

CONFIG = replace(
    PRESETS["ppo-memory"],
    game=StagHuntConfig(seats=3, size=3, hares=2, horizon=6),
    net=NetConfig(hidden=8),
    memory=MemoryConfig(kind="trial", size=8),
    ppo=PPOConfig(games=4, unroll=8, epochs=1, minibatches=1),
    train_against="population",
    trial=2,
    steps=4 * 8 * 4,
    seeds=2,
    checkpoint_every=2,
)
EVERYONE = mixed_names(make_game(CONFIG.game), "population")
# The first, one with a memory for the trial, and the last.
FAMILIES = (EVERYONE[0], "family-resentful", EVERYONE[-1])


def runs_in(folder: Path, config: TrainConfig = CONFIG) -> list[RunFolder]:
    return [new_run(folder / name, replace(config, held_out=(name,))) for name in FAMILIES]


def arrays(run: RunFolder) -> dict[str, np.ndarray]:
    """All that is in the run's last checkpoint."""
    last = run.checkpoints / str(steps_of(run.checkpoints)[-1])
    files = (read_arrays(file, "")[0] for file in sorted(last.glob("*.safetensors")))
    return {name: array for file in files for name, array in file.items()}


def assert_alike(one: Any, other: Any) -> None:
    """Products of more seeds at once may be added up in another order; boards and keys may not
    differ."""
    one, other = np.asarray(one), np.asarray(other)
    assert one.shape == other.shape
    if one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[RunFolder]:
    """Each trained by itself."""
    runs = runs_in(tmp_path_factory.mktemp("alone"))
    for run in runs:
        train(run)
    return runs


def stop_after(update: int):  # type: ignore[no-untyped-def]
    def watch(moment: Moment) -> None:
        if moment.update == update:
            raise KeyboardInterrupt

    return watch


def test_side_by_side_is_as_alone(alone: list[RunFolder], tmp_path: Path) -> None:
    runs = runs_in(tmp_path)
    together = LeftOut.of(runs, EVERYONE)
    assert together is not None
    assert together.absent == (0, EVERYONE.index("family-resentful"), len(EVERYONE) - 1)
    with pytest.raises(KeyboardInterrupt):  # after the second of four updates was saved
        train_side_by_side(runs, together, stop_after(3))
    assert [steps_of(run.checkpoints)[-1] for run in runs] == [2] * 3
    results = train_side_by_side(runs, LeftOut.of(runs, EVERYONE))
    for run, single, result in zip(runs, alone, results, strict=True):
        one, other = arrays(run), arrays(single)
        assert one.keys() == other.keys()
        for name, array in one.items():
            assert_alike(array, other[name])
        for now, then in zip(run.metrics(), single.metrics(), strict=True):
            assert now.keys() == then.keys()
            for name, value in now.items():
                assert_alike(value, then[name])
        assert result["mean_return_by_seed"] == single.result()["mean_return_by_seed"]  # type: ignore[index]
        assert result["side_by_side"] == 3
    # Whom one meets matters.
    assert len({json.dumps(run.metrics()[-1]["value_loss"]) for run in runs}) == 3


def test_who_cannot_be_trained_together(alone: list[RunFolder], tmp_path: Path) -> None:
    assert LeftOut.of(alone, EVERYONE) is not None
    assert LeftOut.of(alone, EVERYONE[:-1]) is None  # one run meets someone unknown
    longer = new_run(tmp_path / "a", replace(CONFIG, held_out=FAMILIES[:1], steps=999))
    assert LeftOut.of([*alone[1:], longer], EVERYONE) is None
    two = new_run(tmp_path / "b", replace(CONFIG, held_out=FAMILIES[:2]))
    assert LeftOut.of([alone[0], two], EVERYONE) is None
    told = replace(CONFIG, context="oracle", memory=MemoryConfig())
    assert LeftOut.of(runs_in(tmp_path / "told", told), EVERYONE) is None  # told by number


def test_runs_that_stopped_apart(tmp_path: Path) -> None:
    runs = runs_in(tmp_path)[:2]
    with pytest.raises(KeyboardInterrupt):
        train(runs[0], stop_after(3))
    with pytest.raises(RunError, match="not stopped at the same update"):
        train_side_by_side(runs, LeftOut.of(runs, EVERYONE))


def test_a_number_that_is_not_finite_is_of_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And settings that are shown are each run's own."""
    shown: list[str | None] = []

    def record(number: int, config: TrainConfig, metrics: Any) -> dict[str, Any]:
        return {"update": number, "steps": 32, "return_sum": [0.0, 0.0, float("nan"), 0.0]}

    @contextmanager
    def board(path: Path, config: TrainConfig, first: int) -> Any:
        shown.append(config.seats)
        yield

    runs = runs_in(tmp_path)[:2]
    together = LeftOut.of(runs, EVERYONE)
    monkeypatch.setattr(train_module, "record_of", record)
    monkeypatch.setattr(train_module, "loggers", board)
    update = Update(lambda learning, count: (learning, {"loss": jnp.zeros(1)}))
    monkeypatch.setattr(train_module, "first_and_next", lambda *_: (None, update))
    with pytest.raises(RunError) as raised:
        train_side_by_side(runs, together)
    assert f"return_sum of update 1 (step 32) in {runs[1].path} is not" in str(raised.value)
    assert "(--side-by-side 1)" in str(raised.value)
    assert shown == [run.config().seats for run in runs]
    assert not runs[0].metrics()


def test_records_by_run() -> None:
    record = {"update": 3, "steps": 96, "return_sum": [[1.0], [2.0], [3.0], [4.0]]}
    first, second = by_run(record, 2)
    assert first == {"update": 3, "steps": 96, "return_sum": [[1.0], [2.0]]}
    assert second["return_sum"] == [[3.0], [4.0]]
    assert json.loads(json.dumps(first)) == first
    assert np.shape(second["return_sum"]) == (2, 1)
