"""HOP+ in the learning loop: what each part learns from, and what it leaves alone."""

from dataclasses import replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import PARTS, AuxiliaryConfig
from hopplus.diagnosis.faults import FAULTS
from hopplus.games.grid import STAY
from hopplus.learning.auxiliary.goal import GoalLearner
from hopplus.learning.auxiliary.opponent import OpponentLearner
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS, gate_of
from hopplus.learning.auxiliary.world import WorldLearner
from tiny_hop_plus import GOAL, OPPONENT, PPO, REAL, jit, of_seat, same, setup

Settling = GoalLearner | OpponentLearner | WorldLearner
LEARNED = ("prior", "context", "opponents", "world")


def huge(param_sets: Any, seats: Any = slice(None)) -> Any:
    """Minds of which those seats' worlds promise a thousand at every step."""
    return eqx.tree_at(
        lambda m: m.world.seat.layers[-1].bias,
        param_sets,
        replace_fn=lambda b: b.at[seats, -1].add(1e3),
    )


@cache
def plainly_learned() -> tuple[Any, Any, Any, Any]:
    return jax.device_get(setup().learn())


@cache
def fitted_minds() -> Any:
    """Minds that have learned this little world for long."""
    s = setup()
    part: Any = next(part for part in s.learner.auxiliary.parts if part.name == "world")
    longer = replace(part, config=replace(part.config, fits=600, batch=64))
    _, auxiliary_state, _, _ = plainly_learned()
    return jax.jit(longer.fit)(s.param_sets, auxiliary_state.parts["world"], jax.random.key(0))[0]


# The table.


def test_the_table_names_what_is_logged() -> None:
    """Whatever reports and diagnoses look for by the table's rows is there."""
    metrics = plainly_learned()[3]
    assert AUXILIARY_MODELS.keys() == PARTS.keys()
    for name, row in AUXILIARY_MODELS.items():
        if name == "liam":  # which stands in place of goals: test_liam.py has it
            continue
        if row.learner:
            assert name == row.prefix
            assert {f"{row.prefix}/fill", f"{row.prefix}/fits"} <= metrics.keys()
        looked_for = [*row.figures, *(one for chart in row.charts for one in chart.names)]
        for chart in row.charts:
            looked_for += (chart.by_action or ()) + (chart.by_other or ())
        looked_for += filter(None, [row.gate])
        for one in looked_for:
            assert any(found == one or found.startswith(one) for found in metrics), one
    sources = {row.prefix for row in AUXILIARY_MODELS.values()} | {"real"}
    assert {found.partition("/")[0] for found in metrics} <= sources
    assert gate_of("imagined/value") == "imagined/open"
    assert gate_of("imagined/open") is gate_of("world/error") is None


# Nobody learns from another's play, and nothing from those who are gone.


def test_what_absent_seats_do_and_think_teaches_nothing() -> None:
    s = setup()
    present = s.learner.game.present(s.played.state)  # [T, B, N]
    assert 0.1 < present.mean() < 0.95
    gone = ~present[..., None]
    assert gone[0].any()  # of these the goal part keeps the memory
    other = replace(
        s.played,
        joint=jnp.where(present, s.played.joint, (s.played.joint + 3) % 7),
        inferred=jnp.where(gone, s.played.inferred + 5.0, s.played.inferred),
        memory=jnp.where(gone, 1 - s.played.memory, s.played.memory),
    )
    assert not same(s.played, other)
    param_sets, _, lessons, metrics = plainly_learned()
    minds_2, _, lessons_2, metrics_2 = s.learn(played=other)
    for name in LEARNED:
        assert not same(getattr(param_sets, name), getattr(s.param_sets, name))
        assert same(getattr(param_sets, name), getattr(minds_2, name))
    assert same(lessons, lessons_2)
    for name in ("opponent/count", "opponent/fill", "world/error", "world/fill", "goal/fill"):
        np.testing.assert_array_equal(metrics[name], metrics_2[name])
    assert metrics["world/fill"].tolist() == present.sum(axis=(0, 1)).tolist()
    assert metrics["opponent/fill"].tolist() == present.sum(axis=(0, 1)).tolist()
    assert metrics["goal/fill"].tolist() == present.sum(axis=(0, 1)).tolist()


