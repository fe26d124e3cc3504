"""The options that say on which devices a command runs, and in which processes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from hopplus.config import TrainConfig
from hopplus.devices import layout_of, using
from hopplus.runs.processes import joined


@dataclass(frozen=True)
class Devices:
    """One device, or as many as there are."""

    devices: int | Literal["all"] = 1
    """Devices to lay seeds, then games on: so many, or all."""

    @contextmanager
    def used(self, *configs: TrainConfig) -> Iterator[None]:
        """Have everything meanwhile run there; raises first if what is to be trained cannot."""
        with using(self.devices):
            for config in configs:
                layout_of(config.seeds, config.ppo.games)
            yield


@dataclass(frozen=True)
class Processes(Devices):
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
