"""Whose play is learned from, how often and by how much, and what is logged: found out beside the
learner's own code."""

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.diagnosis.audit import TargetAudit, data_audit, digest, seat_rows
from hopplus.diagnosis.faults import FAULTS
from hopplus.diagnosis.pipeline import data_checks, target_check
from hopplus.diagnosis.step_audit import LogAudit, log_audit
from hopplus.diagnosis.subject import replica_of
from hopplus.games.game import views
from hopplus.learning.learner import Learner
from tiny_audit import REWARD, ROWS, audit, batches, faults, learners, played, present
from tiny_diagnosis import fault_of, faulty


def test_play_of_ones_own() -> None:
    found = audit("healthy")
    assert found.hashes == found.own_hashes
    assert len(set(found.hashes)) == 3  # no two seats saw, did and got the same
    assert found.taken_from == found.seats == [[0], [1], [2]]
    assert found.after_leaving == [0, 0, 0]
    assert found.rows == present().tolist()
    assert found.presence == pytest.approx(present() / ROWS)
    assert min(found.rows) < ROWS  # somebody has left
    assert faults(found) == (None, None)
    # What the update itself has learned from is the same.
    learner, (_, lesson, _) = learners()["healthy"], played()
    assert data_audit(learner, lesson.trajectory, lesson) == found


def test_a_fault_is_one_wrong_function() -> None:
    """A learner with a fault differs from a healthy one in one function, and in nothing else."""
    healthy = learners()["healthy"]
    of_learner = ("half-updates", "step-size", "logged-elsewhere", "gone-kept", "first-reward")
    for name in ("first-seat", *of_learner):
        found = FAULTS[name].learner(healthy)
        other = [
            one.name
            for one in fields(found)
            if vars(found)[one.name] is not vars(healthy)[one.name]
        ]
        assert other in (["assemble"], ["commit"], ["log_episodes"], ["credit"]), name
        assert type(found) is Learner


def test_everyone_learns_from_the_first() -> None:
    found = audit("first-seat")
    assert found.taken_from == [[0], [0], [0]]
    assert found.hashes == [found.own_hashes[0]] * 3
    assert found.after_leaving == [0, 0, 0]
    assert faults(found) == ("wrong-seat-data", None)
    says = data_checks(found)[0].says
    assert "seat 1 learned from seat 0's play; seat 2 learned from seat 0's play." in says
    assert "seat 0 learned" not in says


@pytest.mark.parametrize("kind", ["", "prosocial, "])
def test_everyone_is_credited_with_the_firsts_reward(kind: str) -> None:
    """The play is a seat's own; of rewards alone it is said whose they are."""
    found = audit(f"{kind}first reward" if kind else "first-reward")
    assert found.taken_from == found.seats
    assert found.credited == [None, 0, 0]
    assert found.after_leaving == [0, 0, 0]
    assert faults(found) == (None, None)
    assert fault_of(data_checks(found), REWARD) == "wrong-reward"
    says = data_checks(found)[1].says
    assert says == (
        "seat 1 was credited with seat 0's reward; seat 2 was credited with seat 0's reward."
    )
    for name in ("healthy", "first-seat", "gone-kept", "prosocial"):
        assert fault_of(data_checks(audit(name)), REWARD) is None, name


def test_a_set_of_all_seats_with_one_reward() -> None:
    found = audit("shared, first reward")
    assert found.taken_from == found.seats == [[0, 1, 2]]
    assert found.credited == [0]
    assert fault_of(data_checks(found), REWARD) == "wrong-reward"


def test_two_seats_that_are_exchanged() -> None:
    order = np.array([0, 2, 1])
    batch = jax.tree.map(lambda leaf: leaf[order], batches()["healthy"])
    found = audit("healthy", **vars(batch))
    assert found.taken_from == [[0], [2], [1]]
    assert faults(found) == ("wrong-seat-data", None)


def test_steps_after_leaving() -> None:
    found = audit("gone-kept")
    assert found.taken_from == found.seats
    assert found.after_leaving == (ROWS - present()).tolist()
    assert found.rows == [ROWS] * 3
    assert faults(found) == (None, "steps-after-leaving")
    # It is enough that values learn from them.
    batch = batches()["healthy"]
    assert audit("healthy", valued=np.ones_like(batch.valued)).after_leaving == found.after_leaving
    assert audit("healthy", present=np.ones_like(batch.valued)).rows == [ROWS] * 3


