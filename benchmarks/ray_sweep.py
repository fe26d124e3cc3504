"""Is nothing lost when a node of a Ray cluster dies? A sweep of short runs on a real cluster of
three nodes on this machine, one of which is killed in the middle of a run, beside the same runs one
after the other in this process."""

import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import main
from hopplus.api.training import train_to_end
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.learning.from_run import new_run
from hopplus.report.page import Page
from hopplus.runs.executor import Executor, Here, Task, Tell
from hopplus.runs.folder import RunFolder
from hopplus.runs.on_ray import OnRay
from hopplus.runtime import device_line

SMALL = TrainConfig(
    game=StagHuntConfig(size=3, seats=2, hares=2),
    net=NetConfig(hidden=16),
    ppo=PPOConfig(games=16, unroll=8, minibatches=2, epochs=1),
    checkpoint_every=20,
)
NODES = 3
STORE = 80 * 2**20  # bytes of the object store, which nothing is put into
WHERE = "node"  # the file in which a run tells where it was trained
TIMES = {"seconds", "first_update_seconds", "steps_per_second"}


@dataclass(frozen=True)
class RaySweepBench:
    """Train on three Ray nodes, kill one, and hold every run against its sequential twin."""

    count: int = 32
    """Runs, each of another learning rate."""
    updates: int = 300
    """Of each run."""
    runs: Path = Path("runs/ray-sweep")
    """Where the runs are; what is there is deleted."""
    json: bool = False
    """Print JSON instead of a line."""

    def run(self) -> int:
        check_options(count=self.count, updates=self.updates)
        try:
            import ray
            from ray.cluster_utils import Cluster
        except ImportError:
            raise ConfigError("Ray is not installed here: pip install 'hopplus[ray]'") from None
        shutil.rmtree(self.runs, ignore_errors=True)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), _path()]))
        head = {"num_cpus": 0, "object_store_memory": STORE}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(NODES)]
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        there = self._tasks("ray")
        victim = there[self.count // 2].runs[0]

        def kill() -> None:
            while victim.steps_logged() < SMALL.ppo.steps * min(30, self.updates // 2):
                time.sleep(0.02)
            (name,) = (victim.path / WHERE).read_text().split()
            cluster.remove_node(next(n for n in nodes if n.node_id == name), allow_graceful=False)

        threading.Thread(target=kill, daemon=True).start()
        on_ray = _timed(OnRay(), there)
        ray.shutdown()
        cluster.shutdown()
        here = self._tasks("here")
        in_turn = _timed(Here(), here)
        equal = sum(
            _same(one.runs[0], other.runs[0]) for one, other in zip(there, here, strict=True)
        )
        moved = [task.what for task in there if len(_nodes(task.runs[0])) > 1]
        done = sum(task.done for task in there)
        answer = (
            f"{done} of {self.count} runs done on Ray, {equal} equal to their twins bit for bit;"
            f" {len(moved)} lost their node and went on; {on_ray:.0f} s on {NODES} nodes, one of"
            f" which died, {in_turn:.0f} s one after the other; {device_line()}"
        )
        found = {"runs": self.count, "done": done, "equal": equal, "moved": moved}
        seconds = {"seconds_on_ray": on_ray, "seconds_here": in_turn}
        show(Page("ray sweep", answer, payload={**found, **seconds}), as_json=self.json)
        return int(not (equal == self.count and moved))

    def _tasks(self, folder: str) -> list[Task]:
        tasks = []
        for number in range(1, self.count + 1):
            ppo = replace(SMALL.ppo, learning_rate=1e-3 * number / 4)
            config = replace(SMALL, ppo=ppo, steps=self.updates * ppo.steps)
            run = new_run(self.runs / folder / f"{number:02}", config)
            work = _train_there if folder == "ray" else train_to_end
            tasks.append(Task(f"{folder} {number}", (run,), work))
        return tasks


def _path() -> str:
    return os.environ.get("PYTHONPATH", "")


def _train_there(runs: Sequence[RunFolder], tell: Tell) -> None:
    """As always, having told where."""
    import ray

    with (runs[0].path / WHERE).open("a") as file:
        file.write(f"{ray.get_runtime_context().get_node_id()}\n")
    train_to_end(runs, tell)


def _nodes(run: RunFolder) -> set[str]:
    return set((run.path / WHERE).read_text().split())


def _timed(executor: Executor, tasks: Sequence[Task]) -> float:
    """Seconds until all are done."""
    began = time.monotonic()
    for _, why in executor.execute(tasks):
        raise ConfigError(why)
    return time.monotonic() - began


def _same(one: RunFolder, other: RunFolder) -> bool:
    """Whether both have logged and learned the same, bit for bit, and came to the same."""
    last = str(one.config().updates)
    files = [f"checkpoints/{last}/{name}.safetensors" for name in ("players", "training")]
    return _untimed(one.result()) == _untimed(other.result()) and all(
        (one.path / name).read_bytes() == (other.path / name).read_bytes()
        for name in ("metrics.jsonl", *files)
    )


def _untimed(result: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (result or {}).items() if name not in TIMES}


if __name__ == "__main__":
    sys.exit(main(RaySweepBench))
