"""What is diagnosed: a run as it was left, or a preset that is trained for a while."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hopplus.config import ConfigError, TrainConfig
from hopplus.diagnosis.faults import Fault
from hopplus.diagnosis.laboratory import Laboratory, Record, replicas_of
from hopplus.learning.checkpoints import load_learning
from hopplus.learning.from_run import learner_from_run, make_learner, maker
from hopplus.learning.learner import Learner, Learning
from hopplus.runs.folder import RunFolder

Make = Callable[[TrainConfig], Learner]
OnStep = Callable[[str], None]  # told what was just done, once for each unit of work


def last_fifth(records: Sequence[Record]) -> Sequence[Record]:
    """What was logged last: what a run has come to, without the noise of one update."""
    return records[-max(1, round(0.2 * len(records))) :]


def late_returns(records: Sequence[Record]) -> np.ndarray:
    """[S, N] mean returns over the last fifth of a run's updates; NaN without episodes."""
    totals, episodes = _add_up(last_fifth(records))
    return _divide(totals.sum(axis=0), episodes.sum(axis=0))


def return_curves(records: Sequence[Record]) -> np.ndarray:
    """[U, S, N] mean returns of the episodes that ended in each update; NaN without any."""
    return _divide(*_add_up(records))


def _add_up(records: Sequence[Record]) -> tuple[np.ndarray, ...]:
    """[U, S, N] returns of the episodes that ended, added up, and [U, S] how many they were."""
    names = ("return_sum", "episodes")
    return tuple(np.array([record[name] for record in records]) for name in names)


def _divide(totals: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    count = episodes[..., None]
    return np.where(count > 0, totals / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Subject:
    """A learner, how far it has come in each of its replicas, and what was logged on the way."""

    name: str
    config: TrainConfig
    laboratory: Laboratory
    learning: Learning  # [replicas, ...]
    records: list[Record]

    @property
    def learner(self) -> Learner:
        return self.laboratory.learner


def restore_subject(run: RunFolder, replicas: int, steady: bool = False) -> Subject:
    """A run at its newest checkpoint; its seeds fill the replicas, as often as needed.

    Where the run goes on from there, `steady` keeps step sizes from falling any further: at the
    end of a run there would be none left.
    """
    config = run.config()
    learner = learner_from_run(run)
    saved = load_learning(run, learner, config)
    # A run that was killed has logged more than it saved: that was forgotten with what it learned.
    records = [one for one in run.metrics() if saved and one["update"] <= int(saved[0].updates)]
    if saved is None or not records:
        raise ConfigError(f"{run.path} has no usable checkpoint and log yet: train it for a while")
    if steady:
        learner = maker(run)(config.steady)
    if steady and config.ppo.anneal:
        rate = config.ppo.learning_rate / 2
        learner = replace(learner, config=replace(learner.config, learning_rate=rate))
    laboratory = Laboratory(learner, config, replicas, maker(run))
    seeds = [replica % config.seeds for replica in range(replicas)]
    learning = replicas_of(saved[0], seeds)
    return Subject(run.path.name, config, laboratory, learning, records)


def make_laboratory(config: TrainConfig, fault: Fault, replicas: int) -> Laboratory:
    """Of a configuration with a fault built in."""
    config = replace(fault.config(config), seeds=replicas)
    return build_laboratory(
        config, lambda config: fault.learner(make_learner(config, {})), replicas
    )


def build_laboratory(config: TrainConfig, make: Make, replicas: int) -> Laboratory:
    """Of whatever learner is made for the configuration."""
    return Laboratory(make(config), config, replicas, make)


def train_subject(name: str, laboratory: Laboratory, seed: int, on_step: OnStep) -> Subject:
    """Train all replicas to the configuration's steps, each with a seed of its own."""
    config = replace(laboratory.config, seed=seed)
    learning = laboratory.first(seed)
    switch = laboratory.as_it_is()
    records = []
    for number in range(config.updates):
        learning, record, _ = laboratory.update(learning, switch)
        records.append(record)
        on_step(f"training {name}, update {number + 1} of {config.updates}")
    return Subject(name, config, laboratory, learning, records)
