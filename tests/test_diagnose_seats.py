"""`hopplus diagnose seats`: every fault is named, and a healthy run is called healthy."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hopplus.config import SearchConfig
from hopplus.diagnosis.faults import FAULTS
from hopplus.diagnosis.finding import HEALTHY, Check, conclude, to_json
from hopplus.diagnosis.pipeline import buffer_check, counter_checks, players_check
from hopplus.diagnosis.seats import ablation
from hopplus.diagnosis.seats import checks as seats_checks
from hopplus.diagnosis.seats.ablation import check_ablation, list_rungs, run_ablation
from hopplus.diagnosis.seats.checks import (
    ILLNESSES,
    SeatsDiagnosis,
    check_models,
    check_order,
    diagnose_seats,
)
from hopplus.diagnosis.seats.fairness import Placement, compare_placement
from hopplus.diagnosis.seats.ordering import Ordering, compare_runs
from hopplus.diagnosis.step_audit import BufferAudit
from hopplus.diagnosis.subject import Subject, make_laboratory, return_curves
from hopplus.diagnosis.value_loss.diagnosis import diagnose_value_loss
from hopplus.games.game import Game
from hopplus.presets import PRESETS
from tiny_diagnosis import (
    CONFIG,
    GAME,
    LANES,
    MODELS,
    NONE,
    SETTINGS,
    faulty,
    seats_diagnosis,
    silent,
)


def random_placement(game: Game, player: str, *given: Any) -> Placement:
    return compare_placement(game, "random", *given)


SEATS = [name for name, fault in FAULTS.items() if fault.seats]


def test_a_seat_that_is_given_no_goals_is_named() -> None:
    """By what was counted, of two updates and two seeds."""
    even: Any = {"real/goals": [[5, 6, 7], [5, 6, 8]], "real/steps": [[5, 6, 7], [5, 6, 9]]}
    steps: Any = {"imagined/steps": [[9, 9, 9], [9, 9, 9]]}
    fine = [even | steps | {"imagined/goals": [[9, 9, 8], [9, 9, 9]]}] * 2
    lacking = [even | steps | {"imagined/goals": [[9, 9, 0], [9, 9, 0]]}] * 2
    none = [even | steps | {"imagined/goals": [[0, 0, 0], [0, 0, 0]]}] * 2  # of nobody: no seat's
    for records, name in ((fine, "healthy"), (lacking, "goal-mismatch"), (none, "healthy")):
        checks = counter_checks(records)
        assert [check.title for check in checks] == ["Goals: real steps", "Goals: imagined steps"]
        assert checks[0].says.endswith("came with a goal: 20, 24, 30, of 20, 24, 32.")
        assert conclude(checks, ILLNESSES).name == name
    assert counter_checks([{}]) == []


def test_samples_of_players_that_had_left_come_with_the_recall() -> None:
    """Of two updates, one seed, two seats and one other each."""
    record: Any = {
        "opponent/absent": [[3, 0]],
        "opponent/count": [[[[4, 6, 0]], [[1, 4, 0]]]],
        "opponent/hit": [[[[4, 0, 0]], [[1, 2, 0]]]],
    }
    (check,) = counter_checks([record, record])
    assert check.fault == "steps-after-leaving"
    assert "models of each seat: 6, 0." in check.says
    assert check.says.endswith("of players that were there: 1.00, 0.20, 0.00.")
    (fine,) = counter_checks([{"opponent/absent": [[0, 0]]}])
    assert fine.fault is None


# Faults that are built in.


def test_there_are_as_many_faults_as_promised() -> None:
    assert len(FAULTS) == 12
    for fault in FAULTS.values():
        assert fault.seats or fault.value_loss
        assert fault.seats is None or fault.seats in ILLNESSES


def test_a_healthy_run_is_called_healthy() -> None:
    found = seats_diagnosis(None)
    assert found.verdict.healthy
    assert [check.title for check in found.checks if check.fault] == []
    assert found.ladder == {}


@pytest.mark.parametrize("name", SEATS)
def test_each_fault_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Games are tried with random players alone here, which are quicker to compile."""
    monkeypatch.setattr(seats_checks, "compare_placement", random_placement)
    found = seats_diagnosis(name)
    assert found.verdict.name == FAULTS[name].seats
    assert found.verdict.also == ()  # nothing else is suspected
    assert found.verdict.evidence in [check.says for check in found.checks]


def test_updates_that_are_left_out_are_counted() -> None:
    (found,) = [
        check for check in seats_diagnosis("half-updates").checks if check.title == "Updates"
    ]
    assert found.figures == {"counts": [10, 10, 6], "expected": 10}  # of updates 0 to 4, the even


def test_models_that_are_not_updated_are_counted() -> None:
    """By seat, in the audit and in the log."""
    found = seats_diagnosis("one-seat-models")
    (check,) = [check for check in found.checks if check.title == "Updates: opponent"]
    expected = 5 * MODELS.opponent.fits  # of updates 0 to 4
    assert check.figures == {"part": "opponent", "counts": [0, expected, 0], "expected": expected}
    last = faulty("one-seat-models").records[-1]
    assert last["opponent/fits"] == [[0, expected, 0]] * LANES


def test_samples_of_players_that_have_left_are_told() -> None:
    """Of every seat's models; none where nothing is wrong with them."""
    for name, wrong in (("after-exit", True), ("one-seat-models", False)):
        (check,) = [
            check for check in seats_diagnosis(name).checks if check.title == "Samples: opponent"
        ]
        assert [count > 0 for count in check.figures["absent"]] == [wrong] * 3


