"""Experiments that explain a value loss: one thing is changed, all else is as it was."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.diagnosis.subject import (
    Laboratory,
)
from hopplus.diagnosis.value_loss.courses import (
    CONDITIONS,
    list_courses,
    run_courses,
)
from hopplus.diagnosis.value_loss.courses import PPO as PLAIN
from hopplus.diagnosis.value_loss.experiments import AS_IT_IS, REAL_ONLY
from test_diagnose_value_loss import IMAGINING, diagnosis, imagining
from tiny_diagnosis import (
    LANES,
    PPO,
)


def test_courses_begin_with_the_first_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition is trained with the subject's own seeds; without what is imagined in the one
    that has real steps only, and without models in that of plain PPO."""
    config = replace(IMAGINING, imagine=replace(IMAGINING.imagine, critic_on="both"))
    healthy = imagining()
    lab = Laboratory(healthy.laboratory.learner, config, LANES, healthy.laboratory.make)
    lab._update = healthy.laboratory._update
    config = replace(config, steps=3 * PPO.steps, seed=7)
    lab.config = config
    begun_with = []

    def first(seed: int) -> Any:
        begun_with.append(seed)
        return healthy.learning

    monkeypatch.setattr(lab, "first", first)
    subject = replace(healthy.subject(lab), config=config)
    notes: list[str] = []
    found = {one.name: one for one in run_courses(subject, notes.append)}
    assert list(found) == list_courses(config) == [*CONDITIONS, PLAIN]
    assert begun_with == [7, 7, 7]  # as it is, it was trained already
    assert len(notes) == 4 * 3
    assert (
        found[AS_IT_IS].real_loss
        == np.mean([record["value_loss"] for record in subject.records], axis=-1).tolist()
    )
    for name, one in found.items():
        assert np.shape(one.loss) == np.shape(one.real_loss) == (3, LANES), name
        assert len(one.returns) == LANES
        assert np.isfinite(one.loss).all(), name
    assert found[REAL_ONLY].imagined_loss == found[PLAIN].imagined_loss == []
    # Values of the healthy program learn from real steps; then all of the loss is of those.
    critic = found["critic on real steps only"]
    assert critic.loss == critic.real_loss
    # The same play to begin with, so the first losses differ by what is changed alone.
    np.testing.assert_allclose(found[REAL_ONLY].real_loss[0], critic.real_loss[0], rtol=0.05)
    assert len({str(found[name].real_loss[-1]) for name in CONDITIONS[1:]}) == 3
    steady = replace(config, imagine=replace(config.imagine, critic_on="real"))
    assert "critic on real steps only" not in list_courses(steady)


def test_experiments_begin_at_one_checkpoint_and_differ_in_one_thing() -> None:
    found = {trial.name: trial for trial in diagnosis().seen.experiments}
    assert list(found) == [
        "as it is",
        "real steps only",
        "imagined rewards zero",
        "critic on both",
    ]
    for one in found.values():
        assert len(one.value_loss) == len(one.explained) == len(one.returns) == 2
        # What the first update is made from is not changed by it.
        assert one.explained[0] == pytest.approx(found["as it is"].explained[0])
        assert one.returns[0] == pytest.approx(found["as it is"].returns[0])
    assert len({trial.explained[1] for trial in found.values()}) == 4
    assert [one.imagines for one in found.values()] == [True, False, True, True]
    # Values learn from imagined steps in one of them alone.
    assert [any(one.imagined_loss) for one in found.values()] == [False, False, False, True]


def test_switches_reach_imagined_steps_alone() -> None:
    start = imagining()
    lab = start.laboratory
    changes: list[dict[str, Any]] = [{}, {"imagine": False}, {"zero": True}, {"critic": True}]
    switch = lab.switches(changes)
    lesson = lab.update(start.learning, switch)[2]
    batch = jax.device_get(lesson.batch)
    real = ~batch.imagined[0, 0]
    for replica in range(1, LANES):
        for name in ("present", "valued", "reward", "returns", "action"):
            part = getattr(batch, name)
            np.testing.assert_array_equal(part[replica][:, real], part[0][:, real])
    imagined_batch = batch.imagined[0, 0]
    assert batch.present[0][:, imagined_batch].all()
    assert not batch.present[1][:, imagined_batch].any()
    assert batch.reward[0][:, imagined_batch].any()
    assert not batch.reward[2][:, imagined_batch].any()
    np.testing.assert_array_equal(
        batch.valued[:, :, imagined_batch].all(axis=(1, 2)), [False, False, False, True]
    )
    assert not batch.valued[:3][:, :, imagined_batch].any()
