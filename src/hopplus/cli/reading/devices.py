"""The options that say on which devices a command runs, and in which processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, Self

from hopplus.config import TrainConfig
from hopplus.devices import cores_for, layout_of, most_devices, using
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
    """Devices to lay seeds, then (on cores) sets of parameters, then games on: so many or all; auto
    is one accelerator or, without any, as many cores as seeds and sets divide among."""

    @contextmanager
    def used(self, *configs: TrainConfig) -> Iterator[None]:
        count = self.devices
        if count == "auto":
            count = cores_for([(config.seeds, sets_apart(config)) for config in configs])
        with Devices(count).used(*configs):
            yield

    def as_before(self, count: int | None) -> Self:
        """For a run that has had so many, if that is known: the same number, unless another is
        asked for or they are not here."""
        if self.devices != "auto" or count is None or count > most_devices():
            return self
        return replace(self, devices=count)


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
    def used(self, *configs: TrainConfig) -> Iterator[None]:
        with joined(self.coordinator, self.processes, self.process), super().used(*configs):
            yield
