"""A training run from beginning to end, or from where it was left."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeAlias

import jax
import numpy as np

from hopplus.config import TrainConfig
from hopplus.devices import Layout, Used
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS, added_up
from hopplus.learning.checkpoints import load_learning, split_learning
from hopplus.learning.compilation import (
    MOST,
    Update,
    dispatched,
    first_and_next,
    learning_layout,
    learning_specs,
    update_from_kept,
)
from hopplus.learning.from_run import learner_from_run, learning_seats
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.left_out import LeftOut
from hopplus.learning.training_curves import LOSSES, Pace, learning_rate_at, training_curves
from hopplus.models.part import Metrics
from hopplus.runs.checkpoint import DEVICES, STAGE, steps_of
from hopplus.runs.folder import RunError, RunFolder, Saved, plain, spoilt
from hopplus.runs.interrupt import patient_interrupt
from hopplus.runs.loggers import loggers
from hopplus.runs.processes import (
    Meetings,
    ReadOnlyRun,
    as_seen,
    first_only,
    several,
    told_if_lost,
    wait_for_all,
)

SCORED = 10  # the last updates that a checkpoint is scored by
Show: TypeAlias = Callable[[dict[str, float], int], None]  # curves, at so many steps
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

    Goes on bit for bit as if it had never stopped, on as many devices as before. Ctrl-C saves and
    raises `KeyboardInterrupt`.
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
        together = _Together.of(runs, left_out)
        config, began = together.config, time.monotonic()
        found = together.found()
        done, earlier = (found[1].step, found[1].facts.get("seconds", 0.0)) if found else (0, 0.0)
        if done == config.updates and all(run.result() for run in runs):
            return together.results()
        learning, update = together.begin(found)
        compiled, meetings = 0.0, Meetings(MOST)
        pacing, stops = meetings if several() else None, together.stops(done)
        with _logging(together, done) as log, patient_interrupt() as interrupted:
            for part in dispatched(update, learning, done, stops, interrupted, pacing=pacing):
                for moment in log.write(part.first, part.metrics):
                    compiled = compiled or time.monotonic() - began
                    on_update(moment)
                if part.learning is None:
                    continue
                number = part.first + len(part.metrics) - 1
                stop = meetings.stop(interrupted())
                if stop or together.keeps(number):
                    seconds = earlier + time.monotonic() - began
                    together.save(number, part.learning, log.scores(), seconds)
                if stop and number < config.updates:
                    raise KeyboardInterrupt
        spent = time.monotonic() - began
        after_first = (config.updates - done - 1) * config.ppo.steps * config.seeds * len(runs)
        together.write_results(
            seconds=earlier + spent,
            first_update_seconds=compiled,
            steps_per_second=after_first / (spent - compiled) if after_first > 0 else None,
        )
        return together.results()


@dataclass(frozen=True)
class _Together:
    """Runs that one program trains, and what they have in common."""

    runs: Sequence[RunFolder]
    left_out: LeftOut | None
    config: TrainConfig  # of the first; of the others it differs in who is left out
    learner: Learner
    layout: Layout | None

    @classmethod
    def of(cls, runs: Sequence[RunFolder], left_out: LeftOut | None) -> "_Together":
        config = runs[0].config()
        learner = left_out.learner if left_out else learner_from_run(runs[0])
        layout = learning_layout(learner, config.seeds * len(runs))
        return cls(runs, left_out, config, learner, layout)

    def found(self) -> tuple[Learning, Saved] | None:
        """Where they go on, if they were begun."""
        if not steps_of(self.runs[0].checkpoints):
            return None
        if self.left_out is None:
            return load_learning(self.runs[0], self.learner, self.config)
        each = [load_learning(run, learner_from_run(run), run.config()) for run in self.runs]
        steps = {found[1].step if found else None for found in each}
        if len(steps) > 1 or None in steps:
            raise RunError(
                f"{self.runs[0].path} and others were not stopped at the same update: go on with"
                " one after the other (--side-by-side 1)"
            )
        learnings, saved = zip(*(found for found in each if found), strict=True)
        return self.left_out.joined(learnings), saved[0]

    def begin(self, found: tuple[Learning, Saved] | None) -> tuple[Learning, Update]:
        """What they have learned there, or at first, and the update that goes on with it."""
        wait_for_all()  # who have read what the first is about to write over
        if found:
            specs = learning_specs(self.learner)
            learning = self.layout.place(found[0], specs) if self.layout else found[0]
            seeds = self.config.seeds * len(self.runs)
            update = update_from_kept(self.learner, self.config, seeds)
        else:
            given = self.left_out.given() if self.left_out else ()
            learning, update = first_and_next(self.learner, self.config, *given)
            if 0 in self._stages:
                self.save(0, learning, [None] * len(self.runs), 0.0)
        for run in self.runs:
            run.rewind(found[1].step if found else 0)
        return learning, update

    @cached_property
    def _stages(self) -> set[int]:
        return {round(share * self.config.updates) for share in self.config.keep_stages}

    def keeps(self, number: int) -> bool:
        """Whether there is to be a checkpoint of that update."""
        due = number == self.config.updates or number % self.config.checkpoint_every == 0
        return due or number in self._stages

    def stops(self, done: int) -> list[int]:
        """All of these after so many updates."""
        return [number for number in range(done + 1, self.config.updates + 1) if self.keeps(number)]

    def save(
        self, number: int, learning: Learning, scores: Sequence[float | None], seconds: float
    ) -> None:
        facts = {"seconds": seconds, STAGE: number in self._stages, DEVICES: asdict(Used.now())}
        learning = self.layout.gathered(learning) if self.layout else learning
        each = self.left_out.apart(learning) if self.left_out else [learning]
        for run, own, score in zip(self.runs, each, scores, strict=True):
            trees = split_learning(self.learner, own)
            run.save(number, trees, {"score": score, **facts}, self.config.keep)

    def write_results(self, **times: float | None) -> None:
        common = {
            **times,
            **({"side_by_side": len(self.runs)} if len(self.runs) > 1 else {}),
            **({"devices": self.layout.shares} if self.layout else {}),
        }
        with first_only() as first:
            if first:
                for run in self.runs:
                    run.write_result(summary(run, run.config()) | common)

    def results(self) -> list[dict[str, Any]]:
        return [result for run in self.runs if (result := run.result())]


@contextmanager
def _logging(together: _Together, done: int) -> Iterator["_Log"]:
    """Writes what comes after so many updates."""
    first = done * together.config.ppo.steps
    with ExitStack() as shown:
        show = [
            shown.enter_context(
                nullcontext(lambda numbers, step: None)
                if isinstance(run, ReadOnlyRun)
                else loggers(run.path, run.config(), first)
            )
            for run in together.runs
        ]
        yield _Log(together, show)


class _Log:
    """Records of updates: in each run's folder, for its loggers, and the last few to score by."""

    def __init__(self, together: _Together, show: Sequence[Show]) -> None:
        self._together, self._show = together, show
        self._late = [deque(run.metrics()[-SCORED:], SCORED) for run in together.runs]
        self._learning = learning_seats(together.config)
        config = together.config
        self._pace = Pace(config.ppo.steps * config.seeds * len(together.runs))

    def write(self, first: int, each: Sequence[Metrics]) -> Iterator[Moment]:
        """Metrics of updates from that one on, and how each stands. Raises `RunError` at the first
        number that is not finite."""
        speed = self._pace.lap(len(each))
        for number, metrics in enumerate(each, first):
            yield self._write(record_of(number, self._together.config, metrics), speed)

    def _write(self, record: dict[str, Any], speed: float | None) -> Moment:
        config, runs = self._together.config, self._together.runs
        steps = (record["update"] - 1) * config.ppo.epochs * config.ppo.minibatches
        rate = learning_rate_at(config, steps)
        records = by_run(record, len(runs))
        for run, own in zip(runs, records, strict=True):
            if name := spoilt(own):
                raise RunError(_not_finite(name, own, run, alone=len(runs) == 1))
        for run, own, show, kept in zip(runs, records, self._show, self._late, strict=True):
            run.log(own)
            show(training_curves(own, config, rate, speed), own["steps"])
            kept.append(own)
        return _moment(record, self._learning)

    def scores(self) -> list[float | None]:
        return [_score(kept, self._learning) for kept in self._late]


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
