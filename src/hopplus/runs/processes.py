"""Several processes, of one host or of many, that train one run together.

All of them compute; the first alone writes the run's folder, which all must see, and speaks. Each
says for itself what has gone wrong with it: the others cannot know.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from typing import Any, TypeVar

import jax
import numpy as np

from hopplus.config import ConfigError, check, check_range
from hopplus.runs.folder import RunError, RunFolder

Tree = TypeVar("Tree")
AUTO = "auto"  # the coordinator that SLURM, Open MPI or Kubernetes name, as JAX finds it
APART = 2.0  # seconds between meetings of processes: Ctrl-C waits for half of it, on average
SILENCE = 30  # seconds after which a process that is not heard of is lost


@contextmanager
def joined(coordinator: str | None, processes: int | None, process: int | None) -> Iterator[None]:
    """Be one of several processes meanwhile, if a coordinator is named; those after the first do
    not speak."""
    if coordinator is None:
        held = processes is None and process is None
        check(held, "--processes", processes, "left out, and --process, without --coordinator")
        yield
        return
    _join(coordinator, processes, process)
    with open(os.devnull, "w") as nobody, os.fdopen(os.dup(1), "w") as out:
        os.dup2(nobody.fileno(), 1)  # where gloo says that it has connected
        quiet = jax.process_index() > 0
        try:
            with (
                redirect_stdout(nobody if quiet else out),
                redirect_stderr(nobody) if quiet else nullcontext(),
            ):
                yield
        except KeyboardInterrupt:  # which all have agreed on
            jax.distributed.shutdown()
            raise
        finally:
            out.flush()
            os.dup2(out.fileno(), 1)
    jax.distributed.shutdown()


def _join(coordinator: str, processes: int | None, process: int | None) -> None:
    given: dict[str, Any] = {}
    if coordinator != AUTO:
        host, _, port = coordinator.rpartition(":")
        held = bool(host) and port.isdigit()
        check(held, "--coordinator", coordinator, f"HOST:PORT of the first process, or {AUTO}")
        if processes is None or process is None:
            raise ConfigError("--coordinator HOST:PORT needs --processes and --process as well")
        check_range("--process", process, 0, processes - 1)
        given = {
            "coordinator_address": coordinator,
            "num_processes": processes,
            "process_id": process,
            "cluster_detection_method": "deactivate",
        }
    elif not (processes is None and process is None):
        raise ConfigError(f"--coordinator {AUTO} finds the processes: leave the others out")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            **given, heartbeat_timeout_seconds=SILENCE, shutdown_timeout_seconds=SILENCE
        )
    except (RuntimeError, ValueError) as error:
        why = str(error).splitlines()[0]
        if coordinator == AUTO and "should be defined" in why:
            why = "JAX finds no SLURM, Open MPI or Kubernetes around it"
        raise ConfigError(f"--coordinator is {coordinator}, but {why}") from error


def several() -> bool:
    """Whether this process is one of several."""
    return jax.distributed.is_initialized() and jax.process_count() > 1


def any_of(flag: bool) -> bool:
    """Whether any process says so; all have to ask."""
    if not several():
        return flag
    from jax.experimental.multihost_utils import process_allgather

    return bool(process_allgather(np.array(flag)).any())


class Meetings:
    """How many updates processes do by themselves before they tell each other what came of it, and
    whether to stop: those of two seconds or so, the same number in all. Whenever they wait for each
    other they lose as much as the slowest is behind."""

    def __init__(self, most: int) -> None:
        self.count, self._most, self._each = 1, most, APART

    def took(self, count: int, seconds: float) -> None:
        """So many took this process so long."""
        self._each = seconds / count

    def stop(self, wanted: bool) -> bool:
        """Whether any process wants to; all have to ask, and agree when to meet again."""
        if not several():
            return wanted
        from jax.experimental.multihost_utils import process_allgather

        said = process_allgather(np.array([wanted, self._each], np.float32))  # [P, 2]
        # Slowly at first: an update that compiles says nothing about the next.
        fitting = max(1, int(APART / max(1e-9, said[:, 1].max())))
        self.count = min(2 * self.count, fitting, self._most)
        return bool(said[:, 0].any())


def wait_for_all() -> None:
    """Go on when all processes have come here."""
    any_of(False)


def said_by_first(text: str) -> str:
    """What the first process says, for all; of ASCII letters."""
    if not several():
        return text
    from jax.experimental.multihost_utils import broadcast_one_to_all

    letters = np.zeros(256, np.uint8)
    letters[: len(text)] = np.frombuffer(text.encode(), np.uint8)
    return bytes(broadcast_one_to_all(letters)).rstrip(b"\0").decode()


@contextmanager
def first_only() -> Iterator[bool]:
    """Whether this process is to do what one alone should, such as to make a folder. The others
    come out when it is done; if it fails, all do."""
    first, failed = not several() or jax.process_index() == 0, True
    try:
        yield first
        failed = False
    finally:
        if any_of(failed) and not failed:
            raise RunError("the first process could not begin")


def as_seen(run: RunFolder) -> RunFolder:
    """The run as this process may use it."""
    return run if not several() or jax.process_index() == 0 else ReadOnlyRun(run.path)


@contextmanager
def told_if_lost(run: RunFolder) -> Iterator[None]:
    """Turn what JAX reports of a process that is gone into one sentence."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        # Of XLA's own errors some are of one kind and some of the other; both begin so.
        if not (several() and re.match("[A-Z_]+: ", str(error))):
            raise
        raise RunError(
            f"a process of {run.path} is gone, and all end; when it is there again, start all of"
            f" them with hopplus resume {run.path}, which goes on from the newest checkpoint"
        ) from error


class ReadOnlyRun(RunFolder):
    """A run that another process writes."""

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext()

    def save(self, step: int, trees: Mapping[str, Any], facts: dict[str, Any], keep: int) -> None:
        pass

    def rewind(self, update: int) -> None:
        pass

    def log(self, record: dict[str, Any]) -> None:
        pass

    def write_result(self, result: dict[str, Any]) -> None:
        pass
