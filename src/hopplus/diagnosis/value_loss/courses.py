"""From the first update on, over several seeds: what becomes of the value loss with one thing
changed? These are the experiments that the research notes planned, next to plain PPO."""

from dataclasses import dataclass, replace

import numpy as np

from hopplus.config import MemoryConfig, TrainConfig
from hopplus.diagnosis.subject import (
    OnStep,
    Subject,
    build_laboratory,
    late_returns,
    train_subject,
)
from hopplus.diagnosis.value_loss.experiments import AS_IT_IS, CHANGES, REAL_ONLY, ZERO
from hopplus.evaluation.statistics import Estimate, estimate

PPO = "plain PPO"
# Whatever changes nothing is left out.
CONDITIONS = (AS_IT_IS, REAL_ONLY, ZERO, "critic on real steps only")


@dataclass(frozen=True)
class Course:
    """One condition over all of its updates [U], for each seed [S], mean over seats."""

    name: str
    loss: list[list[float]]  # of all steps that values learn from, real and imagined
    real_loss: list[list[float]]
    imagined_loss: list[list[float]]  # empty where nothing is imagined
    returns: list[float]  # [S] of episodes over the last fifth, of the seats that learn

    @property
    def mean(self) -> Estimate:
        """Of the loss, over all updates: a rise that passes counts too."""
        return estimate(np.mean(self.loss, axis=0))

    @property
    def most(self) -> Estimate:
        return estimate(np.max(self.loss, axis=0))

    @property
    def real(self) -> Estimate:
        return estimate(np.mean(self.real_loss, axis=0))

    @property
    def imagined(self) -> Estimate | None:
        return estimate(np.mean(self.imagined_loss, axis=0)) if self.imagined_loss else None

    @property
    def late_return(self) -> Estimate:
        return estimate(np.array(self.returns))


def list_courses(config: TrainConfig) -> list[str]:
    """The conditions that differ for settings with imagination."""
    critic = config.imagine.critic_on == "both"
    names = [name for name in CONDITIONS if CHANGES[name].get("critic", not critic) != critic]
    if config.imagine.reward == "zero":
        names.remove(ZERO)
    return [*names, PPO]


def run_courses(subject: Subject, on_step: OnStep) -> list[Course]:
    """All conditions with the seeds that the subject was trained with; as it is, it was. None of a
    learner that imagines nothing."""
    if not subject.learner.auxiliary.imagined_rollouts:
        return []
    return [_run_course(subject, name, on_step) for name in list_courses(subject.config)]


def _run_course(subject: Subject, name: str, on_step: OnStep) -> Course:
    lab, config = subject.laboratory, subject.config
    if name == AS_IT_IS:
        return _course(name, subject)
    if name == PPO:
        alone = replace(config.without(*config.parts), memory=MemoryConfig(), context=None)
        laboratory = build_laboratory(alone, lab.make, lab.replicas)
        return _course(name, train_subject(name, laboratory, config.seed, on_step))
    switch = lab.switches([CHANGES[name]] * lab.replicas)
    return _course(name, train_subject(name, lab, config.seed, on_step, switch))


def _course(name: str, subject: Subject) -> Course:
    records = subject.records

    def series(metric: str) -> list[list[float]]:
        known = [record[metric] for record in records if metric in record]
        return np.array(known).mean(axis=-1).tolist() if known else []

    imagined = name != REAL_ONLY and series("imagined/value_loss")
    return Course(
        name,
        loss=series("value_loss_mixed") or series("value_loss"),
        real_loss=series("value_loss"),
        imagined_loss=imagined if imagined and np.any(imagined) else [],
        returns=np.nanmean(late_returns(records)[:, subject.learner.seats], axis=1).tolist(),
    )
