"""Several updates in one dispatch: the same numbers, and nothing that happens between them lost."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.learning import compilation
from hopplus.learning.compilation import (
    GROWTH,
    MOST,
    Dispatched,
    Pacing,
    Update,
    dispatched,
    repeated,
)
from hopplus.learning.from_run import make_learner, new_run
from hopplus.learning.train import Moment, train
from hopplus.play.seeds import seed_keys
from hopplus.runs.folder import RunError, open_run

CONFIG = TrainConfig(
    game=StagHuntConfig(size=2, seats=2, hares=1, horizon=5),
    net=NetConfig(hidden=8),
    ppo=PPOConfig(games=4, unroll=4, minibatches=1, epochs=1),
    steps=12 * 16,
    seeds=2,
    checkpoint_every=7,
    keep_stages=(0.25,),
)
COUNTED: Any = Update(lambda now, count: (now + count, {"number": (now + 1 + np.arange(MOST))}))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if updates took no time at all."""
    monkeypatch.setattr(compilation, "DISPATCH", 1e9)


def test_one_seed_is_as_one_of_an_axis() -> None:
    """Its update has no axis for seeds, and comes to the same numbers, shapes and types."""
    config = replace(CONFIG, seeds=1)
    learner = make_learner(config, {})
    start = jax.jit(learner.init_all)(seed_keys(config))
    over_seeds = jax.vmap(learner.update, in_axes=(learner.axes,), out_axes=(learner.axes, 0))
    found, expected = (jax.jit(update)(start) for update in (learner.update_all, over_seeds))
    assert found[0].updates == 1
    check_same(found, expected)


def check_same(found: Any, expected: Any) -> None:
    """Bit for bit, keys too."""
    for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        np.testing.assert_array_equal(one, other)


def test_several_are_as_one_after_the_other() -> None:
    """Bit for bit, for two seeds; it is traced once."""
    learner, traced = make_learner(CONFIG, {}), []

    def update(now: Any) -> Any:
        traced.append(now)
        return learner.update_all(now)

    program = Update(jax.jit(repeated(update)))
    start = jax.jit(learner.init_all)(seed_keys(CONFIG))
    one, each = start, []
    for _ in range(5):
        one, metrics = program(one)
        each.append(metrics)
    five, rows = program.several(start, 5)
    check_same(one, five)
    assert int(five.updates) == 5
    for name, row in rows.items():
        np.testing.assert_array_equal(row[:5], np.stack([one[name] for one in each]))
        assert not jnp.any(row[5:]), name
    assert len(traced) == 1


def sizes(parts: list[Dispatched]) -> list[int]:
    return [len(part.metrics) for part in parts]


@pytest.mark.usefixtures("quick")
def test_no_dispatch_goes_beyond_a_stop() -> None:
    """They grow, and every update comes once; what was learned is at hand at every stop."""
    parts = list(dispatched(COUNTED, 3, 3, [10, 12, 200], lambda: False, ahead=False))  # type: ignore[arg-type]
    assert sizes(parts) == [1, 1, GROWTH, 1, 2, 64, 64, 60]
    numbers = [int(one["number"]) for part in parts for one in part.metrics]
    assert numbers == list(range(4, 201))
    assert [part.first for part in parts] == [4, 5, 6, 10, 11, 13, 77, 141]
    assert [part.learning for part in parts] == [4, 5, 9, 10, 12, 76, 140, 200]
    assert not list(dispatched(COUNTED, 3, 3, [], lambda: False))  # type: ignore[arg-type]


@pytest.mark.usefixtures("quick")
def test_the_next_are_in_flight_until_a_stop() -> None:
    asked: list[bool] = []
    seen: list[int] = []

    def several(now: int, count: int) -> Any:
        seen.append(now)
        return COUNTED.program(now, count)

    found: list[Any] = []
    program: Any = Update(several)
    for part in dispatched(program, 0, 0, [40, 999], lambda: bool(asked), ahead=True):  # type: ignore[arg-type]
        found.append((part.first, len(part.metrics), part.learning))
        if part.first == 41:
            asked.append(True)  # one is in flight, and the last
        if part.learning and asked:
            break
    # The second was on its way when the first had been timed, and so was the third.
    assert found[:3] == [(1, 1, None), (2, 1, None), (3, 1, None)]
    assert [row[2] for row in found if row[2]] == [40, found[-1][2]]
    assert sum(count for _, count, _ in found) == found[-1][2] < 999
    assert seen == [first - 1 for first, _, _ in found]


def test_pacing() -> None:
    pacing = Pacing()
    pacing.took(1, 30.0)  # compiled
    assert pacing.count == 1
    pacing.took(1, 0.001)
    assert pacing.count == GROWTH
    pacing.took(4, 0.1)
    assert pacing.count == 10
    pacing.took(10, 0.0)
    assert pacing.count == 10 * GROWTH
    pacing.took(40, 0.0)
    assert pacing.count == MOST
    pacing.took(10, 9.0)
    assert pacing.count == 1


@pytest.mark.usefixtures("quick", "shared_programs")
def test_runs_write_what_they_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One update a dispatch or several: the same records, checkpoints and stages; Ctrl-C saves at
    the end of a dispatch, and the run goes on to the same numbers."""
    moments: list[Moment] = []
    many = new_run(tmp_path / "many", CONFIG)
    train(many, moments.append)
    assert [moment.update for moment in moments] == list(range(1, 13))
    stopped = new_run(tmp_path / "stopped", CONFIG)

    def interrupt(moment: Moment) -> None:
        if moment.update == 4:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(stopped, interrupt)
    at = len(stopped.metrics())
    assert 4 < at < 12
    assert (stopped.checkpoints / str(at)).is_dir()
    train(open_run(stopped.path))
    monkeypatch.setattr(compilation, "MOST", 1)
    one = new_run(tmp_path / "one", CONFIG)
    sizes: list[int] = []
    several = Update.several

    def counted(self: Update, learning: Any, count: int) -> Any:
        sizes.append(count)
        return several(self, learning, count)

    monkeypatch.setattr(Update, "several", counted)
    monkeypatch.setattr(compilation, "DISPATCH", 0.0)
    train(one)
    assert sizes == [1] * 12
    assert many.metrics() == one.metrics() == stopped.metrics()
    for run in (many, one):
        assert sorted(int(path.name) for path in run.checkpoints.iterdir()) == [3, 7, 12]


@pytest.mark.usefixtures("quick", "shared_programs")
def test_numbers_that_are_not_finite_in_the_middle_of_a_dispatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before it are written; it is named."""
    several = Update.several

    def spoil(self: Update, learning: Any, count: int) -> Any:
        after, rows = several(self, learning, count)
        value = rows["value_loss"]
        return after, rows | {"value_loss": value.at[2].set(jnp.nan) if count > 2 else value}

    monkeypatch.setattr(Update, "several", spoil)
    run = new_run(tmp_path / "run", replace(CONFIG, keep_stages=()))
    with pytest.raises(RunError, match=r"value_loss of update 5 .* is not a finite number"):
        train(run)
    assert [record["update"] for record in run.metrics()] == [1, 2, 3, 4]
