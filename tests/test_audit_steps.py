"""Steps and targets, held against what they should be."""

import json
from dataclasses import fields, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.diagnosis.audit import TargetAudit, target_audit
from hopplus.diagnosis.faults import FAULTS
from hopplus.diagnosis.pipeline import step_checks, target_check
from hopplus.diagnosis.step_audit import LogAudit, StepAudit, log_audit, step_audit
from hopplus.diagnosis.subject import Laboratory
from hopplus.learning.learner import Learner
from tiny_audit import audit, batches, faults, learners, played
from tiny_diagnosis import CONFIG, LANES, PPO, faulty


@cache
def steps(name: str | None) -> StepAudit:
    """Of the healthy learner's play, by one with a fault."""
    subject = faulty(None)
    learner = FAULTS[name].learner(subject.learner) if name else subject.learner
    laboratory = Laboratory(learner, subject.config, LANES, subject.laboratory.make)
    return step_audit(laboratory, subject.learning, played()[0], 1)


def titles(found: StepAudit) -> tuple[str | None, ...]:
    """What is said of updates, of the step size and of equal treatment."""
    return tuple(check.fault for check in step_checks(found))


def test_steps_are_as_many_and_as_long_as_configured() -> None:
    found = steps(None)
    assert found.counts == [found.expected] * 3
    assert found.expected == CONFIG.updates * PPO.epochs * PPO.minibatches
    assert found.sizes == pytest.approx([1.0, 1.0, 1.0], abs=1e-3)
    assert found.unlike == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)
    assert titles(found) == (None, None, None)


def test_a_third_of_a_step() -> None:
    found = steps("step-size")
    assert found.sizes == pytest.approx([1.0, 1.0, 1 / 3], abs=1e-3)
    assert titles(found) == (None, "step-size", None)


def test_every_second_step() -> None:
    """Whichever of the two it is."""
    found = steps("half-updates")
    assert found.sizes == pytest.approx([1.0, 1.0, 0.0], abs=1e-3)
    assert titles(found) == ("fewer-updates", None, None)


def test_what_is_said_of_steps() -> None:
    def said(counts: list[int], sizes: list[float], unlike: float = 0.0) -> Any:
        return titles(StepAudit(counts, 8, sizes, [0.0, unlike]))

    assert said([8, 8], [1.0, 0.0]) == ("fewer-updates", None, None)
    assert said([8, 8], [1.0, 1.1]) == (None, "step-size", None)
    assert said([8, 8], [1.0, 1.01]) == (None, None, None)
    assert said([8, 7], [1.0, 2.0]) == ("fewer-updates", "step-size", None)
    assert said([8, 8], [1.0, 1.0], 0.5) == (None, None, "unequal-learning")
    assert said([8, 8], [1.0, 0.5], 0.5) == (None, "step-size", None)  # which is why


class CarelessSeat(Learner):
    """The last seat does not learn values."""

    def improve(self, sets: Any, optimiser: Any, batch: Any, updates: Any, key: Any) -> Any:
        careless = replace(self.config, value_weight=0.0)
        usual = super().improve(sets, optimiser, batch, updates, key)
        other = Learner.improve(
            replace(self, config=careless), sets, optimiser, batch, updates, key
        )
        last = jnp.arange(3) == 2

        def taken(one: jax.Array, two: jax.Array) -> jax.Array:
            return jnp.where(last.reshape(-1, *[1] * (one.ndim - 1)), two, one)

        return *jax.tree.map(taken, usual[:2], other[:2]), usual[2]


def test_a_seat_that_learns_otherwise_from_the_same() -> None:
    """Its steps are as many and as long as they should be."""
    subject = faulty(None)
    healthy = subject.learner
    learner = CarelessSeat(**{part.name: getattr(healthy, part.name) for part in fields(healthy)})
    laboratory = Laboratory(learner, subject.config, LANES, subject.laboratory.make)
    found = step_audit(laboratory, subject.learning, played()[0], 1)
    assert found.sizes == pytest.approx([1.0, 1.0, 1.0], abs=1e-3)
    assert max(found.unlike) > 0.01
    assert titles(found) == (None, None, "unequal-learning")


# What is learned of the data.


def target(name: str, **changes: Any) -> TargetAudit:
    _, lesson, _ = played()
    batch = replace(batches()[name], **changes)
    learner = learners()[name]
    return target_audit(learner, faulty(None).learning, replace(lesson, batch=batch), 0)


@pytest.mark.parametrize("name", ["healthy", "prosocial"])
def test_values_and_returns_are_a_seats_own(name: str) -> None:
    found = target(name)
    for part in (found.value, found.log_prob, found.returns):
        assert part == pytest.approx([0.0, 0.0, 0.0], abs=1e-4)
    assert target_check(found, False).fault is None


@pytest.mark.parametrize("name", ["value", "log_prob", "returns"])
def test_targets_that_are_anothers(name: str) -> None:
    """Of seat 1, at one step; the rows themselves are right."""
    batch = batches()["healthy"]
    changed = getattr(batch, name).copy()
    changed[1, np.argmax(batch.present[1])] += 0.5
    changed[2, np.argmin(batch.present[2])] += 9  # of a step that is not learned from
    assert faults(audit("healthy", **{name: changed})) == (None, None)
    found = target("healthy", **{name: changed})
    assert getattr(found, name) == pytest.approx([0.0, 0.5, 0.0], abs=1e-4)
    assert target_check(found, False).fault == "wrong-targets"
    # Hindsight's goals change what is thought, but never returns.
    assert target_check(found, True).fault == ("wrong-targets" if name == "returns" else None)


def test_rows_of_others_are_another_checks_business() -> None:
    found = target("first-seat")
    assert np.isnan(found.returns[1:]).all()
    assert target_check(found, False).fault is None


def test_audits_can_be_written_as_json() -> None:
    (_, lesson, record) = played()
    log = log_audit(faulty(None).learning, lesson.trajectory, record, 0)
    for found in (audit("first-seat"), steps(None), log):
        told = found.as_json() if isinstance(found, LogAudit) else vars(found)
        assert json.loads(json.dumps(told)) == told
