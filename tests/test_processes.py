"""Several processes train one run, as several hosts would."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from conftest import SMALL_RUN
from hopplus.cli import main
from hopplus.devices import Layout
from hopplus.runs import processes
from hopplus.runs.checkpoint import steps_of
from hopplus.runs.folder import open_run

LONG = ["--steps", "192000"]  # 1,500 updates, which nobody here waits for


def started(command: list[str], count: int) -> list[subprocess.Popen[str]]:
    """So many processes of one run, on one device each."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    words = [sys.executable, "-m", "hopplus", *command, "--devices", "all"]
    words += ["--coordinator", address, "--processes", str(count)]
    return [
        subprocess.Popen(
            [*words, "--process", str(number)],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]


def wait_for_checkpoint(run: Path, after: int, processes: list[subprocess.Popen[str]]) -> None:
    until = time.monotonic() + 200
    while max(steps_of(run / "checkpoints"), default=0) <= after:
        assert time.monotonic() < until
        assert all(process.poll() is None for process in processes), processes[0].communicate()
        time.sleep(0.1)


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """The status of each, and what it said."""
    said = [process.communicate(timeout=100) for process in processes]
    return [(p.returncode, *words) for p, words in zip(processes, said, strict=True)]


def test_processes_work_stop_and_fall_together(small_run: Path, tmp_path: Path) -> None:
    """Two are interrupted by way of the second, four go on until one of them is lost, and one
    process has what they have learned."""
    run = tmp_path / "a"
    command = ["train", "ppo", "--runs", str(tmp_path), "--name", "a", *SMALL_RUN, *LONG]
    two = started(command, 2)
    wait_for_checkpoint(run, 4, two)
    two[1].send_signal(signal.SIGINT)
    first, second = ended(two)
    assert first[0] == second[0] == 130
    assert f"stopped; go on with: hopplus resume {run}" in first[2]
    assert first[1] == ""
    assert second[1:] == ("", "")  # who is not the first does not speak
    stopped = steps_of(run / "checkpoints")[-1]
    log = open_run(run).metrics()
    assert len(log) == stopped  # all had come to the same update
    for here, there in zip(log[:3], open_run(small_run).metrics(), strict=False):
        assert here["return_sum"] == there["return_sum"]
        np.testing.assert_allclose(here["entropy"], there["entropy"], rtol=1e-4)

    four = started(["resume", str(run)], 4)
    wait_for_checkpoint(run, stopped, four)
    four[2].kill()
    first, *others = ended(four)
    assert first[0] == 1
    assert f"a process of {run} is gone" in first[2]
    assert "Traceback" not in first[2]
    assert all(status for status, *_ in others)

    steps = 128 * (len(open_run(run).metrics()) + 40)
    assert main(["resume", str(run), "--steps", str(steps)]) == 0
    result = open_run(run).result()
    assert result
    assert "devices" not in result


def test_when_processes_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the same updates, which the slower of two sets: seldom enough to cost nothing, often
    enough for Ctrl-C."""
    others = [0.0, 0.0]  # what the other says: whether to stop, seconds of an update
    monkeypatch.setattr(processes, "several", lambda: True)
    monkeypatch.setattr(
        "jax.experimental.multihost_utils.process_allgather",
        lambda own: np.stack([own, np.array(others, np.float32)]),
    )
    meetings, counts = processes.Meetings(64), []
    for others[1] in [0.25] * 5 + [0.7, 0.7, 0.001] + [0.001] * 8:
        meetings.took(meetings.count, 0.05 * meetings.count)
        assert not meetings.stop(False)
        counts.append(meetings.count)
    # Twice as many each time, until they take the other two seconds: eight updates, later two;
    # then this one is the slower.
    assert counts[:7] == [2, 4, 8, 8, 8, 2, 2]
    assert counts[7:] == [4, 8, 16, 32, 40, 40, 40, 40, 40]
    meetings.took(40, 0.04)
    assert not meetings.stop(False)
    assert meetings.count == 64  # no more than there is room for
    others[0] = 1.0
    assert meetings.stop(False)


def test_what_processes_read_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers of several updates in one message, and apart again, to the bit."""
    mesh = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("seeds", "games"))
    rows = {
        "loss": jnp.arange(18.0).reshape(3, 2, 3) / 7,
        "count": jnp.array([[2**24 + n, n] for n in range(3)]),  # which a float would not hold
        "ended": jnp.array([[n > 0, False] for n in range(3)]),
        "entropy": jnp.arange(6.0).reshape(3, 2) / 3,
    }
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    found = Layout(mesh).read(rows)
    assert list(found) == list(rows)
    for name, value in found.items():
        assert value.dtype == rows[name].dtype
        np.testing.assert_array_equal(value, rows[name])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--processes 2", "--processes is 2 but must be left out, and --process, without"),
        ("--coordinator here", "--coordinator is 'here' but must be HOST:PORT of the first"),
        ("--coordinator a:1", "--coordinator HOST:PORT needs --processes and --process as well"),
        ("--coordinator a:1 --processes 2 --process 2", "--process is 2 but must be from 0 to 1"),
        ("--coordinator auto --process 1", "--coordinator auto finds the processes: leave"),
    ],
)
def test_what_cannot_be_is_refused(
    words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "ppo", "--runs", str(tmp_path), *words.split()]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
