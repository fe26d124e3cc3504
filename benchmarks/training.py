"""Runs that benchmarks train: once, and where one was stopped it goes on."""

import sys
from contextlib import redirect_stdout
from pathlib import Path

from hopplus.cli.train import carry_on
from hopplus.config import ConfigError, TrainConfig
from hopplus.learning.from_run import new_run
from hopplus.runs.folder import RunFolder, open_run


def run_in(path: Path, config: TrainConfig) -> RunFolder:
    """The run of that folder, which is made if it is not there."""
    run = open_run(path) if path.exists() else new_run(path, config)
    names = ("game", "steps", "seed", "seeds", "ppo", "net", "parts", "imagine", "search", "distil")
    have = run.config()
    if any(getattr(have, name) != getattr(config, name) for name in names):
        raise ConfigError(f"{path} has other settings: take another --runs")
    return run


def train_in(path: Path, config: TrainConfig) -> RunFolder | None:
    """The same, trained to its end; None if that was stopped."""
    run = run_in(path, config)
    if run.result() is None:
        with redirect_stdout(sys.stderr):
            if carry_on(run, False):
                return None
    return run
