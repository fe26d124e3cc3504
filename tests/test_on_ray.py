"""Runs on a real Ray cluster of three nodes on this machine: one of them dies in the middle."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hopplus.api.training import train_to_end
from hopplus.config import ConfigError, NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.learning.from_run import new_run
from hopplus.runs.executor import Here, Task, Tell
from hopplus.runs.folder import RunError, RunFolder, is_busy
from hopplus.runs.on_ray import OnRay

ray: Any = pytest.importorskip("ray")
pytest.importorskip("ray.cluster_utils")

SMALL = TrainConfig(
    game=StagHuntConfig(size=3, seats=2, hares=2),
    net=NetConfig(hidden=8),
    ppo=PPOConfig(games=16, unroll=8, minibatches=2, epochs=1),
    steps=128 * 400,
    checkpoint_every=20,
)


@dataclass
class Nodes:
    """A head without room for runs, and three nodes with room for one each."""

    cluster: Any
    nodes: list[Any]

    def kill(self, name: str) -> None:
        node = next(node for node in self.nodes if node.node_id == name)
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    from ray.cluster_utils import Cluster

    memory = {"object_store_memory": 80 * 2**20}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # for the below
        patch.setenv("RAY_worker_niceness", "0")  # else whatever else runs here goes first
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **memory})
        nodes = Nodes(made, [made.add_node(num_cpus=1, **memory) for _ in range(3)])
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    yield nodes
    ray.shutdown()
    made.shutdown()


def _train(runs: Sequence[RunFolder], tell: Tell) -> None:
    """As always, having told which node it is on."""
    (runs[0].path / "nodes").open("a").write(f"{ray.get_runtime_context().get_node_id()}\n")
    train_to_end(runs, tell)


def nodes_of(run: RunFolder) -> list[str]:
    return (run.path / "nodes").read_text().split()


def tasks_in(
    folder: Path, rates: Sequence[float], config: TrainConfig = SMALL, work: Any = train_to_end
) -> list[Task]:
    """A run for each learning rate."""
    return [
        Task(f"{rate:g}", (new_run(folder / f"{rate:g}", _at(config, rate)),), work)
        for rate in rates
    ]


def _at(config: TrainConfig, rate: float) -> TrainConfig:
    return replace(config, ppo=replace(config.ppo, learning_rate=rate))


def when(happened: Callable[[], bool], then: Callable[[], None]) -> threading.Thread:
    """Do something as soon as something else has happened."""

    def watch() -> None:
        until = time.monotonic() + 120
        while not happened() and time.monotonic() < until:
            time.sleep(0.02)
        then()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_runs_of_a_dead_node_are_resumed_bit_for_bit(
    cluster: Nodes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = [1e-3, 2e-3, 3e-3, 4e-3]
    there = tasks_in(tmp_path / "there", rates, work=_train)
    executor = OnRay()
    second = there[1].runs[0]
    killer = when(  # between its first checkpoint and its second
        lambda: second.steps_logged() > 25 * SMALL.ppo.steps,
        lambda: cluster.kill(nodes_of(second)[0]),
    )
    assert executor.execute(there) == []
    killer.join()
    dead, alive = nodes_of(second)
    assert alive in {node.node_id for node in cluster.nodes}
    assert dead not in {node.node_id for node in cluster.nodes}
    said = capsys.readouterr().err
    assert "hopplus: 0.002 has lost its worker" in said
    assert "4 runs on Ray" in said
    here = tasks_in(tmp_path / "here", rates)
    assert Here().execute(here) == []
    for one, other in zip(there, here, strict=True):
        _same(one.runs[0], other.runs[0])
    began = time.monotonic()
    assert executor.execute(there) == []  # nothing is done twice
    assert time.monotonic() - began < 1


def _same(one: RunFolder, other: RunFolder) -> None:
    assert one.metrics() == other.metrics()
    assert len(one.metrics()) == SMALL.updates
    files = sorted(file.relative_to(one.path) for file in one.checkpoints.rglob("*.safetensors"))
    assert str(SMALL.updates) in {file.parts[1] for file in files}
    for file in files:
        assert (one.path / file).read_bytes() == (other.path / file).read_bytes()
    found, twin = one.result(), other.result()
    assert found is not None
    assert twin is not None
    timed = {"seconds", "first_update_seconds", "steps_per_second"}
    assert {k: v for k, v in found.items() if k not in timed} == {
        k: v for k, v in twin.items() if k not in timed
    }


def test_ctrl_c_saves(cluster: Nodes, tmp_path: Path) -> None:
    long = replace(SMALL, steps=128 * 100_000, checkpoint_every=100_000)
    tasks = tasks_in(tmp_path, [1e-3, 2e-3], long)
    runs = [task.runs[0] for task in tasks]
    executor = OnRay()
    asked = when(
        lambda: all(run.steps_logged() > 0 for run in runs),
        lambda: os.kill(os.getpid(), signal.SIGINT),
    )
    with pytest.raises(KeyboardInterrupt):
        executor.execute(tasks)
    asked.join()
    for run in runs:
        (saved,) = run.checkpoints.iterdir()  # of the update that was under way
        assert run.steps_logged() == int(saved.name) * long.ppo.steps
        assert not is_busy(run.path)


def test_an_address_that_does_not_answer_is_said_at_once() -> None:
    began = time.monotonic()
    for address in ("127.0.0.1:1", "127.0.0.1:99999"):
        with pytest.raises(ConfigError, match=f"no Ray at {address}: "):
            OnRay(address)
    assert time.monotonic() - began < 10


def _die(runs: Sequence[RunFolder], tell: Tell, tries: Path) -> None:
    with tries.open("a") as file:
        file.write("x")
    os._exit(1)


def _refuse(runs: Sequence[RunFolder], tell: Tell) -> None:
    raise RunError("it is not a finite number")


def _flags(runs: Sequence[RunFolder], tell: Tell, file: Path) -> None:
    file.write_text(f"{os.environ['XLA_FLAGS']}|{os.getcwd()}|{os.getpid()}")


def test_what_fails_is_told_and_the_others_go_on(
    cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nodes that were started with other settings than this process.
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ['XLA_FLAGS']} --xla_cpu_enable_fast_math=false")
    monkeypatch.chdir(tmp_path)
    runs = [new_run(tmp_path / name, SMALL) for name in ("dies", "fails", "works")]
    tries, told = tmp_path / "tries", tmp_path / "told"
    works: list[Any] = [partial(_die, tries=tries), _refuse, partial(_flags, file=told)]
    tasks = [Task(run.path.name, (run,), work) for run, work in zip(runs, works, strict=True)]
    after: list[str] = []
    failed = dict(OnRay().execute(tasks, lambda task: after.append(task.what)))
    assert {task.what: why for task, why in failed.items()} == {
        "dies": "its worker died 3 times at the same place (WorkerCrashedError)",
        "fails": "it is not a finite number",
    }
    assert tries.read_text() == "xxx"
    assert after == ["works"]
    flags, folder, process = told.read_text().split("|")
    assert flags == os.environ["XLA_FLAGS"]
    assert folder == str(tmp_path)
    assert int(process) != os.getpid()
