"""With which part of a preset an ordering of seats begins."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hopplus.config import SearchConfig
from hopplus.diagnosis.faults import FAULTS
from hopplus.diagnosis.finding import HEALTHY, Check, conclude
from hopplus.diagnosis.seats import ablation
from hopplus.diagnosis.seats import checks as seats_checks
from hopplus.diagnosis.seats.ablation import check_ablation, list_rungs, run_ablation
from hopplus.diagnosis.seats.checks import (
    ILLNESSES,
    SeatsDiagnosis,
    check_order,
    diagnose_seats,
)
from hopplus.diagnosis.seats.ordering import Ordering, compare_runs
from hopplus.diagnosis.subject import make_laboratory
from hopplus.presets import PRESETS
from test_diagnose_seats import runs
from tiny_diagnosis import (
    CONFIG,
    GAME,
    NONE,
    SETTINGS,
    silent,
)

FIRST = runs(0.5)
CALM, SURE = runs(0.0), compare_runs(FIRST.samples + 0.01)
BACKWARDS = compare_runs(FIRST.samples[:, ::-1])
AGAIN = "as it is, again"


def test_an_ordering_that_begins_with_a_part() -> None:
    found = check_ablation(FIRST, {AGAIN: SURE, "without imagination": SURE, "plain PPO": CALM})
    assert found.fault == "part-orders"
    assert found.figures["gone"] == "plain PPO"
    checks = [check_order(FIRST), found]
    assert conclude(checks, ILLNESSES).name == "part-orders"
    assert conclude(checks, ILLNESSES).also == ("unexplained",)


def test_an_ordering_that_nothing_explains() -> None:
    found = check_ablation(FIRST, {AGAIN: SURE, "plain PPO": SURE})
    assert found.fault is None
    assert "it is there whatever is taken away" in found.says
    checks = [check_order(FIRST), found]
    assert conclude(checks, ILLNESSES).name == "unexplained"
    assert check_ablation(FIRST, {AGAIN: SURE}).fault is None


def test_an_ordering_that_does_not_come_again() -> None:
    found = check_ablation(FIRST, {AGAIN: CALM, "plain PPO": CALM})
    assert found.fault is None
    assert "do not repeat the ordering" in found.says
    assert found.state == "unknown"
    nothing = compare_runs(np.full((5, 3), np.nan))
    assert check_ablation(FIRST, {AGAIN: nothing, "plain PPO": SURE}).state == "unknown"
    assert check_ablation(FIRST, {AGAIN: SURE, "plain PPO": nothing}).state == "fine"
    backwards = compare_runs(FIRST.samples[:, ::-1])
    assert "do not repeat" in check_ablation(FIRST, {AGAIN: backwards}).says


def test_known_causes_stand_before_an_ordering() -> None:
    checks = [check_order(runs(0.5)), Check("The log", "wrong", "wrong-log")]
    assert conclude(checks, ILLNESSES).name == "wrong-log"


def test_what_is_taken_away() -> None:
    full = list_rungs(PRESETS["hop-plus"], False)
    assert {name: rung.parts for name, rung in full.items()} == {
        AGAIN: ("opponent", "goal", "world", "imagination"),
        "without imagination": ("opponent", "goal"),
        "plain PPO": (),
        "plain PPO, shared parameters": (),
    }
    assert full["plain PPO, shared parameters"].ppo.parameters == "shared"
    assert list(list_rungs(PRESETS["hop-plus"], True)) == [AGAIN, "plain PPO"]
    search = list_rungs(PRESETS["direct-om"], False)
    assert list(search)[:3] == [AGAIN, "without search", "plain PPO"]
    assert search["without search"].parts == ("opponent",)
    assert [bool(rung.search.simulations) for rung in search.values()] == [True] + 3 * [False]
    shared = list_rungs(PRESETS["ppo-shared"], False)
    assert shared["plain PPO, independent parameters"].ppo.parameters == "independent"


def test_parts_that_are_taken_away_begin_from_nothing() -> None:
    config = PRESETS["hop-plus"]
    config = replace(config, world=replace(config.world, from_run="runs/world"))
    full = list_rungs(config, False)
    assert full[AGAIN].world.from_run == "runs/world"
    assert full["without imagination"].world.from_run is None


@pytest.mark.parametrize("search", [SearchConfig(), SearchConfig(simulations=0)], ids=["none", "0"])
def test_nothing_can_be_taken_from_plain_ppo(search: SearchConfig) -> None:
    config = replace(CONFIG, search=search)
    assert list(list_rungs(config, False)) == [AGAIN, "plain PPO, shared parameters"]
    assert list(list_rungs(config, True)) == [AGAIN]


RECORDS = [{"episodes": [1] * 5, "return_sum": [[0.0, 0.0, 0.0]] * 5}]


def climbing(config: Any, replicas: int, make: Any) -> Any:
    laboratory = SimpleNamespace(replicas=replicas, make=make)
    return SimpleNamespace(config=config, laboratory=laboratory, records=RECORDS)


def test_short_runs_are_made_of_each_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fresh seeds; nothing is trained here."""
    trained: list[tuple[Any, ...]] = []

    def train_subject(name: str, laboratory: Any, seed: int, on_step: Any) -> Any:
        trained.append((*laboratory, seed))
        return SimpleNamespace(records=RECORDS)

    monkeypatch.setattr(
        ablation, "build_laboratory", lambda config, make, replicas: (config.steps, make, replicas)
    )
    monkeypatch.setattr(ablation, "train_subject", train_subject)
    config = replace(PRESETS["hop-plus"], game=GAME, seed=7)
    ladder = run_ablation(climbing(config, 2, "make"), NONE, 999, False, silent)
    assert list(ladder) == list(list_rungs(config, False))
    assert all(found.p_value == 1.0 for found in ladder.values())
    # One run or two could not tell.
    assert trained == [(999, "make", 5, 7 + 1000 * number) for number in (1, 2, 3, 4)]
    # A fault of sets of their own cannot be built in where all share one.
    own = run_ablation(climbing(config, 2, "make"), replace(NONE, own=True), 999, False, silent)
    assert "plain PPO, shared parameters" not in own
    assert len(own) == 3


