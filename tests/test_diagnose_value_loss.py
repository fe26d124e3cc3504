"""`hopplus diagnose value-loss`: every fault is named, and a healthy run is called healthy."""

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conftest import share_programs
from hopplus.cli import main
from hopplus.cli.diagnose import common
from hopplus.cli.diagnose.common import finish
from hopplus.cli.diagnose.value_loss import draw_sections
from hopplus.config import ImagineConfig, StagHuntConfig
from hopplus.diagnosis.faults import FAULTS, Fault
from hopplus.diagnosis.finding import Check
from hopplus.diagnosis.subject import (
    Laboratory,
    Subject,
    make_laboratory,
    replica_of,
    restore_subject,
)
from hopplus.diagnosis.value_loss.courses import (
    CONDITIONS,
    list_courses,
    run_courses,
)
from hopplus.diagnosis.value_loss.courses import PPO as PLAIN
from hopplus.diagnosis.value_loss.diagnosis import (
    ILLNESSES,
    ValueLossDiagnosis,
    diagnose_value_loss,
)
from hopplus.diagnosis.value_loss.experiments import AS_IT_IS, REAL_ONLY
from hopplus.runs.folder import open_run
from hopplus.types import View
from tiny_diagnosis import (
    CONFIG,
    GAME,
    GAME_OPTIONS,
    LANES,
    NONE,
    PPO,
    fault_of,
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


def test_courses_begin_with_the_first_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition is trained with the subject's own seeds; without what is imagined in the one
    that has real steps only, and without models in that of plain PPO."""
    config = replace(IMAGINING, imagine=replace(IMAGINING.imagine, critic_on="both"))
    healthy = imagining()
    lab = Laboratory(healthy.laboratory.learner, config, LANES, healthy.laboratory.make)
    lab._update = healthy.laboratory._update
    config = replace(config, steps=3 * PPO.steps, seed=7)
    lab.config = config
    begun_with = []

    def first(seed: int) -> Any:
        begun_with.append(seed)
        return healthy.learning

    monkeypatch.setattr(lab, "first", first)
    subject = replace(healthy.subject(lab), config=config)
    notes: list[str] = []
    found = {one.name: one for one in run_courses(subject, notes.append)}
    assert list(found) == list_courses(config) == [*CONDITIONS, PLAIN]
    assert begun_with == [7, 7, 7]  # as it is, it was trained already
    assert len(notes) == 4 * 3
    assert (
        found[AS_IT_IS].real_loss
        == np.mean([record["value_loss"] for record in subject.records], axis=-1).tolist()
    )
    for name, one in found.items():
        assert np.shape(one.loss) == np.shape(one.real_loss) == (3, LANES), name
        assert len(one.returns) == LANES
        assert np.isfinite(one.loss).all(), name
    assert found[REAL_ONLY].imagined_loss == found[PLAIN].imagined_loss == []
    # Values of the healthy program learn from real steps; then all of the loss is of those.
    critic = found["critic on real steps only"]
    assert critic.loss == critic.real_loss
    # The same play to begin with, so the first losses differ by what is changed alone.
    np.testing.assert_allclose(found[REAL_ONLY].real_loss[0], critic.real_loss[0], rtol=0.05)
    assert len({str(found[name].real_loss[-1]) for name in CONDITIONS[1:]}) == 3
    steady = replace(config, imagine=replace(config.imagine, critic_on="real"))
    assert "critic on real steps only" not in list_courses(steady)


# Faults that are built in; the two of real steps are in test_diagnose_seats.py and, with imagined
# ones behind, in test_audit.py.


def test_faults_are_known_illnesses() -> None:
    named = {fault.value_loss for fault in FAULTS.values() if fault.value_loss}
    assert named == {
        "wrong-seat-data",
        "wrong-reward",
        "steps-after-leaving",
        "world-rewards",
        "goal-mismatch",
    }
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
    assert (found.seen.world.outside, found.seen.world.predicted) == (
        0.0,
        found.seen.world.observed,
    )
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


def test_experiments_begin_at_one_checkpoint_and_differ_in_one_thing() -> None:
    found = {trial.name: trial for trial in diagnosis().seen.experiments}
    assert list(found) == [
        "as it is",
        "real steps only",
        "imagined rewards zero",
        "critic on both",
    ]
    for one in found.values():
        assert len(one.value_loss) == len(one.explained) == len(one.returns) == 2
        # What the first update is made from is not changed by it.
        assert one.explained[0] == pytest.approx(found["as it is"].explained[0])
        assert one.returns[0] == pytest.approx(found["as it is"].returns[0])
    assert len({trial.explained[1] for trial in found.values()}) == 4
    assert [one.imagines for one in found.values()] == [True, False, True, True]
    # Values learn from imagined steps in one of them alone.
    assert [any(one.imagined_loss) for one in found.values()] == [False, False, False, True]


def test_switches_reach_imagined_steps_alone() -> None:
    start = imagining()
    lab = start.laboratory
    changes: list[dict[str, Any]] = [{}, {"imagine": False}, {"zero": True}, {"critic": True}]
    switch = lab.switches(changes)
    lesson = lab.update(start.learning, switch)[2]
    batch = jax.device_get(lesson.batch)
    real = ~batch.imagined[0, 0]
    for replica in range(1, LANES):
        for name in ("present", "valued", "reward", "returns", "action"):
            part = getattr(batch, name)
            np.testing.assert_array_equal(part[replica][:, real], part[0][:, real])
    imagined_batch = batch.imagined[0, 0]
    assert batch.present[0][:, imagined_batch].all()
    assert not batch.present[1][:, imagined_batch].any()
    assert batch.reward[0][:, imagined_batch].any()
    assert not batch.reward[2][:, imagined_batch].any()
    np.testing.assert_array_equal(
        batch.valued[:, :, imagined_batch].all(axis=(1, 2)), [False, False, False, True]
    )
    assert not batch.valued[:3][:, :, imagined_batch].any()


# The page and the command.


def test_everything_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = diagnosis()
    page = tmp_path / "value-loss.html"
    finish("value-loss", page, found, lambda: draw_sections(found), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "healthy"
    assert list(told["sources"]) == ["real", "imagined"]
    assert [row["name"] for row in told["experiments"]] == [
        one.name for one in found.seen.experiments
    ]
    text = page.read_text(encoding="utf-8")
    for words in ("critic on both", "imagined, seat 2", "not learned", "data:image/svg+xml"):
        assert words in text


def made_by_training(runs: Path, name: str, *more: str) -> Path:
    """A run of 20 updates on the tiny game, so that episodes end in its last fifth."""
    size = "--net.hidden 8 --ppo.games 16 --ppo.unroll 8 --ppo.minibatches 2 --ppo.epochs 1"
    options = [*GAME_OPTIONS, *size.split(), "--steps", "2560", *more]
    with pytest.MonkeyPatch.context() as patch:
        share_programs(patch)
        assert main(["train", "ppo", *options, "--runs", str(runs), "--name", name]) == 0
    return runs / name


@pytest.mark.parametrize(
    ("options", "seats"),
    [(["--seeds", "1"], [0, 1, 2]), (["--seeds", "5", "--seats", "stag,learn,hare"], [1])],
    ids=["fewer-seeds-than-lanes", "more-seeds-than-lanes"],
)
def test_a_run(
    options: list[str], seats: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many seeds as it has, and as many seats as learn."""
    run = made_by_training(tmp_path, "a", *options)
    capsys.readouterr()
    assert main(["diagnose", "value-loss", str(run), "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seats"] == [[seat] for seat in seats]
    assert told["page"] == str(run / "diagnosis" / "value-loss.html")
    page = Path(told["page"]).read_text(encoding="utf-8")
    shown = [f"real, seat {seat}" in page for seat in range(3)]
    assert shown == [seat in seats for seat in range(3)]


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_a_log_of_any_number_of_seeds_is_drawn(seeds: int, tmp_path: Path) -> None:
    """Of a run that imagines; the replicas of a diagnosis are not its seeds."""
    subject = imagining().subject()
    records = [
        {
            name: (value * seeds)[:seeds] if isinstance(value, list) else value
            for name, value in record.items()
        }
        for record in subject.records
    ]
    found = diagnose_value_loss(replace(subject, records=records), 1, silent)
    assert [len(record["value_loss"]) for record in found.seen.subject.records] == [seeds] * 3
    titles = [section.title for section in draw_sections(found)]
    assert "Experiments from the same checkpoint" in titles


def test_what_a_killed_run_logged_after_its_checkpoint_is_forgotten(tmp_path: Path) -> None:
    run = made_by_training(tmp_path, "a", "--seeds", "1")
    log = run / "metrics.jsonl"
    last = json.loads(log.read_text().splitlines()[-1])
    with log.open("a") as file:
        file.write(json.dumps({**last, "update": 21}) + "\n")
    records = restore_subject(open_run(run), 1).records
    assert [record["update"] for record in records] == list(range(1, 21))


def test_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A small one without imagination; its step size does not fall."""
    config = replace(CONFIG, game=StagHuntConfig())
    made: list[Any] = []

    def noted(config: Any, *more: Any) -> Laboratory:
        made.append(config)
        return make_laboratory(config, *more)

    monkeypatch.setattr(common, "make_laboratory", noted)
    monkeypatch.setattr(common, "PRESETS", {"ppo": config})
    options = ["--quick", "--steps", "640", "--out", str(tmp_path)]
    assert main(["diagnose", "value-loss", "ppo", *GAME_OPTIONS, *options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Over 5 updates, value loss" in out
    assert "Verdict: " in out
    assert made == [replace(CONFIG, ppo=replace(PPO, anneal=False))]
    told = json.loads((tmp_path / "value-loss.json").read_text())
    assert told["experiments"] == []
    assert told["world"] is None
    assert (
        fault_of([Check(c["title"], c["says"], c["fault"]) for c in told["checks"]], "Over time")
        is None
    )
