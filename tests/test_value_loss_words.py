"""What the figures of a value loss are said to mean."""

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
    check_critic,
    check_experiments,
    check_explained,
    check_goals,
    check_hopes,
    check_horizon,
    check_imagined_returns,
    check_opponents,
    check_scale,
    check_world,
)
from hopplus.diagnosis.value_loss.courses import PPO as PLAIN
from hopplus.diagnosis.value_loss.courses import Course
from hopplus.diagnosis.value_loss.diagnosis import ILLNESSES
from hopplus.diagnosis.value_loss.evidence import ValueLossEvidence
from hopplus.diagnosis.value_loss.experiments import AS_IT_IS, REAL_ONLY, Experiment
from hopplus.diagnosis.value_loss.models import OpponentErrors, WorldErrors, _compare_rewards
from hopplus.diagnosis.value_loss.sources import StepSource, TargetErrors, describe_cuts
from tiny_diagnosis import (
    CONFIG,
    PPO,
)


def evidence(**given: Any) -> ValueLossEvidence:
    """With these alone; nothing else is looked at."""
    names = (
        "subject",
        "lesson",
        "sources",
        "targets",
        "world",
        "opponents",
        "goals_apart",
        "experiments",
        "courses",
        "over_time",
    )
    parts: dict[str, Any] = {name: given.get(name) for name in names}
    return ValueLossEvidence(**parts)


def source(**given: Any) -> StepSource:
    usual: dict[str, Any] = {
        "steps": 9,
        "reward": [0.0, 0.0, 0.0, 1.0, 5.0],
        "returns": [0.0] * 5,
        "value": [0.0] * 5,
        "return_mean": 1.0,
        "return_variance": 1.0,
        "value_loss": 0.5,
        "explained": 0.5,
        "goal": [0.0] * 5,
        "goal_size": 1.0,
        "goal_zero": 0.0,
    }
    return StepSource(**(usual | given))


PLAYED: Any = SimpleNamespace(
    plays=None, trajectory=SimpleNamespace(present=np.array([[[1, 1], [1, 0]], [[1, 1], [0, 0]]]))
)


def cutting(episodes: str = "any") -> Any:
    """A learner of whose five steps two belong to episodes that go on after the unroll; that of
    somebody who has left is none."""
    unfinished = np.array([[[0, 0], [1, 1]], [[1, 0], [1, 0]]], bool)
    return SimpleNamespace(
        seats=[0, 1],
        config=SimpleNamespace(episodes=episodes),
        unfinished=lambda plays, trajectory: unfinished,
    )


def test_what_is_said_of_returns_that_an_unroll_cuts() -> None:
    said = describe_cuts(cutting(), PLAYED)
    assert said.startswith("Returns of 40% of the steps go on after the unroll")
    assert "with the critic's value" in said
    assert "not learned from" in describe_cuts(cutting("whole"), PLAYED)


