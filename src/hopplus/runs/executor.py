"""A list of runs to be done: here one after the other, or elsewhere at the same time (`on_ray`)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from jax.errors import JaxRuntimeError

from hopplus.config import ConfigError
from hopplus.runs.folder import BusyError, RunError, RunFolder
from hopplus.runs.progress import Progress

Tell = Callable[[int, str], None]  # the steps of each seed that are done, and a note for people


class Work(Protocol):
    """Brings runs to their end from wherever they are, bit for bit as if they had never stopped."""

    def __call__(self, runs: Sequence[RunFolder], tell: Tell) -> object: ...


@dataclass(frozen=True)
class Task:
    """A run, or several that one program trains side by side."""

    what: str  # in words
    runs: tuple[RunFolder, ...]
    work: Work  # can be pickled, for those who send it elsewhere

    @property
    def done(self) -> bool:
        return all(run.result() for run in self.runs)

    @property
    def steps(self) -> int:
        """Environment steps of each seed of each run."""
        config = self.runs[0].config()
        return config.updates * config.ppo.steps

    @property
    def mean_return(self) -> float | None:
        """Of the learning seats, when it is done."""
        found = [(run.result() or {}).get("mean_return") for run in self.runs]
        known = [one for one in found if isinstance(one, float)]
        return float(np.mean(known)) if known else None


class Failed(NamedTuple):
    """A task that cannot be done, and why, in a sentence."""

    task: Task
    why: str


class Executor(Protocol):
    """Whoever does them. What is done already is not done again."""

    def execute(
        self, tasks: Sequence[Task], after: Callable[[Task], object] = lambda task: None
    ) -> list[Failed]:
        """Do all tasks, and call `after` here with each that was done; the others go on where one
        fails. Ctrl-C saves them and raises `KeyboardInterrupt`."""
        ...


def best_so_far(tasks: Sequence[Task]) -> str:
    """The highest return of those that are done, in words; nothing if they cannot be compared."""
    known = [(mean, one.what) for one in tasks if (mean := one.mean_return) is not None]
    games = {run.config().game for task in tasks for run in task.runs}
    if not known or len(tasks) < 2 or len(games) > 1:
        return ""
    mean, what = max(known)
    return f"best so far {mean:.2f} ({what})"


class Here:
    """One after the other, in this process."""

    def execute(
        self, tasks: Sequence[Task], after: Callable[[Task], object] = lambda task: None
    ) -> list[Failed]:
        failed = []
        for number, task in enumerate(tasks, 1):
            if task.done:
                continue
            told = [f"training {task.what}", f"{number} of {len(tasks)}" * (len(tasks) > 1)]
            what = ", ".join(filter(None, [*told, best_so_far(tasks)]))
            with Progress(what, task.steps, "steps", where=task.runs[0].path) as progress:
                why = attempt(task, telling(progress))
            if why is None:
                after(task)
            else:
                failed.append(Failed(task, why))
        return failed


def attempt(task: Task, tell: Tell, patience: float = 0.0) -> str | None:
    """Do a task; why it cannot be done, if so. A run that another process holds is waited for so
    many seconds."""
    until = time.monotonic() + patience
    while True:
        try:
            task.work(task.runs, tell)
            return None
        except BusyError as error:
            if time.monotonic() >= until:
                return str(error)
            time.sleep(1.0)
        except (RunError, ConfigError) as error:
            return str(error)
        except JaxRuntimeError as error:  # such as memory that is too small for the settings
            return f"JAX cannot train {task.what}: {str(error).splitlines()[0]}"


def telling(progress: Progress) -> Tell:
    """Moves that on."""
    return lambda steps, note: progress.advance(steps - progress.done, note)
