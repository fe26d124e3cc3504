"""What experiments, imagined returns and hopes say of a value loss, and what to do about it."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hopplus.cli import main
from hopplus.diagnosis.finding import Check, conclude, read_illnesses
from hopplus.diagnosis.value_loss.checks import (
    check_courses,
    check_experiments,
    check_hopes,
    check_imagined_returns,
)
from hopplus.diagnosis.value_loss.courses import PPO as PLAIN
from hopplus.diagnosis.value_loss.courses import Course
from hopplus.diagnosis.value_loss.diagnosis import ILLNESSES
from hopplus.diagnosis.value_loss.experiments import AS_IT_IS, REAL_ONLY, Experiment
from tiny_diagnosis import (
    CONFIG,
    PPO,
)
from tiny_evidence import evidence, source


def trial(name: str, *loss: float, imagines: bool = True) -> Experiment:
    return Experiment(name, list(loss), [], [0.0] * len(loss), [0.0] * len(loss), imagines)


def of_experiments(experiments: list[Experiment]) -> Check:
    found = check_experiments(evidence(experiments=experiments))
    assert found is not None
    return found


def test_what_is_said_of_experiments() -> None:
    usual = trial("as it is", 9.0, 9.0, 4.0, 2.0)
    assert usual.final == 3.0  # of the second half
    zero = trial("imagined rewards zero", 0.1, 0.1, 0.1, 0.1)
    better = of_experiments([usual, trial("real steps only", 9.0, 9.0, 0.8, 0.8), zero])
    assert better.fault == "imagination"
    assert "as it is 3; real steps only 0.8; imagined rewards zero 0.1" in better.says
    assert of_experiments([usual, trial("real steps only", 9.0, 0.0, 1.2, 1.2), zero]).fault is None
    assert "gate closed" not in better.says
    shut = [trial(name, 1.0, imagines=False) for name in ("as it is", "real steps only")]
    assert "gate closed" in of_experiments(shut).says
    assert of_experiments(shut).state == "unknown"
    lost = [trial(name, float("nan")) for name in ("as it is", "real steps only")]
    assert of_experiments(lost).state == "unknown"


def test_data_and_worlds_stand_before_what_they_cause() -> None:
    names = [*ILLNESSES]
    for first, second in (
        ("wrong-seat-data", "world-immature"),
        ("world-rewards", "world-immature"),
        ("world-immature", "goal-mismatch"),
        ("goal-mismatch", "imagination"),
        ("world-rewards", "reward-scale"),
        ("horizon", "reward-scale"),
        ("imagination", "reward-scale"),  # which is for no other reason
        ("horizon", "value-behind"),
    ):
        assert names.index(first) < names.index(second)
        checks = [Check("two", "", second), Check("one", "", first)]
        assert conclude(checks, ILLNESSES).name == first


@pytest.mark.parametrize(
    ("imagined", "fault"),
    [
        ([-1.0, 0.0, 2.0, 9.0, 99.0], None),  # single ones may be large
        ([-99.0, -13.0, 0.0, 1.0, 2.0], "imagined-returns"),
        ([0.0, 0.0, 5.0, 13.0, 14.0], "imagined-returns"),
    ],
)
def test_what_is_said_of_imagined_returns(imagined: list[float], fault: str | None) -> None:
    """Three times what real steps usually come to, or a single reward: 4 here."""
    real = [source(returns=[-50.0, -4.0, 1.0, 2.0, 50.0], reward=[-3.0, 0.0, 0.0, 1.0, 2.0])]
    real.append(source(reward=[0.0, 0.0, 0.0, 0.0, 1.0]))
    sources = {"real": real, "imagined": [source(), source(returns=imagined)]}
    found = check_imagined_returns(evidence(sources=sources))
    assert found is not None
    assert found.fault == fault
    assert "a single reward, 4." in found.says
    assert check_imagined_returns(evidence(sources={"real": real})) is None
    nothing = {"real": [None], "imagined": [source()]}
    assert check_imagined_returns(evidence(sources=nothing)) is None


def of_hopes(hoped: float, valued: bool = True, begins: bool = True) -> Any:
    """Of seats 0 and 2 that learn, of which the last values an episode so when it begins; rewards
    are -1 to 5, and half of what a seat is to gain is the mean of all: 1."""
    value = np.full((2, 1, 3), 99.0)  # of steps that begin nothing, and of a seat that learns not
    value[0, 0, [0, 2]] = 1.0, hoped
    begun = np.array([[begins], [False]])
    trajectory = SimpleNamespace(begins=begun, act=SimpleNamespace(value=value))
    batch = SimpleNamespace(imagined=np.array([False, True]), valued=np.array([True, valued]))
    record = {"return_sum": [[4.0, -2.0, 4.0]], "episodes": [2.0]}
    subject: Any = SimpleNamespace(
        learner=SimpleNamespace(seats=np.array([0, 2])),
        records=[record] * 5,
        config=replace(CONFIG, ppo=replace(PPO, prosociality=0.5)),
        learning=SimpleNamespace(
            auxiliary_state=SimpleNamespace(observed=np.array([[[-1.0, 2.0], [0.0, 5.0]]]))
        ),
    )
    lesson: Any = SimpleNamespace(trajectory=trajectory, batch=batch, drawn=None)
    return check_hopes(evidence(subject=subject, lesson=lesson))


def test_what_is_said_of_hopes() -> None:
    """Both come to 2, with half of the mean of all to 1.5; 6.5 is a whole reward more."""
    found = of_hopes(7.5)
    assert found.fault == "imagination"
    assert "values are 1, 7.5, by seat" in found.says
    assert "came to 1.5, 1.5, and no reward was larger than 5." in found.says
    assert of_hopes(6.0).fault is None
    assert of_hopes(-7.5).fault == "imagination"
    assert of_hopes(7.5, valued=False).fault is None  # somebody else's fault
    assert of_hopes(7.5, begins=False) is None


def course(name: str, *by_seed: float) -> Course:
    """Two updates with the same loss."""
    loss = [list(by_seed)] * 2
    return Course(name, loss, loss, [], [1.0] * len(by_seed))


def test_what_is_said_of_experiments_from_the_start() -> None:
    """Imagined steps are to blame where the loss is three times as large with them, and seeds agree
    on that."""
    without, ppo = course(REAL_ONLY, 1.0, 1.1, 0.9), course(PLAIN, 1.0, 1.0, 1.0)
    for losses, fault in (
        ((5.0, 5.1, 4.9), "imagination"),
        ((2.0, 2.1, 1.9), None),  # not three times as large
        ((0.5, 14.0, 0.6), None),  # one seed is no proof
    ):
        found = check_courses(evidence(courses=[course(AS_IT_IS, *losses), without, ppo]))
        assert found is not None
        assert found.fault == fault
        assert f"{REAL_ONLY} 1.000 ± 0.248" in found.says
        assert "of 3 seeds" in found.says
    lost = course(AS_IT_IS, float("nan"), 1.0, 1.0)
    found = check_courses(evidence(courses=[lost, without, ppo]))
    assert found is not None
    assert found.state == "unknown"
    assert check_courses(evidence(courses=[])) is None


def test_advice_names_options_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    commands = ("train ppo", "diagnose seats ppo", "diagnose value-loss ppo", "adapt ppo")
    known = ""
    for command in commands:
        with pytest.raises(SystemExit):
            main([*command.split(), "--help-all"])
        known += capsys.readouterr().out
    options = set(re.findall(r"--[a-z][a-z.-]*[a-z]", known))
    for diagnosis in ("seats", "value-loss", "models", "adaptation"):
        for name, illness in read_illnesses(diagnosis).items():
            named = set(re.findall(r"--[a-z][a-z.-]*[a-z]", illness.advice))
            assert named <= options, name