def test_a_step_that_nobody_has_played() -> None:
    batch = batches()["healthy"]
    row = int(np.argmax(batch.present[1]))
    reward = batch.reward.copy()
    reward[1, row] += 1e-3
    found = audit("healthy", reward=reward)
    assert found.taken_from == [[0], None, [2]]
    assert found.hashes[1] != found.own_hashes[1]
    assert faults(found) == ("wrong-seat-data", None)
    assert "seat 1 learned from nobody's play" in data_checks(found)[0].says
    for name in ("action", "reward"):
        other = getattr(batch, name).copy()
        other[1, np.argmin(batch.present[1])] += 1  # one that is not learned from
        assert audit("healthy", **{name: other}).taken_from == found.seats


@pytest.mark.parametrize("part", ["planes", "legal", "time", "last_actions"])
def test_everything_that_is_seen_counts(part: str) -> None:
    batch = batches()["healthy"]
    seen = np.array(getattr(batch.view, part), np.float32)
    seen[2] += batch.present[2].reshape(-1, *[1] * (seen.ndim - 2))
    found = audit("healthy", view=replace(batch.view, **{part: seen}))
    assert found.taken_from == [[0], [1], None]


def test_a_step_that_is_left_out_or_learned_twice() -> None:
    batch = batches()["healthy"]
    row = int(np.argmax(batch.present[0]))
    less, more = batch.present.copy(), batch.present.copy()
    less[0, row] = False
    found = audit("healthy", present=less, valued=less)
    assert found.taken_from == [None, [1], [2]]
    assert found.rows == [present()[0] - 1, *present()[1:]]
    gone = int(np.argmin(batch.present[0]))
    more[0, gone] = True
    action, reward = batch.action.copy(), batch.reward.copy()
    action[0, gone], reward[0, gone] = action[0, row], reward[0, row]

    def twice(leaf: np.ndarray) -> np.ndarray:
        leaf = leaf.copy()
        leaf[0, gone] = leaf[0, row]
        return leaf

    view = jax.tree.map(twice, batch.view)
    found = audit("healthy", present=more, valued=more, action=action, reward=reward, view=view)
    assert found.hashes[0] != found.own_hashes[0]
    assert found.after_leaving == [0, 0, 0]
    assert faults(found) == ("wrong-seat-data", None)


def test_steps_of_another_besides_ones_own() -> None:
    """Seat 1's play stands where seat 0 had left."""
    batch = batches()["healthy"]
    where = ~batch.present[0] & batch.present[1]
    assert where.any()

    def mixed(leaf: np.ndarray) -> np.ndarray:
        leaf = leaf.copy()
        leaf[0, where] = leaf[1, where]
        return leaf

    found = audit("healthy", **vars(jax.tree.map(mixed, batch)))
    assert found.hashes[0] != found.own_hashes[0]
    assert faults(found) == ("wrong-seat-data", None)


def test_one_set_of_parameters_for_all() -> None:
    found = audit("shared")
    assert found.seats == found.taken_from == [[0, 1, 2]]
    assert found.rows == [present().sum()]
    assert faults(found) == (None, None)
    gone = audit("shared, gone kept")
    assert gone.taken_from == [[0, 1, 2]]
    assert gone.after_leaving == [3 * ROWS - present().sum()]
    assert faults(gone) == (None, "steps-after-leaving")


@pytest.mark.parametrize("name", ["prosocial", "altruist"])
def test_rewards_that_are_shared(name: str) -> None:
    """A prosocial seat goes on gaining after it has left, so its value goes on learning; rewards
    are those that are learned from, to the last bit."""
    found = audit(name)
    assert found.taken_from == found.seats
    assert found.hashes == found.own_hashes
    assert found.hashes != audit("healthy").hashes
    assert found.rows == present().tolist()
    assert faults(found) == (None, None)
    assert faults(audit(name, present=np.ones_like(batches()[name].present))) == (
        None,
        "steps-after-leaving",
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("healthy", (None, None)),
        ("first-seat", ("wrong-seat-data", None)),
        ("gone-kept", (None, "steps-after-leaving")),
    ],
)
def test_imagined_steps_are_nobodys_play(name: str, expected: tuple[str | None, ...]) -> None:
    """They stand behind the real ones, and change nothing."""
    batch = batches()[name]
    imagined_batch = jax.tree.map(lambda leaf: leaf[:, ::-1][:, :40], batch)
    imagined_batch = replace(
        imagined_batch, reward=imagined_batch.reward + 7, present=np.ones((3, 40), bool)
    )
    both = jax.tree.map(lambda one, two: np.concatenate([one, two], axis=1), batch, imagined_batch)
    imagined = np.broadcast_to(np.arange(ROWS + 40) >= ROWS, (3, ROWS + 40))
    found = audit(name, **(vars(both) | {"imagined": imagined}))
    assert found == audit(name)
    assert faults(found) == expected


