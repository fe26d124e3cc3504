"""Whose steps are drawn of those that are kept, found out beside the learner's own code."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from hopplus.config import DistilConfig
from hopplus.diagnosis.audit import replay_audit
from hopplus.diagnosis.pipeline import lesson_checks, replay_check
from hopplus.diagnosis.subject import learned_from
from hopplus.learning.from_run import make_learner
from hopplus.presets import PRESETS
from tiny_audit import ROWS, batches, learners, played
from tiny_diagnosis import GAME, PPO


def test_what_was_drawn_of_what_is_kept() -> None:
    """Steps of the lesson, and of an earlier update that had other rewards; each set's own."""
    _, lesson, _ = played()
    batch = batches()["healthy"]
    older = replace(batch, reward=batch.reward + 7)
    kept = jax.tree.map(lambda leaf: leaf[None, :, None], older)  # [replicas, sets, updates, M]
    half = np.arange(ROWS) % 2 == 0

    def drawn(first: Any, second: Any) -> Any:
        def mixed(one: np.ndarray, two: np.ndarray) -> np.ndarray:
            return np.where(half.reshape(1, -1, *[1] * (one.ndim - 2)), one, two)

        return replace(lesson, batch=batch, drawn=jax.tree.map(mixed, first, second))

    def moved(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[np.array([0, 2, 1])], tree)

    before: Any = SimpleNamespace(replay=kept)
    assert replay_audit(before, drawn(batch, older), 0) == [[0], [1], [2]]
    assert replay_audit(before, drawn(batch, moved(older)), 0) == [[0], [], []]
    assert replay_audit(before, drawn(moved(batch), moved(older)), 0) == [[0], [2], [1]]
    nothing: Any = SimpleNamespace(replay=None)
    assert replay_audit(nothing, drawn(batch, batch), 0) == [[0], [1], [2]]
    assert replay_audit(nothing, drawn(batch, older), 0) == [[], [], []]
    assert replay_audit(nothing, replace(lesson, drawn=None), 0) is None
    sets, learner = np.arange(3)[:, None], learners()["healthy"]
    assert replay_check(sets, [[0], [1], [2]]).fault is None
    wrong = replay_check(sets, [[0], [2], []])
    assert wrong.fault == "wrong-seat-data"
    assert wrong.says == (
        "seat 1 learned from what seat 2 has kept; seat 2 learned from what nobody has kept."
    )
    assert len(lesson_checks(learner, before, drawn(batch, older))) == 1 + len(
        lesson_checks(learner, before, lesson)
    )


def test_a_lesson_has_what_was_learned_from() -> None:
    """Old steps where a search keeps them; else what was played."""
    config = replace(PRESETS["direct-om"], game=GAME, steps=PPO.steps, ppo=PPO)
    for replay, drawn in ((0, False), (99, True)):
        learner = make_learner(replace(config, distil=DistilConfig(replay=replay)), {})
        now = jax.eval_shape(learner.init, jax.random.key(0))
        lesson = jax.eval_shape(learner.update_shown, now)[2]
        assert (lesson.drawn is not None) is drawn
        assert learned_from(lesson) is (lesson.drawn if drawn else lesson.batch)
