"""How goals are judged: by what they tell beyond the time, on episodes no probe has seen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopplus.config import GoalConfig, NetConfig, PretrainGoal, StagHuntConfig
from hopplus.diagnosis.models.goal import GoalDiagnosis
from hopplus.diagnosis.models.heldout import held_out
from hopplus.recorded.dataset import open_data
from hopplus.recorded.models import make_setting

GAME = StagHuntConfig(size=3, seats=3, hares=3, horizon=12)


@pytest.fixture(scope="module")
def diagnosis(recorded: Path) -> GoalDiagnosis:
    data = open_data(recorded)
    config = PretrainGoal("", goal=GoalConfig(ahead=3, net=NetConfig(hidden=16)))
    return GoalDiagnosis(make_setting(config, GAME), held_out(data, 1.0, 100_000))


def by_episode(diagnosis: GoalDiagnosis, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes that name the episode and nothing else, and labels drawn for each episode."""
    dice = np.random.default_rng(seed)
    codes, labels = dice.normal(size=(300, 200)), dice.integers(0, 2, 300)
    return codes[diagnosis.held.episode], labels[diagnosis.held.episode]


def test_probes_are_judged_by_episodes_they_have_not_seen(diagnosis: GoalDiagnosis) -> None:
    """A probe that knew the judging episodes would read their labels from such codes at once."""
    figures = diagnosis.probed(*_args(by_episode(diagnosis, 0)))
    assert figures["auc"] == pytest.approx(0.5, abs=0.12)
    assert figures["count"] == diagnosis.judged.sum()
    assert set(diagnosis.held.episode[diagnosis.judged] % 2) == {1}


def test_intervals_are_over_episodes(diagnosis: GoalDiagnosis) -> None:
    """Steps of one episode that share code and label are no more than one sample: 150 of them give
    an interval some 0.2 wide, thousands of steps would give one of 0.05."""
    codes, labels = by_episode(diagnosis, 1)
    noisy = labels[:, None] + 2 * codes[:, :1]
    figures = diagnosis.probed(noisy, ["a", "b"], labels)
    assert 0.5 < figures["auc"] < 0.9
    assert 0.1 < figures["auc_high"] - figures["auc_low"] < 0.35
    assert figures["auc_low"] < figures["auc"] < figures["auc_high"]


def test_what_the_time_tells_is_no_merit(diagnosis: GoalDiagnosis) -> None:
    """Codes that are the time and a little noise, labels that depend on the time alone."""
    dice, time = np.random.default_rng(2), diagnosis.held.time
    labels = (dice.uniform(size=len(time)) < time / 12).astype(int)
    codes = time[:, None] + 0.01 * dice.normal(size=(len(time), 1))
    figures = diagnosis.probed(codes, ["early", "late"], labels)
    assert figures["accuracy"] > 0.6
    assert figures["auc"] == pytest.approx(0.5, abs=0.07)


def test_from_half_on_and_by_time_are_those_steps(diagnosis: GoalDiagnosis) -> None:
    held = diagnosis.held
    figures = diagnosis.probed(*_args(by_episode(diagnosis, 3)))
    steps = held.shard.length[held.episode] - 1
    late = diagnosis.judged & (2 * held.time >= steps)
    assert figures["from_half_on"]["count"] == late.sum() < diagnosis.judged.sum()
    assert sum(row["count"] for row in figures["by_time"]) == diagnosis.judged.sum()


def test_the_best_that_a_joint_loss_can_be(diagnosis: GoalDiagnosis) -> None:
    """The entropy of the players' actions: known for the joint loss alone, whose goals are of the
    view at the action. Who is told more does better, and nobody is sure."""
    joint = replace(diagnosis.part.config, loss="joint")
    setting = make_setting(PretrainGoal("", goal=joint), GAME)
    found = GoalDiagnosis(setting, diagnosis.held).best
    losses = [found[name]["cross_entropy"] for name in ("oracle", "watching", "guessing")]
    assert 0.1 < losses[0] < losses[1] < losses[2] < 1
    assert diagnosis.best == {}


def test_what_a_seat_visits(diagnosis: GoalDiagnosis) -> None:
    """The cells of its next three steps while it is there, by hand; none if it leaves now."""
    held, samples = diagnosis.held, diagnosis.untrained
    planes = np.unpackbits(
        np.asarray(held.shard.rows.planes), axis=-1, count=54, bitorder="little"
    ).reshape(-1, 3, 9, 6)
    left = 0
    for place in range(0, len(held.steps), 37):
        row, seat = held.steps[place]
        expected = np.zeros(9, bool)
        for later in range(row + 1, min(row + 3, held.shard.last_seen[row, seat]) + 1):
            expected |= planes[later, seat, :, 0] > 0
        np.testing.assert_array_equal(samples.visited[place], expected)
        left += not expected.any()
    assert left > 0


def test_hits_by_hand(diagnosis: GoalDiagnosis) -> None:
    """Goals that are the seat's own cell, one-hot: now and later are what the data says."""
    samples: Any = diagnosis.untrained
    cells = np.eye(9)[samples.cell]
    from dataclasses import replace

    told = replace(samples, goal=cells, later=np.roll(cells, 1, axis=1))
    hits = diagnosis.hits(told)
    judged = diagnosis.judged & samples.visited.any(axis=1)
    rows = np.flatnonzero(judged)
    assert hits["now"] == pytest.approx(samples.visited[rows, samples.cell[rows]].mean())
    shifted = (samples.cell[rows] + 1) % 9
    assert hits["later"] == pytest.approx(samples.visited[rows, shifted].mean())
    assert hits["within"] == 3


def _args(pair: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, list[str], np.ndarray]:
    return pair[0], ["a", "b"], pair[1]
