"""One small update, healthy and not, to hold audits against."""

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np

from hopplus.diagnosis.audit import DataAudit, data_audit
from hopplus.diagnosis.faults import FAULTS
from hopplus.diagnosis.pipeline import data_checks
from hopplus.diagnosis.subject import replica_of
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Lesson
from tiny_diagnosis import PPO, fault_of, faulty, with_ppo

WHOSE, PRESENCE = "The data: whose play", "The data: presence"
REWARD = "The data: whose reward"
ROWS = PPO.steps


def learners() -> dict[str, Learner]:
    healthy = faulty(None).learner
    return {
        "healthy": healthy,
        "first-seat": FAULTS["first-seat"].learner(healthy),
        "gone-kept": FAULTS["gone-kept"].learner(healthy),
        "first-reward": FAULTS["first-reward"].learner(healthy),
        "shared, first reward": FAULTS["first-reward"].learner(
            make_learner(with_ppo(parameters="shared"), {})
        ),
        "prosocial, first reward": FAULTS["first-reward"].learner(
            make_learner(with_ppo(prosociality=0.5), {})
        ),
        "shared": make_learner(with_ppo(parameters="shared"), {}),
        "shared, gone kept": FAULTS["gone-kept"].learner(
            make_learner(with_ppo(parameters="shared"), {})
        ),
        "prosocial": make_learner(with_ppo(prosociality=0.5), {}),
        "altruist": make_learner(with_ppo(prosociality=1.0), {}),
    }


@cache
def played() -> tuple[Any, Lesson, dict[str, Any]]:
    """An update of all replicas: its record, and of its first replica what was learned from."""
    subject = faulty(None)
    _, record, shown = subject.laboratory.update(subject.learning, subject.laboratory.as_it_is())
    return shown, replica_of(shown, 0), record


@cache
def batches() -> dict[str, Any]:
    """What each of the learners would make of the same play; one program."""
    _, lesson, _ = played()
    param_sets = replica_of(faulty(None).learning.params[0], 0)

    @jax.jit
    def made(lesson: Lesson) -> dict[str, Any]:
        one = jax.tree.map(lambda leaf: leaf[:1], param_sets)
        return {
            name: learner.batch(
                one if learner.actor.shares_params else param_sets, lesson.plays, lesson.trajectory
            )
            for name, learner in learners().items()
        }

    found: dict[str, Any] = jax.device_get(made(lesson))
    return found


def audit(name: str, **changes: Any) -> DataAudit:
    """Of the batch that the learner of that name makes, with parts of it changed."""
    _, lesson, _ = played()
    batch = replace(batches()[name], **changes)
    return data_audit(learners()[name], lesson.trajectory, replace(lesson, batch=batch))


def faults(found: DataAudit) -> tuple[str | None, str | None]:
    checks = data_checks(found)
    return fault_of(checks, WHOSE), fault_of(checks, PRESENCE)


def present() -> np.ndarray:
    """[N] steps at which each seat was there."""
    steps: np.ndarray = np.asarray(played()[1].trajectory.present).sum(axis=(0, 1))
    return steps


# Data.
