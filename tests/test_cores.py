"""Cores are devices where they are asked for, and only then."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from hopplus import devices
from hopplus.runtime import cores

PROBE = """
import hopplus
from hopplus.devices import using
import jax
{before}
with using({count}):
    print(len(jax.devices()))
"""
FLAG = "XLA_FLAGS"
NAMES = (FLAG, "JAX_NUM_CPU_DEVICES")


def probe(count: str, before: str = "", **environment: str) -> tuple[str, str]:
    """How many devices a fresh process has that asks for so many, and what it ends with."""
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(count=count, before=before)],
        env=clean | {"JAX_PLATFORMS": "cpu"} | environment,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip(), done.stderr.strip().rpartition("\n")[2]


def test_one_device_is_the_processor() -> None:
    assert probe("1") == ("1", "")


def test_each_core_is_one_if_all_are_wanted() -> None:
    assert probe("'all'") == (str(cores()), "")


def test_a_container_has_its_share(tmp_path: Path) -> None:
    limit = tmp_path / "cpu.max"
    there = cores(limit)
    for said, count in (("max 100000", there), ("100000 100000", 1), ("50000 100000", 1)):
        limit.write_text(f"{said}\n")
        assert cores(limit) == count
    limit.write_text(f"{100000 * there} 100000\n")
    assert cores(limit) == there


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_some_can_be_asked_for_after_others() -> None:
    """And each time as many are used."""
    two = "from hopplus.devices import count_used\nwith using(2):\n    assert count_used() == 2"
    assert probe("'all'", two) == (str(cores()), "")


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_a_run_has_a_seed_on_each_core(tmp_path: Path) -> None:
    """And goes on so."""
    tiny = "--game.size 3 --game.seats 2 --game.hares 2 --net.hidden 8 --ppo.games 8 --steps 576"
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    for command in (
        f"train ppo --seeds 2 --devices 2 --name two {tiny}",
        "resume runs/two --steps 1152 --devices 2",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "hopplus", *command.split()],
            env=clean | {"JAX_PLATFORMS": "cpu"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        result = json.loads((tmp_path / "runs/two/result.json").read_text())
        assert result["devices"] == {"seeds": 2, "sets": 1, "games": 1}


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_sets_of_parameters_are_on_different_cores_by_default(tmp_path: Path) -> None:
    """And a run that had one device goes on with one, to the last bit."""
    game = "--game.size 3 --game.seats 2 --game.hares 2 --net.hidden 8 --ppo.games 8"
    length = "--ppo.no-anneal --checkpoint-every 2"
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}

    def said(command: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "hopplus", *command.split()],
            env=clean | {"JAX_PLATFORMS": "cpu"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def result(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((tmp_path / f"runs/{name}/result.json").read_text())
        return found

    said(f"train ppo --steps 576 --name two {game} {length}")
    assert result("two")["devices"] == {"seeds": 1, "sets": 2, "games": 1}
    said(f"train ppo --steps 576 --name one {game} {length} --devices 1")
    said("resume runs/one --steps 1152")
    assert "devices" not in result("one")
    said(f"train ppo --steps 1152 --name whole {game} {length} --devices 1")
    assert result("one")["returns"] == result("whole")["returns"]


@pytest.mark.parametrize(
    ("runs", "counts"),  # of 1, 2, 3, 4, 6 and 8 cores, as many as there is work for
    [
        ([(3, 4)], [1, 2, 3, 4, 6, 6]),
        ([(1, 4)], [1, 2, 2, 4, 4, 4]),
        ([(1, 1)], [1, 1, 1, 1, 1, 1]),
        ([(4, 3)], [1, 2, 3, 4, 6, 6]),
        ([(2, 4), (3, 4)], [1, 2, 2, 4, 4, 4]),
        ([(2, 1), (3, 1)], [1, 1, 1, 1, 1, 1]),
    ],
)
def test_so_many_cores_as_everything_divides_among(
    monkeypatch: pytest.MonkeyPatch, runs: list[tuple[int, int]], counts: list[int]
) -> None:
    found = []
    for there in (1, 2, 3, 4, 6, 8):
        monkeypatch.setattr(devices, "cores", lambda there=there: there)
        monkeypatch.setattr(devices, "_most_devices", lambda: 8)
        found.append(devices.cores_for(runs))
    assert found == counts


def test_an_accelerator_is_used_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_most_devices", lambda: 8)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert devices.cores_for([(8, 4)]) == 1
    assert devices.Used("gpu", 2).here()
    assert not devices.Used("gpu", 16).here()
    assert not devices.Used("cpu", 2).here()


def test_cores_wait_for_each_other_for_long() -> None:
    """XLA's own patience is 40 s, after which it ends the process."""
    patience = "import os, atexit; atexit.register(lambda: print(os.environ['XLA_FLAGS']))"
    assert "terminate_timeout_seconds=86400" in probe("'all'", patience)[0]
    own = "--xla_cpu_collective_call_terminate_timeout_seconds=7"
    assert "=86400" not in probe("'all'", patience, **{FLAG: own})[0]


def test_there_are_no_more_than_cores() -> None:
    out, error = probe(str(cores() + 1))
    assert not out
    some = "is 1" if cores() == 1 else f"are {cores()}"
    assert f"--devices is {cores() + 1}, and there {some} (cpu): give at most that, or all" in error
    assert error.endswith("or all")


def test_what_was_said_of_them_stays() -> None:
    assert probe("'all'", **{FLAG: "--xla_force_host_platform_device_count=3"}) == ("3", "")
    assert probe("'all'", JAX_NUM_CPU_DEVICES="1") == ("1", "")


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_who_asks_too_late_is_told() -> None:
    started = "jax.devices()"
    assert probe("'all'", started) == ("1", "")
    out, error = probe("2", started)
    assert not out
    assert "--devices is 2, and there is 1 (cpu): give at most that, or all; cores" in error
    out, error = probe("2", JAX_NUM_CPU_DEVICES="1")
    assert not out
    assert "was told of no other number" in error
