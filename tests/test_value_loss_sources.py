"""What values learn from, in figures worked by hand."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.diagnosis.subject import replica_of
from hopplus.diagnosis.value_loss.checks import (
    check_sources,
    check_time,
)
from hopplus.diagnosis.value_loss.sources import (
    compare_targets,
    describe_sources,
)
from tiny_diagnosis import (
    PPO,
    faulty,
)
from tiny_evidence import evidence


def test_sources_by_hand() -> None:
    """Two sets; of the first, three real rows, one of a seat that had left, and two imagined."""
    zeros = np.zeros((2, 6))
    batch: Any = SimpleNamespace(
        present=np.array([[1, 1, 1, 0, 1, 1], [0, 0, 0, 0, 1, 0]], bool),
        imagined=np.array([[0, 0, 0, 0, 1, 1]] * 2, bool),
        reward=np.array([[0, 1, 2, 99, -5, 5], zeros[0]]),
        returns=np.array([[1, 2, 3, 99, 4, 4], zeros[0]]),
        value=np.array([[1, 1, 1, 99, 0, 0], zeros[0]]),
        inferred=np.array([[[3, 4], [0, 0], [0, 0], [9, 9], [0, 0], [0, 0]], np.zeros((6, 2))]),
    )
    found = describe_sources(SimpleNamespace(batch=batch, drawn=None))  # type: ignore[arg-type]
    real, nothing = found["real"]
    assert nothing is None
    assert real is not None
    assert real.steps == 3
    assert (real.reward[0], real.reward[2], real.reward[-1]) == (0.0, 1.0, 2.0)
    assert (real.return_mean, real.return_variance) == pytest.approx((2.0, 2 / 3))
    assert real.value_loss == pytest.approx((0 + 1 + 4) / 3)
    assert real.explained == pytest.approx(0.0)  # a value that is always the same
    assert real.goal_size == pytest.approx(np.sqrt(25 / 6))
    assert real.goal_zero == pytest.approx(2 / 3)
    assert (real.goal[0], real.goal[2], real.goal[-1]) == (0.0, 0.0, 5.0)
    imagined_batch, other = found["imagined"]
    assert imagined_batch is not None
    assert other is not None
    assert (imagined_batch.steps, imagined_batch.value_loss, imagined_batch.explained) == (
        2,
        16.0,
        0.0,
    )
    assert (imagined_batch.reward[0], imagined_batch.reward[-1], imagined_batch.goal_zero) == (
        -5.0,
        5.0,
        1.0,
    )
    said = check_sources(evidence(sources={"real": [real], "imagined": [None]})).says
    assert "rewards from 0 to 2" in said
    assert "Nothing imagined is learned from" in said
    assert check_sources(evidence(sources={"real": [real, None]})).state == "unknown"
    assert check_sources(evidence(sources={"real": [real], "imagined": [None]})).state == "fine"


def test_targets_by_hand() -> None:
    """A plain loop backwards, over the steps whose episode ends in time."""
    subject = faulty(None)
    lab, learner = subject.laboratory, subject.learner
    lesson = replica_of(lab.update(subject.learning, lab.as_it_is())[2], 0)
    found = compare_targets(learner, lesson)
    play = jax.device_get(lesson.trajectory)

    def error(gae_lambda: float) -> float:
        squares = []
        for game in range(PPO.games):
            for seat in range(3):
                later = value_later = None
                for t in reversed(range(PPO.unroll)):
                    value, reward = (
                        play.act.value[t, game, seat],
                        play.outcome.reward[t, game, seat],
                    )
                    if play.outcome.done[t, game]:
                        later = value_later = 0.0
                    if later is None or value_later is None:
                        continue
                    gone = t + 1 < PPO.unroll and not play.present[t + 1, game, seat]
                    share = 1.0 if gone else gae_lambda
                    later = reward + (1 - share) * value_later + share * later
                    value_later = value
                    if play.present[t, game, seat]:
                        squares.append((later - value) ** 2)
        return float(np.mean(squares))

    assert found.monte_carlo == pytest.approx(error(1.0), rel=1e-4)
    assert found.gae == pytest.approx(error(0.95), rel=1e-4)
    assert found.as_configured == pytest.approx(found.gae)
    assert found.monte_carlo != pytest.approx(found.gae, rel=1e-3)


def test_time_is_told_from_first_to_last() -> None:
    records = [{"value_loss": [[float(n), n + 2.0]], "explained": [[0.1]]} for n in range(20)]
    said = check_time(evidence(subject=SimpleNamespace(records=records))).says
    assert "Over 20 updates, value loss 1.5 at first, 19.5 at last, at most 20" in said
    assert "explained variance 0.1 at first" in said