def test_samples_of_players_that_have_left_are_counted() -> None:
    """None is learned from; with the fault all are, and what is measured stays the same."""
    s = setup()
    assert not plainly_learned()[3]["opponent/absent"].any()
    healthy: Any = next(part for part in s.learner.auxiliary.parts if part.name == "opponent")
    faulty: Any = FAULTS["after-exit"].learner(s.learner).auxiliary.parts[0]

    @jit
    def drawn() -> Any:
        def of(part: Any) -> Any:
            samples = part.draw(part.rows(s.played), jnp.array([0]), jax.random.key(0), 64)
            score = part.score(of_seat(s.param_sets, 0), samples, s.played)
            return samples, part.tally(samples)["absent"], score

        return of(healthy), of(faulty)

    (_, none, score), (found, absent, score_2) = drawn()
    left = np.asarray(found.left)
    # A player that is not there stands on no cell of its own plane.
    nowhere = ~np.asarray(found.samples.view.planes[..., 0]).any(axis=(2, 3))
    np.testing.assert_array_equal(left, nowhere)
    assert (int(none), int(absent)) == (0, left.sum())
    assert 0 < left.sum() < left.size
    assert (found.samples.joint[..., 0][left] == STAY).all()
    for name in ("count", "hit", "hit_top3"):
        np.testing.assert_array_equal(score[name], score_2[name])


def test_games_that_a_seat_is_not_in_teach_it_nothing() -> None:
    """Seat 0 is gone from four games: other boards and actions there change the others' minds."""
    s = setup()
    state = s.played.state
    games = jnp.arange(PPO.games) < 4
    state = replace(state, present=state.present.at[:, :4, 0].set(False))
    played = replace(s.played, state=state, done=jnp.where(games, False, s.played.done))
    prey = jnp.where(games[:, None], (state.prey + 4) % 9, state.prey)
    seats = jnp.where(games[:, None], (state.seats + 2) % 9, state.seats)
    joint = jnp.where(games[:, None], (played.joint + 1) % 7, played.joint)
    other = replace(played, state=replace(state, prey=prey, seats=seats), joint=joint)
    param_sets, _, lessons, _ = jax.device_get(s.learn(played=played))
    minds_2, _, lessons_2, _ = jax.device_get(s.learn(played=other))
    for name in LEARNED:
        one, two = getattr(param_sets, name), getattr(minds_2, name)
        assert same(of_seat(one, 0), of_seat(two, 0)), name
        for seat in (1, 2):
            assert not same(of_seat(one, seat), of_seat(two, seat)), name
    assert same(of_seat(lessons, 0), of_seat(lessons_2, 0))
    assert not same(of_seat(lessons, 1), of_seat(lessons_2, 1))


def third(leaf: Any) -> Any:
    """A little for the third seat, nothing for the others."""
    shape = (3,) + (1,) * (leaf.ndim - 1)
    return np.array([0.0, 0.0, 0.1], np.float32).reshape(shape)


def test_minds_are_each_their_own() -> None:
    s = setup()
    other = jax.tree.map(lambda leaf: np.asarray(leaf) + third(leaf), s.param_sets)
    param_sets, _, lessons, metrics = plainly_learned()
    minds_2, _, lessons_2, metrics_2 = jax.device_get(s.learn(param_sets=other))
    for seat in (0, 1):
        assert same(of_seat(param_sets, seat), of_seat(minds_2, seat))
        assert same(of_seat(lessons, seat), of_seat(lessons_2, seat))
        assert same(of_seat(metrics, seat), of_seat(metrics_2, seat))
    for name in LEARNED:
        start, end = getattr(param_sets, name), getattr(minds_2, name)
        moved = jax.tree.map(lambda a, b: np.abs(a[2] + 0.1 - b[2]).max(), start, end)
        assert max(jax.tree.leaves(moved)) > 1e-4, name  # it learns otherwise, not only elsewhere
    assert not same(of_seat(lessons, 2), of_seat(lessons_2, 2))


def changed_fields(param_sets: Any) -> set[str]:
    """What differs from the minds before."""
    fields = ("policy", *LEARNED)
    return {
        name
        for name in fields
        if not same(getattr(param_sets, name), getattr(setup().param_sets, name))
    }


