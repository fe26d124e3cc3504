"""The options that say on which devices a command runs, and in which processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from hopplus.config import TrainConfig
from hopplus.devices import Used, cores_for, layout_of, using
from hopplus.learning.from_run import sets_apart
from hopplus.runs.processes import joined


@dataclass(frozen=True)
class Devices:
    """One device, or as many as there are."""

    devices: int | Literal["all"] = 1
    """Devices to lay the work on: so many, or all."""

    @contextmanager
    def used(self, *configs: TrainConfig) -> Iterator[None]:
        """Have everything meanwhile run there; raises first if what is to be trained cannot."""
        with using(self.devices):
            for config in configs:
                layout_of(config.seeds, sets_apart(config), config.ppo.games)
            yield


@dataclass(frozen=True)
class TrainedOn(Devices):
    """One accelerator, or the cores of a processor, unless it is said how many devices."""

    devices: int | Literal["all", "auto"] = "auto"  # type: ignore[assignment]
    """How many, or all; auto: one GPU, or cores sharing work."""

    @contextmanager
    def used(self, *configs: TrainConfig, before: Used | None = None) -> Iterator[None]:
        """The same; by default what was used `before`, if that is known and they are here."""
        count = self.devices
        if count == "auto" and before and before.here():
            count = before.count
        elif count == "auto":
            count = cores_for([(config.seeds, sets_apart(config)) for config in configs])
        with Devices(count).used(*configs):
            yield


@dataclass(frozen=True)
class Processes(TrainedOn):
    """Devices of several processes."""

    coordinator: str | None = None
    """Train in several processes: HOST:PORT of the first, or auto (SLURM, Open MPI, Kubernetes)."""
    processes: int | None = None
    """How many there are, with --coordinator HOST:PORT."""
    process: int | None = None
    """Which of them this one is; 0 is the first, which writes the run."""

    @contextmanager
    def used(self, *configs: TrainConfig, before: Used | None = None) -> Iterator[None]:
        before = None if self.coordinator else before
        with (
            joined(self.coordinator, self.processes, self.process),
            super().used(*configs, before=before),
        ):
            yield
