"""Where curves go besides TensorBoard; services are stood in for by modules that write down what
they are told."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hopplus.cli import main
from hopplus.config import ConfigError, NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.learning.from_run import new_run
from hopplus.learning.train import train
from hopplus.runs.folder import open_run
from hopplus.runs.loggers import loggers
from test_tensorboard import numbers, shown

CONFIG = TrainConfig(
    game=StagHuntConfig(size=3, seats=2, hares=2),
    net=NetConfig(hidden=16),
    ppo=PPOConfig(games=16, unroll=8, minibatches=2, epochs=1),
    steps=6 * 128,
    seeds=2,
    checkpoint_every=4,
    log=("csv", "wandb", "mlflow", "test_loggers:own"),
)
TOLD: list[tuple[str, Any]] = []


@contextmanager
def own(run: Path, config: Any, after: int) -> Iterator[Any]:
    """A logger of one's own."""
    TOLD.append(("own began", after))
    yield lambda curves, step: TOLD.append(("own", step))
    TOLD.append(("own ended", run.name))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What services are told, one after the other."""
    TOLD.clear()

    def tell(what: str, answer: Any = None) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            TOLD.append((what, (given, named)))
            return answer

        return called

    wandb: Any = ModuleType("wandb")
    made = SimpleNamespace(log=tell("wandb log"), finish=tell("wandb finish"))
    wandb.init = tell("wandb init", made)
    client = SimpleNamespace(
        get_experiment_by_name=tell("mlflow look"),
        create_experiment=tell("mlflow experiment", "7"),
        create_run=tell("mlflow run", SimpleNamespace(info=SimpleNamespace(run_id="number-1"))),
        log_batch=tell("mlflow log"),
        set_terminated=tell("mlflow ended"),
    )
    mlflow: Any = ModuleType("mlflow")
    entities: Any = ModuleType("mlflow.entities")
    mlflow.MlflowClient = lambda: client
    entities.Metric = lambda name, value, when, step: (name, value, step)
    entities.Param = lambda key, value: (key, value)
    mlflow.entities = entities
    for module in (wandb, mlflow, entities):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return TOLD


def rows_of(run: Path) -> list[dict[str, str]]:
    with (run / "curves.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("shared_programs")
def test_all_are_told_what_tensorboard_is(told: list[tuple[str, Any]], tmp_path: Path) -> None:
    run = new_run(tmp_path / "a", CONFIG)

    def stop(moment: Any) -> None:
        if moment.update == 5:  # one after a checkpoint
            raise RuntimeError

    with pytest.raises(RuntimeError):
        train(run, stop)
    assert [int(row["step"]) for row in rows_of(run.path)] == [128 * n for n in range(1, 6)]
    assert [what for what, _ in told].count("own") == 5
    assert ("own ended", "a") not in told  # as it has been written
    killed = dict(told)["mlflow ended"]
    assert killed == (("number-1",), {"status": "KILLED"})
    first = list(told)
    told.clear()
    train(run)

    curve, seen = "losses/value_loss", shown(run.path)
    expected = pytest.approx(numbers(seen[curve]), rel=1e-6)
    steps = [step for step, _ in seen[curve]]
    rows = rows_of(run.path)
    assert [int(row["step"]) for row in rows] == steps == [128 * n for n in range(1, 7)]
    assert [float(row[curve]) for row in rows] == expected
    curves = {name for name in seen if not name.startswith(("config/", "_hparams_"))}
    assert rows[-1].keys() - {"step"} == curves

    # The same run of each service, from where its checkpoint was.
    began = [dict(one)["wandb init"][1] for one in (first, told)]
    assert began[0]["id"] == began[1]["id"]
    assert began[0]["resume"] == "allow"
    assert began[0]["config"]["ppo.games"] == 16
    logged = [given for what, given in told if what == "wandb log"]
    assert [named["step"] for _, named in logged] == [640, 768]
    assert [given[0][curve] for given, _ in logged] == pytest.approx(numbers(seen[curve])[-2:])
    assert ("wandb finish", ((), {})) in told
    assert "mlflow run" not in dict(told)
    batches = [given[1] for what, given in first if what == "mlflow log"]
    params = [pair for batch in batches for pair in batch.get("params", ())]
    assert ("ppo.games", "16") in params
    assert all(len(batch.get("params", ())) <= 100 for batch in batches)
    metrics = [one for batch in batches for one in batch.get("metrics", ())]
    assert [(step, value) for name, value, step in metrics if name == curve] == [
        (step, pytest.approx(value))
        for step, value in zip(steps[:5], numbers(seen[curve]), strict=False)
    ]
    assert dict(told)["mlflow ended"] == (("number-1",), {"status": "FINISHED"})
    assert ("own began", 512) in told
    assert told.count(("own ended", "a")) == 1


def test_a_column_that_comes_later_is_added(tmp_path: Path) -> None:
    config = replace(CONFIG, log=("csv",))
    with loggers(tmp_path, config, 0) as write:
        write({"a": 1.0}, 10)
        write({"a": 2.0, "b": 3.0}, 20)
        write({"a": 4.0}, 30)
    assert rows_of(tmp_path) == [
        {"step": "10", "a": "1.0", "b": ""},
        {"step": "20", "a": "2.0", "b": "3.0"},
        {"step": "30", "a": "4.0", "b": ""},
    ]
    with loggers(tmp_path, config, 20) as write:
        write({"a": 5.0}, 30)
    assert [row["a"] for row in rows_of(tmp_path)] == ["1.0", "2.0", "5.0"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wandb", "--log wandb needs Weights & Biases: pip install 'hopplus[wandb]'"),
        ("mlflow", "--log mlflow needs MLflow: pip install 'hopplus[mlflow]'"),
        ("cvs", "there is no logger 'cvs': did you mean 'csv'?"),
        ("nowhere:log", "there is no module 'nowhere' here"),
    ],
)
def test_what_cannot_be_logged_to_is_said(
    name: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    assert main(["train", "ppo", "--log", name, "--runs", str(tmp_path)]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_is_written_unasked(small_run: Path) -> None:
    assert open_run(small_run).config().log == ()
    assert not (small_run / "curves.csv").exists()


def test_a_service_that_cannot_begin_says_why(
    told: list[tuple[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence; those that have begun are ended. Mistakes of one's own logger are shown."""

    def refuse(**_: Any) -> None:
        raise RuntimeError("No API key configured.\nMore about it.")

    monkeypatch.setattr(sys.modules["wandb"], "init", refuse)
    config = replace(CONFIG, log=("mlflow", "wandb"))
    words = "--log wandb: Weights & Biases cannot begin: No API key configured.$"
    with pytest.raises(ConfigError, match=words), loggers(tmp_path, config, 0):
        pass
    assert dict(told)["mlflow ended"] == (("number-1",), {"status": "KILLED"})

    def broken(run: Path, config: Any, after: int) -> Any:
        raise RuntimeError("mine")

    monkeypatch.setattr("test_loggers.own", broken)
    config = replace(config, log=("test_loggers:own",))
    with pytest.raises(RuntimeError, match="mine"), loggers(tmp_path, config, 0):
        pass