@pytest.mark.parametrize("prosociality", [0.0, 0.5])
def test_only_what_was_played_to_its_end(prosociality: float) -> None:
    """Whoever learns from it learns from its own play; from all of it, from too much. What is left
    does not hang on the critic: with Monte-Carlo returns, another one makes the same of it."""
    _, lesson, _ = played()
    healthy, steps = learners()["healthy"], 5  # in which not every episode comes to its end
    begun, rest = (
        jax.tree.map(lambda leaf: leaf[rows], lesson.trajectory)  # noqa: B023
        for rows in (slice(steps), steps)
    )
    ended = begun.outcome.done.at[2, :8].set(True)  # of half of the games
    begun = replace(begun, outcome=replace(begun.outcome, done=ended))
    config = replace(healthy.config, prosociality=prosociality, gae_lambda=1.0)
    any_ = replace(healthy, config=config)
    whole = replace(healthy, config=replace(config, episodes="whole"))
    own = replica_of(faulty(None).learning.params[0], 0)

    @jax.jit
    def made(params: Any) -> Any:
        seen = jax.vmap(lambda state: views(healthy.game, state))(rest.state)
        plays = replace(lesson.plays, state=rest.state, view=seen)
        other = jax.tree.map(lambda leaf: leaf + 1.0, params)
        kinds = ((any_, params), (whole, params), (whole, other))
        return plays, [one.batch(params, plays, begun) for one, params in kinds]

    plays, (plain, fewer, again) = jax.device_get(made(own))
    cut = replace(lesson, plays=plays, trajectory=begun)
    assert faults(data_audit(whole, begun, replace(cut, batch=fewer))) == (None, None)
    assert faults(data_audit(any_, begun, replace(cut, batch=plain))) == (None, None)
    for mask in ("present", "valued"):
        kept, everything = getattr(fewer, mask), getattr(plain, mask)
        assert (kept <= everything).all()
        assert 0 < kept.sum() < everything.sum()
        wrong = replace(fewer, **{mask: everything})
        assert faults(data_audit(whole, begun, replace(cut, batch=wrong)))[0] == "wrong-seat-data"
    np.testing.assert_array_equal(fewer.returns[fewer.valued], again.returns[again.valued])
    assert (fewer.returns != again.returns)[plain.valued & ~fewer.valued].all()


def test_a_hash_is_of_rows_in_any_order() -> None:
    one, two = b"1" * 16, b"2" * 16
    assert digest(Counter([one, two, one])) == digest(Counter([one, one, two]))
    assert digest(Counter([one, two])) != digest(Counter([one, two, one]))
    _, lesson, _ = played()
    own = seat_rows(learners()["healthy"], lesson)
    assert [rows.all.total() for rows in own] == [ROWS] * 3
    assert [rows.there.total() for rows in own] == present().tolist()


# The log.


def test_the_log_of_an_update() -> None:
    """By the learner, and by one that logs under the next seat's number."""
    subject = faulty(None)
    (_, lesson, record) = played()
    for replica in range(2):
        trajectory = replica_of(played()[0].trajectory, replica)
        found = log_audit(subject.learning, trajectory, record, replica)
        assert found.right
        assert sum(found.true) > 0
    # Seats whose returns differ, so that they can be told apart.
    learning = replace(subject.learning, returns=subject.learning.returns + 7.0 * jnp.arange(3))
    wrong = FAULTS["logged-elsewhere"].learner(subject.learner)
    metrics = jax.jit(wrong.log_episodes)(learning.returns[0], lesson.trajectory)[1]
    logged = {"return_sum": [np.asarray(metrics["return_sum"]).tolist()]}
    found = log_audit(learning, lesson.trajectory, logged, 0)
    assert not found.right
    assert found.moved == [2, 0, 1]


def test_whose_return_was_logged() -> None:
    assert LogAudit([3.0, 1.0, 2.0], [1.0, 2.0, 3.0]).moved == [2, 0, 1]
    assert LogAudit([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).right
    assert LogAudit([1.001, 2.0], [1.0, 2.0]).right  # float32 adds up no better
    assert not LogAudit([1.1, 2.0], [1.0, 2.0]).right
    assert LogAudit([5.0, 2.0], [1.0, 2.0]).moved is None
    assert LogAudit([1.0, 1.0, 2.0], [1.0, 2.0, 1.0]).moved is None


# Steps.


def test_rows_that_cannot_be_compared_are_said_in_words() -> None:
    nan = float("nan")
    targets = TargetAudit([0.0, nan], [0.0, nan], [3e-7, nan], 1e-3)
    check = target_check(targets, mixing=False)
    assert "returns 3e-07, -; values 0, -;" in check.says
    assert "not of its own play" in check.says
    assert "nan" not in check.says
    whole = target_check(TargetAudit([0.0], [0.0], [3e-7], 1e-3), mixing=False)
    assert "not of its own play" not in whole.says
