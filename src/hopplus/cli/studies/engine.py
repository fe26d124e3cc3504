"""Where the runs of a study are trained: options that several commands have."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import tyro

from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, check_range
from hopplus.runs.executor import Executor, Here
from hopplus.runs.on_ray import OnRay


@dataclass(frozen=True)
class Engine:
    """Who trains the runs."""

    engine: Literal["here", "ray"] = "here"
    """Train here, one run after the other, or several at the same time on Ray (hopplus[ray])."""
    address: str | None = None
    """Of a Ray cluster, as host:6379 or auto; Ray on this machine when not given."""
    cpus_per_run: float | None = None
    """Cores that Ray gives each run; one when not given."""
    gpus_per_run: float | None = None
    """The same of GPUs, or a part of one; one when not given, if there are any."""

    def make(self) -> Executor:
        """Whoever trains; raises before anything is made if it cannot."""
        given = {
            "address": self.address,
            "cpus-per-run": self.cpus_per_run,
            "gpus-per-run": self.gpus_per_run,
        }
        if self.engine == "here":
            for name, value in given.items():
                if value is not None:
                    raise ConfigError(f"--{name} is given without --engine ray")
            return Here()
        check_options(**{"cpus-per-run": self.cpus_per_run})
        check_range("--gpus-per-run", self.gpus_per_run, 0, 1024)
        return OnRay(self.address, self.cpus_per_run or 1.0, self.gpus_per_run)


TrainedBy: TypeAlias = Annotated[Engine, tyro.conf.arg(name="")]  # among a command's own options