def test_parts_learn_only_their_own() -> None:
    """For the opponents, see the test that follows; the policy learns from the lessons."""
    param_sets, _, _, metrics = plainly_learned()
    assert changed_fields(param_sets) == set(LEARNED)
    assert changed_fields(fitted_minds()) == {"world"}
    for name, value in metrics.items():
        assert np.isfinite(value).all(), name


def test_fitting_waits_for_its_turn() -> None:
    s = setup()
    part: Any = next(part for part in s.learner.auxiliary.parts if part.name == "opponent")

    def found(every: int) -> Any:
        now = replace(part, config=replace(part.config, every=every))
        auxiliary = s.auxiliary_state.parts["opponent"]
        return jit(lambda n: now.learn(s.param_sets, auxiliary, s.played, n, jax.random.key(0)))

    for every, due in ((2, [True, False, True, False]), (0, [False] * 4)):
        update = found(every)
        for updates, fits in enumerate(due):
            param_sets, auxiliary, metrics = update(updates)
            assert changed_fields(param_sets) == ({"opponents"} if fits else set())
            assert same(auxiliary.optimiser, s.auxiliary_state.parts["opponent"].optimiser) != fits
            assert metrics["opponent/fill"].min() > 0  # it keeps what it sees all the same
            # Counted in the state that it goes on with, which has none before.
            assert metrics["opponent/fits"].tolist() == [OPPONENT.fits * fits] * 3


# Goals that hindsight selects, among those the policy learns with.


def test_parts_may_settle() -> None:
    """The step size falls to zero over all rounds of the run, or stays."""
    part = replace(OPPONENT, every=2, fits=2, learning_rate=0.6, anneal=True)
    learner = setup().learner

    def optimiser_of(config: AuxiliaryConfig, updates: int) -> Any:
        return replace(learner.auxiliary.parts[0], config=config, updates=updates).optimiser

    def steps(config: AuxiliaryConfig) -> list[float]:
        optimiser = optimiser_of(config, updates=5)  # three rounds, of two steps each
        state, found = optimiser.init(jnp.zeros(())), []
        for _ in range(7):
            change, state = optimiser.update(jnp.ones(()), state)
            found.append(-float(change))
        return found

    assert steps(part) == pytest.approx([0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0], abs=1e-4)
    assert steps(replace(part, anneal=False)) == pytest.approx([0.6] * 7, abs=1e-4)
    # Who goes on with a run that has ended does so with its state, and the whole step size.
    state = optimiser_of(part, updates=5).init(jnp.zeros(()))
    change, _ = optimiser_of(replace(part, anneal=False), 5).update(jnp.ones(()), state)
    assert float(change) == pytest.approx(-0.6, abs=1e-4)
    online = [part for part in learner.auxiliary.parts if isinstance(part, Settling)]
    assert [part.updates for part in online] == [learner.updates] * 3
    assert learner.updates > 1


def test_mixing_falls_to_zero() -> None:
    s = setup()
    batch = jax.device_get(s.batch)
    assert GOAL.mixing_until * s.learner.updates == 4
    shares = []
    for updates in (0, 2, 4, 5):
        _, _, lessons, _ = jax.device_get(s.learn(updates=updates))
        told = jax.tree.map(lambda leaf: leaf[:, :REAL], lessons)
        other = (told.inferred != batch.inferred).any(axis=-1)
        shares.append(float(other.mean()))
        for name in ("log_prob", "value"):
            plain, mixed = getattr(batch, name), getattr(told, name)
            assert not (plain != mixed)[~other].any() or updates < 4
            np.testing.assert_allclose(
                np.where(other, plain, mixed), plain, rtol=1e-4, atol=1e-5
            )  # as they were where nothing was told
            assert (plain != mixed)[other].any() == (shares[-1] > 0)
        judged = jax.vmap(s.learner.actor.policy_and_value, in_axes=(None, 0, 0))
        logits, value = jit(jax.vmap(judged))(s.param_sets.policy, told.view, told.inferred)
        log_prob = np.take_along_axis(np.asarray(logits), np.asarray(told.action)[..., None], -1)
        np.testing.assert_allclose(log_prob[..., 0], told.log_prob, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(value, told.value, rtol=1e-4, atol=1e-5)
    assert 0.1 < shares[0] < GOAL.mixing
    assert 0.3 * shares[0] < shares[1] < 0.75 * shares[0]
    assert shares[2:] == [0, 0]
