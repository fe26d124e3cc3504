"""Runs on Ray, as many at the same time as there is room for: each in a process of its own, on this
machine or on a cluster whose machines see the run folders under one path. What dies with its worker
or its node goes on elsewhere, from its last checkpoint."""

import os
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hopplus.config import ConfigError
from hopplus.runs.checkpoint import steps_of
from hopplus.runs.executor import Failed, Task, attempt, best_so_far
from hopplus.runs.folder import RunFolder, is_busy
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say

LOOK = 2.0  # seconds between looks at how far the runs are
PATIENCE = 120.0  # seconds for which a worker that is lost may still hold its run
SAVING = 300.0  # seconds that runs have to save when they are stopped
TRIES = 3  # losses without a new checkpoint between them, after which a run is at fault itself
OURS = ("XLA_", "JAX_")  # settings that results hang on
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


class OnRay:
    """Runs take so many cores and GPUs each; when `gpus` is not given, one GPU if there are any."""

    def __init__(
        self, address: str | None = None, cpus: float = 1.0, gpus: float | None = None
    ) -> None:
        try:
            import ray
        except ImportError:
            raise ConfigError(
                "Ray is not installed here: pip install 'hopplus[ray]', or leave --engine out"
            ) from None
        _check_answers(address)
        self._ray: Any = ray
        told = {name: value for name, value in os.environ.items() if name.startswith(OURS)}
        self._own = not ray.is_initialized()
        if self._own:
            # What Ray has to say is about Ray; what came of a run is in its folder.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # tells nobody about it
            quiet = {"log_to_driver": False, "logging_level": "error", "include_dashboard": False}
            try:
                ray.init(address=address, **quiet)
            except (ConnectionError, ValueError, RuntimeError) as error:
                why = str(error).strip().partition("\n")[0]
                raise ConfigError(f"no Ray at {address or 'this machine'}: {why}") from None
        os.environ.setdefault(PREALLOCATE, "false")  # a GPU is for the workers
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        most = {kind: max(node.get(kind, 0.0) for node in nodes) for kind in ("CPU", "GPU")}
        needs = {"CPU": cpus, "GPU": min(1.0, most["GPU"]) if gpus is None else gpus}
        for kind, count in needs.items():
            if count > most[kind]:  # it would wait for ever
                raise ConfigError(
                    f"--{kind.lower()}s-per-run is {count:g}, and no node has more than"
                    f" {most[kind]:g}"
                )
        # A process for each run: JAX keeps the memory of a GPU until its process ends.
        self._remote = ray.remote(
            num_cpus=cpus,
            num_gpus=needs["GPU"],
            max_calls=1,
            max_retries=0,  # what is lost is submitted anew below, which tells why
            runtime_env={"env_vars": told},
        )(_attempt)

    def execute(
        self, tasks: Sequence[Task], after: Callable[[Task], object] = lambda task: None
    ) -> list[Failed]:
        todo = [task for task in tasks if not task.done]
        if not todo:
            return []
        failed: list[Failed] = []
        lost: dict[Task, list[int]] = {}  # the updates that each had come to when it was
        waiting = {self._submit(task): task for task in todo}
        what, total = f"training {len(tasks)} runs on Ray", sum(task.steps for task in tasks)
        where = todo[0].runs[0].path.parent
        try:
            with Progress(
                what, total, "steps", watched=False, where=where, first="starting"
            ) as progress:
                best = best_so_far(tasks)
                while waiting:
                    over, _ = self._ray.wait(list(waiting), timeout=LOOK)
                    for one in over:
                        task = waiting.pop(one)
                        try:
                            why = self._ray.get(one)
                        except self._ray.exceptions.RayTaskError:  # of what it did
                            raise
                        except self._ray.exceptions.RayError as error:
                            why = self._lost(task, lost.setdefault(task, []), error)
                            if why is None:
                                waiting[self._submit(task)] = task
                                continue
                        if why is None:
                            after(task)
                        else:
                            failed.append(Failed(task, why))
                    best = best_so_far(tasks) if over else best
                    done = len(tasks) - len(waiting) - len(failed)
                    _show(progress, tasks, done, list(waiting.values()), best)
        except BaseException:
            self._stop(list(waiting))
            raise
        return failed

    def _submit(self, task: Task) -> Any:
        runs = tuple(RunFolder(run.path.absolute()) for run in task.runs)
        return self._remote.remote(replace(task, runs=runs), os.getcwd())

    def _lost(self, task: Task, before: list[int], error: Exception) -> str | None:
        """Say so; why it is not tried again, if so."""
        before.append(max(steps_of(task.runs[0].checkpoints), default=0))
        kind = type(error).__name__
        if before[-TRIES:] == [before[-1]] * TRIES:
            return f"its worker died {TRIES} times at the same place ({kind})"
        say(f"{task.what} has lost its worker ({kind}) and goes on with another")
        return None

    def _stop(self, refs: Sequence[Any]) -> None:
        """Have all of them save and end."""
        say("saving the runs; Ctrl-C once more does not wait for it")
        for one in refs:
            self._ray.cancel(one)
        if refs:
            self._ray.wait(list(refs), num_returns=len(refs), timeout=SAVING)
        if self._own:  # after Ctrl-C the process ends without more ado
            self._ray.shutdown()


def _check_answers(address: str | None) -> None:
    """Raise `ConfigError` if nothing is at host:port: Ray itself would try for minutes."""
    if address and (found := re.fullmatch(r"([\w.-]+):(\d+)", address)):
        try:
            socket.create_connection((found[1], int(found[2])), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise ConfigError(f"no Ray at {address}: {error}") from None


def _attempt(task: Task, folder: str) -> str | None:
    """In a worker: why the task cannot be done, if so."""
    if os.path.isdir(folder):  # where somebody's own games are found
        os.chdir(folder)
    return attempt(task, lambda steps, note: None, PATIENCE)


def _show(
    progress: Progress, tasks: Sequence[Task], done: int, left: Sequence[Task], best: str
) -> None:
    """How far all are, by their logs, in which those count too whose workers died."""
    steps = sum(task.runs[0].steps_logged() for task in tasks)
    running = sum(is_busy(task.runs[0].path) for task in left)
    counts = f"{done} of {len(tasks)} runs done, {running} running"
    note = ", ".join(filter(None, [counts, best]))
    if steps and (steps > progress.done or note != progress.note):
        progress.advance(max(0, steps - progress.done), note)
