"""`hopplus diagnose seats`: every fault is named, and a healthy run is called healthy."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hopplus.diagnosis.faults import FAULTS
from hopplus.diagnosis.finding import conclude, to_json
from hopplus.diagnosis.pipeline import buffer_check, counter_checks, players_check
from hopplus.diagnosis.seats import checks as seats_checks
from hopplus.diagnosis.seats.checks import (
    ILLNESSES,
    check_models,
    check_order,
)
from hopplus.diagnosis.seats.fairness import Placement, compare_placement
from hopplus.diagnosis.seats.ordering import Ordering, compare_runs
from hopplus.diagnosis.step_audit import BufferAudit
from hopplus.diagnosis.subject import Subject, make_laboratory, return_curves
from hopplus.diagnosis.value_loss.diagnosis import diagnose_value_loss
from hopplus.games.game import Game
from tiny_diagnosis import (
    CONFIG,
    LANES,
    MODELS,
    NONE,
    faulty,
    seats_diagnosis,
    silent,
)


def random_placement(game: Game, player: str, *given: Any) -> Placement:
    return compare_placement(game, "random", *given)


# These take longer runs to show, or all parts; `python -m benchmarks.faults` has them.
LATE = ("models-differ", "part-orders", "unexplained", "goal-mismatch")
SEATS = [name for name, fault in FAULTS.items() if fault.seats and fault.seats not in LATE]


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
    assert len(FAULTS) == 26
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
    for part in ("The game: rules", "The log", "Updates", "Learning rate"):
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
    hardly = 1.0 + 0.1 * even + 0.02 * (np.arange(3) == 2)  # sure, and of no account
    assert [one.fault for one in check_models(logged(**{"opponent/accuracy": hardly}))] == [None]
    assert compare_runs(hardly).p_value < 0.001
    found = {
        check.title: check.fault
        for check in check_models(
            logged(
                **{
                    "world/error": worse,
                    "opponent/accuracy": even,
                    "opponent/fill": worse,
                    "explained": worse,
                }
            )
        )
    }
    assert found == {
        "Models: world/error": "models-differ",
        "Models: opponent/accuracy": None,
        "Models: opponent/fill": None,  # who stays longer has more to learn from
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
