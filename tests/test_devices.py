"""A run on several devices is the run on one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROGRAM = Path(__file__).with_name("eight_devices.py")
Found = dict[str, Any]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a process with eight devices, of one processor, has to say."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path_factory.mktemp("devices"))],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made: Found = json.loads(done.stdout)
    return made


def assert_near(one: list[Found], two: list[Found], updates: int) -> None:
    """What was counted is the same, and the rest is but for rounding."""
    for first, second in zip(one[:updates], two[:updates], strict=True):
        assert first.keys() == second.keys()
        for name in ("episodes", "return_sum", "taken_sum"):
            assert first[name] == second[name]
        for name in first:
            np.testing.assert_allclose(first[name], second[name], rtol=1e-3, atol=1e-5)


def test_seeds_apart_exchange_nothing(found: Found) -> None:
    assert found["exchanges"] == 0


def test_seeds_apart_are_those_of_one_device(found: Found) -> None:
    """But for rounding: XLA adds numbers in an order that hangs on how many there are."""
    assert_near(found["one"]["log"], found["four"]["log"], 6)
    assert found["four"]["result"]["devices"] == {"seeds": 4, "sets": 1, "games": 1}
    assert "devices" not in found["one"]["result"]


def test_a_seed_is_the_same_to_the_bit_wherever_it_lies(found: Found) -> None:
    """Seeds 1 to 3, the second to fourth there and the first to third here; resumed, too."""
    assert found["resumed"]["log"] == found["moved"]["log"]
    for here, there in zip(found["moved"]["log"], found["four"]["log"], strict=True):
        for name in here.keys() - {"update", "steps"}:
            assert here[name][:3] == there[name][1:], name


def test_programs_of_several_devices_are_kept(found: Found) -> None:
    """Seeds and games apart: read back they learn the same to the bit."""
    assert found["kept"]["read"] == ["init", "update"]
    first, again = found["kept"]["logs"]
    assert first == again
    assert len(first) == 2


def test_sets_of_parameters_apart_are_those_of_one_device(found: Found) -> None:
    """With every model of HOP+, which learns from play of all seats by itself."""
    assert found["eight"]["result"]["devices"] == {"seeds": 4, "sets": 2, "games": 1}
    assert_near(found["one"]["log"], found["eight"]["log"], 2)
    assert found["models apart"]["result"]["devices"] == {"seeds": 1, "sets": 2, "games": 1}
    assert_near(found["models"]["log"], found["models apart"]["log"], 3)


def test_games_apart_are_those_of_one_device(found: Found) -> None:
    """Of players that share their parameters, and with the sets of others apart, too."""
    assert found["shared apart"]["result"]["devices"] == {"seeds": 4, "sets": 1, "games": 2}
    assert_near(found["shared"]["log"], found["shared apart"]["log"], 2)
    assert found["both apart"]["result"]["devices"] == {"seeds": 1, "sets": 2, "games": 4}
    assert_near(found["alone"]["log"], found["both apart"]["log"], 2)


def test_sets_apart_tell_each_other_nothing_in_a_minibatch(found: Found) -> None:
    """They play together and say what came of it: gradients stay where they are."""
    assert found["within"] == 0
    assert found["told"] > 0


def test_a_run_goes_on_with_other_devices(found: Found) -> None:
    """Eight, then one, then four: parameters do not lie in a checkpoint as they do on devices."""
    assert "devices" not in found["then one"]["result"]
    assert found["then four"]["result"]["devices"] == {"seeds": 4, "sets": 1, "games": 1}
    assert_near(found["one"]["log"], found["then four"]["log"], 6)
    assert found["then four"]["config"] == found["one"]["config"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("nine", "--devices is 9, and there are 8 (cpu): give at most that, or all"),
        (
            "seven",
            "--devices is 7, among which --seeds 1 times --ppo.games 8 do not divide: 1, 2, 4, 8"
            " would do",
        ),
        ("none", "--devices is 0 but must be all, or 1 or more"),
        ("ablate", "--devices is 9, and there are 8 (cpu): give at most that, or all"),
        ("certify", "--devices is 9, and there are 8 (cpu): give at most that, or all"),
        ("bench", "--devices is 9, and there are 8 (cpu): give at most that, or all"),
        ("trials", "--trials is 12 but must be a multiple of --devices, which is 8"),
    ],
)
def test_what_cannot_be_is_refused(found: Found, asked: str, sentence: str) -> None:
    assert found["refused"][asked] == [2, "", f"hopplus: {sentence}\n"]
    assert found["refused"]["folders"] == []


def test_trials_apart_are_those_of_one_device(found: Found) -> None:
    one, eight = found["adapted"]
    np.testing.assert_allclose(one, eight, rtol=1e-6)
