"""A training run from beginning to end, or from where it was left."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.config import TrainConfig
from hopplus.devices import layout_of
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS, added_up
from hopplus.learning.checkpoints import load_learning, split_learning
from hopplus.learning.compilation import SPECS, Update, dispatched, first_and_next, next_of
from hopplus.learning.from_run import learner_from_run, learning_seats
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.left_out import LeftOut
from hopplus.learning.training_curves import LOSSES, Pace, training_curves
from hopplus.runs.checkpoint import STAGE, steps_of
from hopplus.runs.folder import RunError, RunFolder, Saved, plain, spoilt
from hopplus.runs.interrupt import patient_interrupt
from hopplus.runs.loggers import loggers
from hopplus.runs.processes import (
    ReadOnlyRun,
    any_of,
    as_seen,
    first_only,
    told_if_lost,
    wait_for_all,
)

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
    return train_side_by_side([run], None, on_update)[0]


def train_side_by_side(
    runs: Sequence[RunFolder],
    left_out: LeftOut | None,
    on_update: Callable[[Moment], None] = lambda moment: None,
) -> list[dict[str, Any]]:
    """The same for runs in one program that leaves someone else out in each; they must have been
    stopped at the same update, if they were. One run by itself needs no `left_out`."""
    runs = [as_seen(run) for run in runs]
    with ExitStack() as held:
        for run in runs:
            held.enter_context(run.locked())
        held.enter_context(told_if_lost(runs[0]))
        config = runs[0].config()
        learner = left_out.learner if left_out else learner_from_run(runs[0])
        layout = layout_of(config.seeds * len(runs), config.ppo.games)
        began = time.monotonic()
        found = _found(runs, learner, left_out) if steps_of(runs[0].checkpoints) else None
        done, earlier = (found[1].step, found[1].facts.get("seconds", 0.0)) if found else (0, 0.0)
        if done == config.updates and all(run.result() for run in runs):
            return [result for run in runs if (result := run.result())]
        stages = {round(share * config.updates) for share in config.keep_stages}

        def save(number: int, learning: Learning, scores: Sequence[float | None]) -> None:
            seconds = earlier + time.monotonic() - began if number else 0.0
            facts = {"seconds": seconds, STAGE: number in stages}
            learning = layout.gathered(learning) if layout else learning
            each = left_out.apart(learning) if left_out else [learning]
            for run, own, score in zip(runs, each, scores, strict=True):
                trees = split_learning(learner, own)
                run.save(number, trees, {"score": score, **facts}, config.keep)

        learning: Learning
        update: Update
        wait_for_all()  # who have read what the first is about to write over
        if found:
            learning = layout.place(found[0], SPECS) if layout else found[0]
            update = next_of(learner, config, config.seeds * len(runs))
        else:
            given = left_out.given() if left_out else ()
            learning, update = first_and_next(learner, config, *given)
            if 0 in stages:
                save(0, learning, [None] * len(runs))
        for run in runs:
            run.rewind(done)
        compiled, late = 0.0, [deque(run.metrics()[-SCORED:], SCORED) for run in runs]
        learning_in = learning_seats(config)
        pace = Pace(config.ppo.steps * config.seeds * len(runs))
        first = done * config.ppo.steps
        with ExitStack() as meanwhile:
            shown = [
                meanwhile.enter_context(
                    nullcontext(lambda numbers, step: None)
                    if isinstance(run, ReadOnlyRun)
                    else loggers(run.path, run.config(), first)
                )
                for run in runs
            ]
            interrupted = meanwhile.enter_context(patient_interrupt())
            gradient_steps = config.ppo.epochs * config.ppo.minibatches
            # At once: by itself each would wait for the dispatch in flight.
            rates = np.asarray(learner.learning_rate(np.arange(config.updates) * gradient_steps))
            due = {*range(0, config.updates, config.checkpoint_every), *stages, config.updates}
            stops = sorted(number for number in due if number > done)
            for part in dispatched(update, learning, done, stops, interrupted):
                speed = pace.lap(len(part.metrics))
                for number, metrics in enumerate(part.metrics, part.first):
                    record, rate = record_of(number, config, metrics), float(rates[number - 1])
                    records = by_run(record, len(runs))
                    for run, own in zip(runs, records, strict=True):
                        if name := spoilt(own):
                            raise RunError(_not_finite(name, own, run, alone=len(runs) == 1))
                    for run, own, show, kept in zip(runs, records, shown, late, strict=True):
                        run.log(own)
                        show(training_curves(own, config, rate, speed), own["steps"])
                        kept.append(own)
                    compiled = compiled or time.monotonic() - began
                    on_update(_moment(record, learning_in))
                if part.learning is None:
                    continue
                stop = any_of(interrupted())
                if stop or number in stops:
                    save(number, part.learning, [_score(kept, learning_in) for kept in late])
                if stop and number < config.updates:
                    raise KeyboardInterrupt
        spent = time.monotonic() - began
        after_first = (config.updates - done - 1) * config.ppo.steps * config.seeds * len(runs)
        together = {
            "seconds": earlier + spent,
            "first_update_seconds": compiled,
            "steps_per_second": after_first / (spent - compiled) if after_first > 0 else None,
            **({"side_by_side": len(runs)} if len(runs) > 1 else {}),
            **({"devices": layout.shares} if layout else {}),
        }
        with first_only() as first:
            if first:
                for run in runs:
                    run.write_result(summary(run, run.config()) | together)
        return [result for run in runs if (result := run.result())]


def _found(
    runs: Sequence[RunFolder], learner: Learner, left_out: LeftOut | None
) -> tuple[Learning, Saved] | None:
    """Where runs go on."""
    if left_out is None:
        return load_learning(runs[0], learner, runs[0].config())
    each = [load_learning(run, learner_from_run(run), run.config()) for run in runs]
    steps = {found[1].step if found else None for found in each}
    if len(steps) > 1 or None in steps:
        raise RunError(
            f"{runs[0].path} and others were not stopped at the same update: go on with one after"
            " the other (--side-by-side 1)"
        )
    learnings, saved = zip(*(found for found in each if found), strict=True)
    return left_out.joined(learnings), saved[0]


def by_run(record: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The record of each run, from that of all, whose seeds stand one after the other."""

    def part(value: Any, place: int) -> Any:
        if not isinstance(value, list):  # of the update itself
            return value
        own = len(value) // count
        return value[place * own : (place + 1) * own]

    return [{name: part(value, n) for name, value in record.items()} for n in range(count)]


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


def _not_finite(name: str, record: dict[str, Any], run: RunFolder, *, alone: bool) -> str:
    good = "there is no checkpoint before it"
    if steps := steps_of(run.checkpoints):
        good = f"the last good checkpoint is {run.checkpoints / str(steps[-1])}"
    when = f"update {record['update']} (step {record['steps']:,})"
    whose = "" if alone else f" in {run.path}"
    others = "" if alone else "; the others can go on one after the other (--side-by-side 1)"
    return f"the {name} of {when}{whose} is not a finite number; {good}{others}"


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