def losses(
    gae_lambda: float = 0.95,
    explained: float = 0.5,
    errors: TargetErrors | None = None,
    updates: int = 20,
    **given: Any,
) -> list[str | None]:
    """Of what loss and variance, Monte-Carlo returns and explained variance are suspected."""
    config = replace(CONFIG, ppo=replace(PPO, gae_lambda=gae_lambda))
    early = {"explained": [[0.9]], "value_loss": [[1.0]], "real/return_variance": [[1.0]]}
    real = source(**given)
    late = {"explained": [[explained]], "value_loss": [[real.value_loss]]}
    late["real/return_variance"] = [[real.return_variance]]
    records = [early] * (updates - updates // 5) + [late] * (updates // 5)
    subject: Any = SimpleNamespace(config=config, records=records, learner=cutting())
    found = evidence(
        subject=subject,
        lesson=PLAYED,
        sources={"real": [real]},
        targets=errors or TargetErrors(1.0, 1.0, 1.0),
    )
    checks = [check_scale(found), check_horizon(found), check_explained(found)]
    return [check.fault or (check.state if check.unknown else None) for check in checks if check]


def test_what_is_said_of_losses() -> None:
    assert losses() == [None, None, None]
    assert losses(value_loss=100.0, return_variance=100.0)[0] == "reward-scale"
    assert losses(value_loss=100.0, return_variance=10.0)[0] is None  # larger than they explain
    assert losses(value_loss=9.0, return_variance=100.0)[0] is None  # and that is not large
    useless = losses(value_loss=100.0, return_variance=100.0, explained=0.0)
    assert useless == [None, None, "value-behind"]
    noisy = TargetErrors(1.4, 1.4, 1.0)
    assert losses(gae_lambda=1.0, errors=noisy, value_loss=0.9)[1] == "horizon"
    assert losses(gae_lambda=0.95, errors=noisy, value_loss=0.9)[1] is None
    assert losses(gae_lambda=1.0, errors=TargetErrors(1.2, 1.2, 1.0), value_loss=0.9)[1] is None
    assert (
        losses(gae_lambda=1.0, errors=noisy, value_loss=0.1)[1] is None
    )  # values know it nearly all
    nothing = TargetErrors(float("nan"), float("nan"), float("nan"))
    assert losses(gae_lambda=1.0, errors=nothing) == [None, "unknown", None]
    assert losses(explained=-1.0)[2] == "value-behind"
    assert losses(explained=-1.0, updates=10)[2] == "unknown"  # too early to tell
    assert losses(explained=0.5, updates=10)[2] is None
    assert losses(explained=0.0, return_variance=0.0)[2] == "unknown"  # nothing to explain
    assert losses(explained=float("nan"))[2] == "unknown"
    assert losses(value_loss=float("nan"))[0] == "unknown"
    # One update without a large reward, after others with them, is not what the loss is like.
    rows = [{"explained": [[0.5]], "value_loss": [[50.0]], "real/return_variance": [[60.0]]}] * 9
    subject: Any = SimpleNamespace(records=rows)
    quiet = {"real": [source(value_loss=2.0, return_variance=3.0)]}
    assert check_scale(evidence(subject=subject, sources=quiet)).fault == "reward-scale"
    alone = evidence(sources={"real": [None]}, targets=nothing)
    assert check_scale(alone).state == "unknown"
    assert check_horizon(alone) is check_explained(alone) is None
    assert losses(explained=0.1)[2] is None


def test_what_is_said_of_goals() -> None:
    def said(
        real: StepSource | None, imagined_batch: StepSource | None, *apart: float
    ) -> str | None:
        found = {"real": [source(), real], "imagined": [source(), imagined_batch]}
        seats = SimpleNamespace(seats=np.array([[0], [3]]))
        subject: Any = SimpleNamespace(learner=SimpleNamespace(auxiliary=seats))
        check = check_goals(evidence(subject=subject, sources=found, goals_apart=list(apart)))
        if check and 0.1 in apart:
            assert "of seat 3 alone" in check.says
        return check.fault if check else None

    assert said(source(), source(goal_size=1.5), 0.0, 1e-5) is None
    assert said(source(), source(goal_size=2.5), 0.0, 0.0) == "goal-mismatch"
    assert said(source(), source(goal_size=0.4), 0.0, 0.0) == "goal-mismatch"
    assert said(source(), source(), 0.0, 0.1) == "goal-mismatch"
    assert said(source(), None, 0.0, 0.1) == "goal-mismatch"  # the gate may open any time
    assert said(source(goal_size=0.0), source(), 0.0, 0.0) is None  # nothing to divide by
    assert said(source(), source(goal_size=2.5)) is None  # there are no goals at all


def test_what_is_said_of_the_critics_steps() -> None:
    def said(critic_on: str, valued: list[bool]) -> str | None:
        config = SimpleNamespace(imagine=SimpleNamespace(critic_on=critic_on))
        batch = SimpleNamespace(
            imagined=np.array([False, True, True]),
            present=np.ones(3, bool),
            valued=np.array(valued),
        )
        subject: Any = SimpleNamespace(config=config)
        lesson: Any = SimpleNamespace(batch=batch, drawn=None)
        found = check_critic(evidence(subject=subject, lesson=lesson))
        assert found is not None
        return found.fault

    nobody: Any = SimpleNamespace(imagined=np.zeros(3, bool), present=np.ones(3, bool))
    nobody.valued = nobody.present
    here: Any = SimpleNamespace(config=SimpleNamespace(imagine=SimpleNamespace(critic_on="real")))
    unsure = check_critic(evidence(subject=here, lesson=SimpleNamespace(batch=nobody, drawn=None)))
    assert unsure is not None
    assert unsure.state == "unknown"
    nobody.imagined = None  # without imagination there is nothing to ask
    assert (
        check_critic(evidence(subject=here, lesson=SimpleNamespace(batch=nobody, drawn=None)))
        is None
    )
    assert said("real", [True, False, False]) is None
    assert said("real", [True, False, True]) == "critic-on-imagined"
    assert said("both", [True, True, True]) is None


def of_world(world: WorldErrors, imagined_batch: StepSource | None) -> Check:
    found = check_world(evidence(world=world, sources={"imagined": [None, imagined_batch]}))
    assert found is not None
    return found


def test_what_is_said_of_worlds() -> None:
    def said(
        exact: float, slope: float, offset: float, imagined_batch: StepSource | None
    ) -> str | None:
        slopes = [slope, float("nan")]
        world = WorldErrors([1.0, exact], [0, 0.1], slopes, [0, offset], [0, 5], [0, 5], 0.1)
        return of_world(world, imagined_batch).fault

    assert said(0.9, 1.0, 0.0, source()) is None
    assert said(0.9, 2.5, 0.0, source()) is None  # as of young models
    assert said(0.9, 3.5, 0.0, source()) == "world-rewards"
    assert said(0.9, 1.0, 0.1, source()) == "world-rewards"
    assert said(0.9, 1.0, -0.1, source()) == "world-rewards"
    assert said(0.6, 1.0, 0.0, source()) == "world-immature"
    assert said(0.6, 3.5, 0.1, None) is None  # nothing is learned from it
    assert said(0.9, float("nan"), 0.0, source()) is None


@pytest.mark.parametrize(
    ("given", "offset"),
    [
        ([0.0, 0.0, 1.0, 5.0], 0.0),
        ([0.5, 0.5, 1.5, 5.5], 0.1),  # all of them are shifted
        ([-0.5, -0.5, 0.5, 4.5], -0.1),
        ([0.0, 0.0, 0.5, 2.5], 0.0),  # flat, as of a young model
        ([0.75, 0.75, 1.25, 3.25], 0.0),  # flat around the mean, as of one that cannot tell them
        ([0.25, 0.25, 0.85, 3.25], 0.0),  # between the two
        ([1.25, 1.25, 1.75, 3.75], 0.1),  # and shifted besides
    ],
)
def test_a_shift_is_no_flat_line(given: list[float], offset: float) -> None:
    """Rewards 0, 0, 1 and 5, whose mean is 1.5; a shift is a share of their range, 5."""
    true = np.array([0.0, 0.0, 1.0, 5.0])
    found = _compare_rewards(np.ones(4, bool), true, np.array(given), 5.0)
    assert found[3] == pytest.approx(offset)
    same = _compare_rewards(np.ones(4, bool), np.zeros(4), np.full(4, 0.5), 5.0)
    assert same[3] == pytest.approx(0.1)  # where rewards are all the same, there is no line


def test_worlds_of_which_nothing_is_known() -> None:
    """No reward was seen, nobody was there, or nothing is imagined."""
    nan = float("nan")

    def state(exact: float, slope: float, imagined_batch: StepSource | None) -> str:
        world = WorldErrors([1.0, exact], [0, 0.1], [1.0, slope], [0, 0], [0, 5], [0, 5], 0.1)
        return of_world(world, imagined_batch).state

    assert state(0.9, 1.0, source()) == "fine"
    assert state(0.9, nan, source()) == "unknown"
    assert state(nan, 1.0, source()) == "unknown"
    assert state(0.9, 1.0, None) == "unknown"
    assert state(0.6, nan, source()) == "fault"


def test_what_is_said_of_models_of_the_others() -> None:
    def said(own: list[float], even: list[float]) -> Check:
        found = check_opponents(evidence(opponents=OpponentErrors(own, even)))
        assert found is not None
        return found

    assert said([1.0, 1.4], [1.3, 1.3]).fault is None
    assert said([1.0, 1.6], [1.3, 1.3]).fault == "opponents-wrong"
    assert said([1.0, float("nan")], [1.3, float("nan")]).state == "unknown"


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
