"""Where curves of a run go while it trains: TensorBoard, and whatever else `--log` names.

A logger is a function of a run's folder, its settings and the step `after` which it writes, 0 for a
run that begins: a context whose value writes named numbers at a step. A run that goes on from a
checkpoint writes the same numbers again that came after that.
"""

import csv
import importlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from hopplus.config import ConfigError, RunConfig, TrainConfig, flat, to_json
from hopplus.registry import Registry
from hopplus.runs.tensorboard import plain, tensorboard

Write: TypeAlias = Callable[[Mapping[str, float], int], None]
Logger: TypeAlias = Callable[[Path, RunConfig, int], AbstractContextManager[Write]]
EXTRAS = {"wandb": "Weights & Biases", "mlflow": "MLflow"}  # by the modules that they need
PROJECT = "hopplus"  # that runs are put under, unless the environment names another
MOST_PARAMS, MOST_METRICS = 100, 1000  # that MLflow takes at once


@contextmanager
def csv_file(run: Path, config: RunConfig, after: int) -> Iterator[Write]:
    """A row for each step in `curves.csv`; a cell is empty where there was no number."""
    path, rows = run / "curves.csv", list[dict[str, Any]]()
    if after and path.exists():
        with path.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if int(row["step"]) <= after]
    names = list(rows[0]) if rows else ["step"]

    def write_all() -> None:
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, names)
            table.writeheader()
            table.writerows(rows)

    def write(numbers: Mapping[str, float], step: int) -> None:
        rows.append({"step": step, **numbers})
        if more := [name for name in numbers if name not in names]:
            names.extend(more)  # a part that is fitted now and then, say: the others are few
            write_all()
            return
        with path.open("a", newline="") as file:
            csv.DictWriter(file, names).writerow(rows[-1])

    write_all()
    yield write


@contextmanager
def wandb_run(run: Path, config: RunConfig, after: int) -> Iterator[Write]:
    """A run of Weights & Biases, the same one when it goes on; its steps that are known stay."""
    import wandb

    made = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=run.name,
        id=_kept(run / "wandb-id", after, lambda: uuid.uuid4().hex[:12]),
        resume="allow",
        dir=str(run.resolve()),
        config=plain(flat(to_json(config))),
        reinit="create_new",  # there may be several side by side
    )
    try:
        yield lambda numbers, step: made.log(dict(numbers), step=step)
    finally:
        made.finish()


@contextmanager
def mlflow_run(run: Path, config: RunConfig, after: int) -> Iterator[Write]:
    """A run of MLflow, the same one when it goes on."""
    import mlflow
    from mlflow.entities import Metric, Param

    client = mlflow.MlflowClient()

    def make() -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        there = client.get_experiment_by_name(name)
        experiment = there.experiment_id if there else client.create_experiment(name)
        made: str = client.create_run(experiment, run_name=run.name).info.run_id
        params = [Param(key, str(value)) for key, value in plain(flat(to_json(config))).items()]
        for first in range(0, len(params), MOST_PARAMS):
            client.log_batch(made, params=params[first : first + MOST_PARAMS])
        return made

    number = _kept(run / "mlflow-id", after, make)

    def write(numbers: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, step) for name, value in numbers.items()]
        for first in range(0, len(metrics), MOST_METRICS):
            client.log_batch(number, metrics=metrics[first : first + MOST_METRICS])

    ended = "KILLED"
    try:
        yield write
        ended = "FINISHED"
    finally:
        client.set_terminated(number, status=ended)


def _kept(file: Path, after: int, make: Callable[[], str]) -> str:
    """By which a service knows the run: what it was before, or new where the run begins."""
    if after and file.exists():
        return file.read_text()
    made = make()
    file.write_text(made)
    return made


LOGGERS: Registry[Logger] = Registry(
    "logger",
    {"csv": csv_file, "wandb": wandb_run, "mlflow": mlflow_run},
    group="hopplus.loggers",
)


def check_loggers(config: RunConfig) -> None:
    """Raise `ConfigError` for a logger that there is not, or that is not installed."""
    for name in config.log if isinstance(config, TrainConfig) else ():
        LOGGERS[name]
        if name in EXTRAS:
            try:
                importlib.import_module(name)
            except ImportError as error:
                raise ConfigError(
                    f"--log {name} needs {EXTRAS[name]}: pip install 'hopplus[{name}]'"
                ) from error


@contextmanager
def loggers(run: Path, config: TrainConfig, after: int) -> Iterator[Write]:
    """Yields what writes to TensorBoard and to all others that a run asks for."""
    with ExitStack() as held:
        writers = [held.enter_context(tensorboard(run, config, after))]
        for name in dict.fromkeys(config.log):
            try:
                writers.append(held.enter_context(LOGGERS[name](run, config, after)))
            except Exception as error:  # nobody is logged in, say: services have many of their own
                if name not in EXTRAS:
                    raise
                why = str(error).strip().partition("\n")[0]
                raise ConfigError(f"--log {name}: {EXTRAS[name]} cannot begin: {why}") from error

        def write(numbers: Mapping[str, float], step: int) -> None:
            for one in writers:
                one(numbers, step)

        yield write