@pytest.mark.parametrize("name", [n for n in SEATS if FAULTS[n].value_loss])
def test_wrong_data_is_named_by_the_value_loss_too(name: str) -> None:
    found = diagnose_value_loss(faulty(name), 1, silent)
    assert found.verdict.name == FAULTS[name].value_loss


def test_different_players_are_named() -> None:
    """Without training anybody."""
    config = replace(CONFIG, seats="learn,learn,stag")
    found = players_check(subject_of(config))
    assert found.fault == "different-players"
    assert "(seat 0: learn, seat 1: learn, seat 2: stag)" in found.says
    assert found.figures["differing"]["name"][:2] == ["learn", "learn"]
    same = players_check(subject_of(CONFIG))
    assert same.fault is None
    assert {"kind", "name", "net.hidden", "shape"} <= set(same.figures["compared"])


def subject_of(config: Any) -> Subject:
    """One that has not learned anything."""
    learning: Any = None
    laboratory = make_laboratory(config, NONE, 1)
    return Subject("new", config, laboratory, learning, [])


def test_a_diagnosis_can_be_written_as_json() -> None:
    told = to_json(seats_diagnosis("first-seat"))
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["verdict"] == "wrong-seat-data"
    assert told["area"] == "data"
    titles = [check["title"] for check in told["checks"]]
    assert titles[0] == "Is it real?"
    for part in ("The game: rules", "The log", "Updates", "Step size"):
        assert part in titles
    assert len(told["returns"]["seats"]) == 3


# Is it real?


def runs(gap: float, count: int = 8, seats: int = 3) -> Ordering:
    dice = np.random.default_rng(0)
    return compare_runs(0.1 * dice.normal(size=(count, seats)) + gap * np.arange(seats))


def test_an_ordering_that_is_real() -> None:
    found = check_order(runs(0.5))
    assert found.fault == "unexplained"
    assert "Over 8 runs: seat 0: " in found.says
    assert found.figures["p_value"] < 0.01
    assert found.figures["runs_for_worth"] >= 2
    calm = check_order(runs(0.0))
    assert calm.fault is None
    assert "no sign of an ordering" in calm.says


def test_one_run_cannot_tell() -> None:
    found = check_order(runs(5.0, count=1))
    assert (found.fault, found.state) == (None, "unknown")
    assert "1 run cannot tell, whatever comes out" in found.says
    few = check_order(runs(5.0, count=2))
    assert (few.fault, few.state) == (None, "unknown")
    assert "--seeds 8" in check_order(runs(5.0, count=5, seats=2)).unknown  # five cannot tell two
    nothing = check_order(compare_runs(np.full((2, 3), np.nan)))
    assert (nothing.fault, nothing.state) == (None, "unknown")
    assert "No episode ended" in nothing.says
    assert "2 runs cannot tell" in few.says


@pytest.mark.parametrize("lacking", [1, 5])
def test_seeds_without_late_episodes_are_no_ordering(lacking: int) -> None:
    returns = runs(0.0).samples.copy()
    returns[:lacking] = np.nan
    found = check_order(compare_runs(returns))
    assert found.fault is None
    assert f"{8 - lacking} runs" in found.says


def test_curves_have_gaps_where_no_episode_ended() -> None:
    records = [
        {"episodes": [2, 0], "return_sum": [[4.0, 2.0], [0.0, 0.0]]},
        {"episodes": [1, 4], "return_sum": [[1.0, 2.0], [4.0, 8.0]]},
    ]
    found = return_curves(records)
    np.testing.assert_allclose(found[0, 0], [2.0, 1.0])
    assert np.isnan(found[0, 1]).all()
    np.testing.assert_allclose(found[1], [[1.0, 2.0], [1.0, 2.0]])


# Models.


def logged(**values: Any) -> Any:
    """Evidence of a subject that has logged these in its last update, of five."""
    early = {name: np.zeros_like(value).tolist() for name, value in values.items()}
    late = {name: np.asarray(value).tolist() for name, value in values.items()}
    return SimpleNamespace(subject=SimpleNamespace(records=[early] * 4 + [late]))


def test_a_model_that_is_worse_for_one_seat() -> None:
    dice = np.random.default_rng(0)
    even = 0.2 + 0.01 * dice.normal(size=(8, 3))
    worse = even + 0.1 * (np.arange(3) == 2)
    found = {
        check.title: check.fault
        for check in check_models(
            logged(**{"world/error": worse, "opponent/accuracy": even, "explained": worse})
        )
    }
    assert found == {
        "Models: world/error": "models-differ",
        "Models: opponent/accuracy": None,
        "Models: explained": None,  # an effect, and no cause
    }
    alone = logged(**{"world/error": worse[:, :1], "value_loss": worse})
    assert list(check_models(alone)) == []
    for few in (worse[:2], np.full((8, 3), np.nan)):
        (one,) = check_models(logged(**{"world/error": few}))
        assert (one.state, one.decides) == ("unknown", False)


def test_buffers_are_told() -> None:
    found = buffer_check(BufferAudit("world", [1200, 900], [3.25, float("nan")]))
    assert found.fault is None
    assert "1,200, 900 steps are kept, 3.2, - updates old" in found.says


# Where does it begin?

FIRST = runs(0.5)
CALM, SURE = runs(0.0), compare_runs(FIRST.samples + 0.01)
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
        learner = SimpleNamespace(game=None)
        subject: Any = SimpleNamespace(name="made up", records=[record], learner=learner)
        return diagnose_seats(subject, NONE, replace(SETTINGS, ablate=ablate), silent)

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
