"""What the figures of a value loss are said to mean."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hopplus.diagnosis.finding import Check
from hopplus.diagnosis.value_loss.checks import (
    check_critic,
    check_explained,
    check_goals,
    check_horizon,
    check_opponents,
    check_scale,
    check_world,
)
from hopplus.diagnosis.value_loss.models import OpponentErrors, WorldErrors, _compare_rewards
from hopplus.diagnosis.value_loss.sources import StepSource, TargetErrors, describe_cuts
from tiny_diagnosis import (
    CONFIG,
    PPO,
)
from tiny_evidence import evidence, source

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
