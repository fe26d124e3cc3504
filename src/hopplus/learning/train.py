"""A training run from beginning to end, or from where it was left."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.config import TrainConfig
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS, added_up
from hopplus.learning.checkpoints import load_learning, split_learning
from hopplus.learning.compilation import Update, first_and_next, next_of
from hopplus.learning.from_run import learner_from_run, learning_seats
from hopplus.learning.learner import Learning
from hopplus.learning.training_curves import LOSSES, Pace, training_curves
from hopplus.runs.checkpoint import STAGE, steps_of
from hopplus.runs.folder import RunError, RunFolder, plain, spoilt
from hopplus.runs.interrupt import patient_interrupt
from hopplus.runs.tensorboard import tensorboard

SCORED = 10  # the last updates that a checkpoint is scored by
FINAL = 0.1  # the share of a run's updates that its result is taken from


@dataclass(frozen=True)
class Moment:
    """Where a run stands, for whoever watches."""

    update: int
    steps: int  # of each seed
    returns: np.ndarray | None  # [N], mean over the episodes that just ended, if any
    learning: list[int]  # the seats that learn

    @property
    def mean_return(self) -> float | None:
        """Of the seats that learn."""
        return None if self.returns is None else float(self.returns[self.learning].mean())


def train(
    run: RunFolder, on_update: Callable[[Moment], None] = lambda moment: None
) -> dict[str, Any]:
    """Train to the end, from the newest checkpoint if there is one, and return the result.

    Goes on bit for bit as if it had never stopped. Ctrl-C saves and raises `KeyboardInterrupt`.
    """
    with run.locked():
        config = run.config()
        learner = learner_from_run(run)
        began = time.monotonic()
        found = load_learning(run, learner, config) if steps_of(run.checkpoints) else None
        done, earlier = (found[1].step, found[1].facts.get("seconds", 0.0)) if found else (0, 0.0)
        if done == config.updates and (result := run.result()):
            return result
        stages = {round(share * config.updates) for share in config.keep_stages}
        learning: Learning
        update: Update
        if found:
            learning, update = found[0], next_of(learner, config)
        else:
            learning, update = first_and_next(learner, config)
            if 0 in stages:
                facts = {"score": None, "seconds": 0.0, STAGE: True}
                run.save(0, split_learning(learner, learning), facts, config.keep)
        run.rewind(done)
        compiled, late = 0.0, deque(run.metrics()[-SCORED:], SCORED)
        learning_in = learning_seats(config)
        pace = Pace(config.ppo.steps * config.seeds)
        with (
            tensorboard(run.path, config, done * config.ppo.steps) as show,
            patient_interrupt() as interrupted,
        ):
            for number in range(done + 1, config.updates + 1):
                learning, metrics = update(learning)
                record = record_of(number, config, metrics)
                if name := spoilt(record):
                    raise RunError(_not_finite(name, record, run))
                run.log(record)
                steps = (number - 1) * config.ppo.epochs * config.ppo.minibatches
                rate = float(learner.learning_rate(steps))
                show(training_curves(record, config, rate, pace.lap()), record["steps"])
                late.append(record)
                compiled = compiled or time.monotonic() - began
                on_update(_moment(record, learning_in))
                stop, stage = interrupted(), number in stages
                due = number == config.updates or number % config.checkpoint_every == 0
                if stop or stage or due:
                    seconds = earlier + time.monotonic() - began
                    facts = {"score": _score(late, learning_in), "seconds": seconds, STAGE: stage}
                    run.save(number, split_learning(learner, learning), facts, config.keep)
                if stop and number < config.updates:
                    raise KeyboardInterrupt
        spent = time.monotonic() - began
        after_first = (config.updates - done - 1) * config.ppo.steps * config.seeds
        result = summary(run, config) | {
            "seconds": earlier + spent,
            "first_update_seconds": compiled,
            "steps_per_second": after_first / (spent - compiled) if after_first > 0 else None,
        }
        run.write_result(result)
        return result


def summary(run: RunFolder, config: TrainConfig) -> dict[str, Any]:
    """The run in figures: means over its last tenth."""
    records = run.metrics()
    late = records[-max(1, round(FINAL * len(records))) :]
    episodes = np.sum([r["episodes"] for r in late], axis=0)  # [S]
    if not episodes.all():
        raise RunError(f"no episode ended in the last tenth of {run.path}: take more --steps")
    returns = np.sum([r["return_sum"] for r in late], axis=0) / episodes[:, None]
    seats = learning_seats(config)
    learned = returns[:, seats].mean(axis=1)  # [S]
    return {
        "steps": records[-1]["steps"],
        "seeds": list(config.seed_numbers),
        "returns": returns.tolist(),  # [S, N]
        "learning_seats": seats,
        "mean_return": float(learned.mean()),  # of these
        "mean_return_by_seed": learned.tolist(),
        **{name: float(np.mean([r[name] for r in late])) for name in LOSSES if name in late[0]},
        "parts": {
            name: float(np.mean([r[name] for r in late if name in r]))
            for name in dict.fromkeys(name for r in late for name in r)
            if "/" in name and name not in added_up()
        },
    }


def record_of(number: int, config: TrainConfig, metrics: dict[str, Any]) -> dict[str, Any]:
    """What is logged of an update; losses of parts that were not fitted in it are left out."""
    every = {AUXILIARY_MODELS[name].prefix: one.every for name, one in config.fitted.items()}
    idle = tuple(f"{prefix}/loss/" for prefix, n in every.items() if n and (number - 1) % n)
    kept = {name: value for name, value in metrics.items() if not name.startswith(idle)}
    return {
        "update": number,
        "steps": number * config.ppo.steps,
        **plain(jax.device_get(kept)),
    }


def _not_finite(name: str, record: dict[str, Any], run: RunFolder) -> str:
    good = "there is no checkpoint before it"
    if steps := steps_of(run.checkpoints):
        good = f"the last good checkpoint is {run.checkpoints / str(steps[-1])}"
    when = f"update {record['update']} (step {record['steps']:,})"
    return f"the {name} of {when} is not a finite number; {good}"


def _score(late: Iterable[dict[str, Any]], seats: list[int]) -> float | None:
    """Mean return of the learning seats in the last few updates, to tell the best checkpoint; None
    without episodes."""
    episodes = np.sum([r["episodes"] for r in late])
    total = np.sum([np.mean(np.asarray(r["return_sum"])[:, seats], axis=1) for r in late])
    return float(total / episodes) if episodes else None


def _moment(record: dict[str, Any], seats: list[int]) -> Moment:
    episodes = np.sum(record["episodes"])
    returns = np.sum(record["return_sum"], axis=0) / episodes if episodes else None
    return Moment(record["update"], record["steps"], returns, seats)