def test_a_fault_of_imagination_is_no_fault_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are taken away from a run with such a fault as from any other."""
    monkeypatch.setattr(ablation, "train_subject", lambda *given: SimpleNamespace(records=RECORDS))
    config = replace(PRESETS["hop-plus"], game=GAME)
    for name in ("loud-world", "zero-goals", "zero-goals-one-seat"):
        fault = FAULTS[name]
        subject = climbing(config, 5, make_laboratory(config, fault, 5).make)
        # One of one seat cannot be built in where all share their parameters.
        assert len(run_ablation(subject, fault, 999, False, silent)) == (3 if fault.own else 4)


def made_up(record: Any) -> Any:
    learner, config = SimpleNamespace(game=None), SimpleNamespace(steps=1000)
    return SimpleNamespace(name="made up", records=[record], learner=learner, config=config)


@pytest.mark.parametrize(
    ("steps", "again", "verdict"),
    [
        (1000, BACKWARDS, HEALTHY),
        (999, BACKWARDS, "unexplained"),  # it might have come later
        (1000, CALM, "unexplained"),  # too strong for that, all runs together
        (1000, SURE, "unexplained"),
    ],
)
def test_an_ordering_that_fresh_runs_as_long_do_not_repeat_was_chance(
    steps: int, again: Ordering, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = (seats_checks.check_returns, seats_checks.check_parts)
    monkeypatch.setattr("hopplus.diagnosis.seats.checks.CHECKS", kept)
    monkeypatch.setattr(seats_checks, "run_ablation", lambda *given: {AGAIN: again})
    record = {"episodes": [1] * len(FIRST.samples), "return_sum": FIRST.samples.tolist()}
    settings = replace(SETTINGS, ablate=True, ablation_steps=steps)
    found = diagnose_seats(made_up(record), NONE, settings, silent)
    assert found.verdict.name == verdict
    assert ("it was chance" in found.checks[0].says) == (verdict == HEALTHY)


@pytest.mark.parametrize("ablate", [True, False])
def test_parts_are_taken_away_only_to_explain(
    ablate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the returns and the ladder is left out here."""
    kept = (seats_checks.check_returns, seats_checks.check_parts)
    monkeypatch.setattr("hopplus.diagnosis.seats.checks.CHECKS", kept)
    monkeypatch.setattr(
        seats_checks, "run_ablation", lambda *given: {AGAIN: SURE, "plain PPO": CALM}
    )

    def of(returns: np.ndarray) -> SeatsDiagnosis:
        record = {"episodes": [1] * len(returns), "return_sum": returns.tolist()}
        made: Any = made_up(record)
        return diagnose_seats(made, NONE, replace(SETTINGS, ablate=ablate), silent)

    assert of(CALM.samples).ladder == {}
    assert of(CALM.samples).verdict.name == HEALTHY
    few = of(FIRST.samples[:2])  # which cannot tell, so nothing is to be explained
    assert few.verdict.name == "not-known"
    assert "2 runs cannot tell" in few.verdict.evidence
    assert "--seeds 5" in few.verdict.advice
    assert few.ladder == {}
    found = of(FIRST.samples)
    assert list(found.ladder) == ([AGAIN, "plain PPO"] if ablate else [])
    assert found.verdict.name == ("part-orders" if ablate else "unexplained")
