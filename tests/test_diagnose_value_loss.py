"""`hopplus diagnose value-loss`: every fault is named, and a healthy run is called healthy."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ImagineConfig
from hopplus.diagnosis.faults import FAULTS, Fault
from hopplus.diagnosis.subject import (
    Laboratory,
    Subject,
    make_laboratory,
    replica_of,
)
from hopplus.diagnosis.value_loss.diagnosis import (
    ILLNESSES,
    ValueLossDiagnosis,
    diagnose_value_loss,
)
from hopplus.types import View
from tiny_diagnosis import (
    CONFIG,
    GAME,
    LANES,
    NONE,
    PPO,
    silent,
    trained,
)
from tiny_hop_plus import CONFIG as HOP_PLUS
from tiny_hop_plus import GOAL, OPPONENT, WORLD, TrueWorld, begun

# All parts, none of which is fitted: the program is half as long then. The world is always
# imagined in, however wrong it is.
IMAGINING = replace(
    HOP_PLUS,
    ppo=replace(PPO, anneal=False),
    opponent=replace(OPPONENT, every=0),
    goal=replace(GOAL, every=0, mixing=0.0),
    world=replace(WORLD, every=0),
    imagine=ImagineConfig(buffer=PPO.steps, horizon=2, warm_up=0, gate=1.0),
)


class KnownWorld(TrueWorld):
    """The rules, but for rewards `loud` times the true ones, and boards that it is blind to."""

    loud: jax.Array
    blind: jax.Array  # [] bool

    def __call__(self, view: View, joint: jax.Array) -> Any:
        found = super().__call__(view, joint)
        planes = jnp.where(self.blind, 0.0, found.planes)
        return replace(found, reward=self.loud * found.reward, planes=planes)


@dataclass(frozen=True)
class Imagining:
    """A learner with all parts, and a few updates of it."""

    laboratory: Laboratory
    learning: Any
    records: list[Any]

    def subject(self, laboratory: Laboratory | None = None, **changes: Any) -> Subject:
        """With parts of all minds changed."""
        learning = self.learning
        param_sets = replace(learning.params[0], **changes)
        learning = replace(learning, params=(param_sets,))
        lab = laboratory or self.laboratory
        # So early nothing is explained yet; here it is, as in a run that has gone on for longer.
        later = [record | {"explained": [[0.5] * 3] * LANES} for record in self.records]
        return Subject("all", IMAGINING, lab, learning, later)

    @property
    def param_sets(self) -> Any:
        return self.learning.params[0]


@cache
def imagining() -> Imagining:
    """Minds that know the rules, have no idea of the others or of values, and infer anything."""
    laboratory = make_laboratory(IMAGINING, NONE, LANES)
    now: Any = begun(laboratory.learner)
    param_sets = now.params[0]
    nothing = jax.tree.map(jnp.zeros_like, (param_sets.opponents, param_sets.policy.value))
    param_sets = replace(
        eqx.tree_at(lambda player_params: player_params.policy.value, param_sets, nothing[1]),
        opponents=nothing[0],
        world=KnownWorld(jnp.ones(3), jnp.zeros(3, bool)),
    )
    replicas = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (LANES, *leaf.shape)),
        replace(now, params=(param_sets,), updates=None),
    )
    replicas, records = replace(replicas, updates=now.updates), []
    for _ in range(3):
        replicas, record, _ = laboratory.update(replicas, laboratory.as_it_is())
        records.append(record)
    return Imagining(laboratory, replicas, records)


def rigged(fault: Fault) -> Laboratory:
    """The healthy program, with a learner that has a fault: what is looked at beside updates is
    the fault's own."""
    healthy = imagining().laboratory
    made = Laboratory(fault.learner(healthy.learner), IMAGINING, LANES, healthy.make)
    made._update = healthy._update
    return made


@cache
def diagnosis() -> ValueLossDiagnosis:
    return diagnose_value_loss(imagining().subject(), 2, silent)


def verdict(subject: Subject) -> Any:
    return diagnose_value_loss(subject, 1, silent).verdict


# Faults that are built in; the two of real steps are in test_diagnose_seats.py and, with imagined
# ones behind, in test_audit.py.


def test_faults_are_known_illnesses() -> None:
    named = {fault.value_loss for fault in FAULTS.values() if fault.value_loss}
    assert len(named) == 14
    assert named <= set(ILLNESSES)


def test_a_healthy_run_is_called_healthy() -> None:
    found = diagnosis()
    assert found.verdict.healthy
    assert [check.title for check in found.checks if check.fault] == []
    assert all(found.seen.sources["imagined"])  # which was learned from
    assert found.seen.world is not None
    assert found.seen.world.exact == [1.0, 1.0, 1.0]
    assert found.seen.world.reward_slope == pytest.approx([1.0, 1.0, 1.0])
    assert found.seen.world.reward_offset == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    # Nobody took a stag in this update, but somebody did before.
    assert (found.seen.world.outside, found.seen.world.predicted) == (0.0, [0.0, 1.0])
    assert found.seen.world.observed == [0.0, 5.0]
    assert found.seen.opponents is not None
    assert found.seen.opponents.cross_entropy == pytest.approx(
        found.seen.opponents.uniform, rel=1e-4
    )
    assert len(found.seen.subject.records) == 3


def test_what_cannot_be_told_yet_is_not_called_healthy() -> None:
    """Three updates in, nothing is explained."""
    early = replace(imagining().subject(), records=imagining().records)
    found = verdict(early)
    assert found.name == "not-known"
    assert "too early to tell" in found.advice


def test_a_loud_world_is_named() -> None:
    found = verdict(imagining().subject(rigged(FAULTS["loud-world"])))
    assert found.name == FAULTS["loud-world"].value_loss
    assert "rewards that grow 20.00, 20.00, 20.00 times as fast as the true ones" in found.evidence


def test_goals_that_are_zero_in_imagination_are_named() -> None:
    found = verdict(imagining().subject(rigged(FAULTS["zero-goals"])))
    assert found.name == FAULTS["zero-goals"].value_loss
    assert found.also == ()
    assert "From the same memory and view, inferred goals differ by at most " in found.evidence


def test_goals_of_one_seat_that_are_zero_in_imagination_are_named() -> None:
    found = diagnose_value_loss(
        imagining().subject(rigged(FAULTS["zero-goals-one-seat"])), 1, silent
    )
    assert found.verdict.name == FAULTS["zero-goals-one-seat"].value_loss
    assert found.verdict.also == ()
    assert "It is so of seat 2 alone." in found.verdict.evidence
    assert [apart > 1e-3 for apart in found.seen.goals_apart] == [False, False, True]


def test_faults_are_in_what_is_imagined() -> None:
    """Rewards 20 times as large, and goals that are zero, of all seats or of one: one imagined
    rollout of each kind."""
    start = imagining()
    param_sets, kept = replica_of((start.param_sets, start.learning.auxiliary_state), 0)
    names = ("loud-world", "zero-goals", "zero-goals-one-seat")

    @jax.jit
    def imagined_batch(key: jax.Array) -> Any:
        given = (kept.starts, kept.observed, jnp.ones(3, bool), key)
        healthy = start.laboratory.learner
        learners = [
            healthy,
            *(FAULTS[name].learner(healthy) for name in names),
        ]
        found = [
            one.auxiliary.imagined_rollouts(param_sets, *given)
            for one in learners
            if one.auxiliary.imagined_rollouts
        ]
        counts = ("imagined/goals", "imagined/steps")
        return [
            (metrics["imagined/predicted_most"], batch.inferred, *map(metrics.get, counts))
            for batch, metrics in found
        ]

    usual, loud, zero, one = imagined_batch(jax.random.key(0))
    assert usual[0].max() > 0
    np.testing.assert_allclose(loud[0], 20 * usual[0], rtol=1e-5)
    assert jnp.abs(usual[1]).max() > 0
    np.testing.assert_allclose(loud[1], usual[1], atol=1e-5)
    assert not zero[1].any()
    assert [bool(inferred.any()) for inferred in one[1]] == [True, True, False]
    # They are counted there: of every imagined step, and of none where there are no goals.
    np.testing.assert_array_equal(usual[2], usual[3])
    assert usual[3].min() > 0
    assert not zero[2].any()
    np.testing.assert_array_equal(one[2], usual[3] * jnp.array([1, 1, 0]))
    np.testing.assert_allclose(one[1][:2], usual[1][:2], atol=1e-5)


# Illnesses that nothing has to be built in for.


@pytest.mark.parametrize(
    ("loud", "blind", "name"),
    [(4.0, False, "world-rewards"), (1.0, True, "world-immature")],
)
def test_worlds_that_are_wrong(loud: float, blind: bool, name: str) -> None:
    """Of one seat alone, which is enough."""
    one = jnp.arange(3) == 1
    world = KnownWorld(jnp.where(one, jnp.float32(loud), 1.0), one & blind)
    world = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (LANES, 3)), world)
    found = verdict(imagining().subject(world=world))
    assert found.name == name


def test_models_that_mislead() -> None:
    """They are sure that everybody stays."""
    start = imagining()
    models = eqx.tree_at(
        lambda models: models.head.bias,
        start.param_sets.opponents,
        replace_fn=lambda b: b.at[..., 4].add(9),
    )
    found = diagnose_value_loss(start.subject(opponents=models), 1, silent)
    assert found.verdict.name == "opponents-wrong"
    assert found.seen.opponents is not None
    for own, even in zip(
        found.seen.opponents.cross_entropy, found.seen.opponents.uniform, strict=True
    ):
        assert own > 2 * even
        assert np.log(2) < even < np.log(7)


def test_rewards_that_are_large() -> None:
    """Nothing is wrong with the learner; a stag is worth 60, and one hunter is enough."""
    game = replace(GAME, stag_reward=60.0, stag_hunters=1)
    ppo = replace(PPO, learning_rate=1e-2, value_clip=30.0, epochs=2)
    config = replace(CONFIG, game=game, ppo=ppo, steps=40 * PPO.steps)
    found = diagnose_value_loss(trained(config), 1, silent)
    assert found.verdict.name == "reward-scale"
    assert (found.seen.experiments, found.seen.world, found.seen.opponents) == ([], None, None)
