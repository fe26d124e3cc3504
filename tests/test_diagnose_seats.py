"""`hopplus diagnose seats`: every fault is named, and a healthy run is called healthy."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conftest import SMALL_RUN
from hopplus.bench import faults as bench
from hopplus.bench.faults import FaultBench, Trials
from hopplus.cli import diagnose_seats as diagnose_seats_command
from hopplus.cli import diagnosed, main
from hopplus.config import ConfigError, SearchConfig, StagHuntConfig
from hopplus.diagnosis import seats
from hopplus.diagnosis.audit import BufferAudit
from hopplus.diagnosis.fairness import Placement, placement
from hopplus.diagnosis.faults import FAULTS, find_fault
from hopplus.diagnosis.finding import Check, verdict_of
from hopplus.diagnosis.measures import finite
from hopplus.diagnosis.ordering import Ordering, of_runs
from hopplus.diagnosis.pipeline import buffer_check, players_check
from hopplus.diagnosis.seats import (
    HEALTHY,
    ILLNESSES,
    TOO_FEW,
    SeatsDiagnosis,
    SeatsSettings,
    climb,
    curves_of,
    diagnose_seats,
    ladder_check,
    model_checks,
    real_check,
    rungs_of,
)
from hopplus.diagnosis.subject import Subject, laboratory_of
from hopplus.diagnosis.value_loss import diagnose_value_loss
from hopplus.games.game import Game
from hopplus.presets import PRESETS
from tiny_diagnosis import (
    CONFIG,
    EPISODES,
    GAME,
    GAME_OPTIONS,
    LANES,
    NONE,
    SETTINGS,
    faulty,
    seats_diagnosis,
    silent,
    with_ppo,
)


def random_placement(game: Game, player: str, *given: Any) -> Placement:
    return placement(game, "random", *given)


SEATS = [name for name, fault in FAULTS.items() if fault.seats]


# Faults that are built in.


def test_there_are_as_many_faults_as_promised() -> None:
    assert len(FAULTS) == 8
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
    monkeypatch.setattr(seats, "placement", random_placement)
    found = seats_diagnosis(name)
    assert found.verdict.name == FAULTS[name].seats
    assert found.verdict.also == ()  # nothing else is suspected
    assert found.verdict.evidence in [check.says for check in found.checks]


def test_updates_that_are_left_out_are_counted() -> None:
    (found,) = [
        check for check in seats_diagnosis("half-updates").checks if check.title == "Updates"
    ]
    assert found.figures == {"counts": [10, 10, 6], "expected": 10}  # of updates 0 to 4, the even


@pytest.mark.parametrize("name", [n for n in SEATS if FAULTS[n].value_loss])
def test_wrong_data_is_named_by_the_value_loss_too(name: str) -> None:
    found = diagnose_value_loss(faulty(name), 1, silent)
    assert found.verdict.name == FAULTS[name].value_loss


def test_different_players_are_named() -> None:
    """Without training anybody."""
    config = replace(CONFIG, seats="learn,learn,stag")
    found = players_check(subject_of(config))
    assert found.fault == "different-players"
    assert "kind: Actor, Actor, " in found.says
    assert found.figures["differing"]["name"][:2] == ["learn", "learn"]
    same = players_check(subject_of(CONFIG))
    assert same.fault is None
    assert {"kind", "name", "net.hidden", "shape"} <= set(same.figures["compared"])


def subject_of(config: Any) -> Subject:
    """One that has not learned anything."""
    learning: Any = None
    laboratory = laboratory_of(config, NONE, 1)
    return Subject("new", config, laboratory, learning, [], laboratory.make)


def test_a_diagnosis_can_be_written_as_json() -> None:
    told = finite(seats_diagnosis("first-seat").as_json())
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
    return of_runs(0.1 * dice.normal(size=(count, seats)) + gap * np.arange(seats))


def test_an_ordering_that_is_real() -> None:
    found = real_check(runs(0.5))
    assert found.fault == "unexplained"
    assert "Over 8 runs: seat 0: " in found.says
    assert found.figures["chance"] < 0.01
    assert found.figures["runs_for_worth"] >= 2
    calm = real_check(runs(0.0))
    assert calm.fault is None
    assert "no sign of an ordering" in calm.says


def test_one_run_cannot_tell() -> None:
    found = real_check(runs(5.0, count=1))
    assert found.fault is None
    assert "1 run cannot tell, whatever comes out" in found.says
    few = real_check(runs(5.0, count=2))
    assert few.fault is None
    assert "2 runs cannot tell" in few.says


@pytest.mark.parametrize("lacking", [1, 5])
def test_seeds_without_late_episodes_are_no_ordering(lacking: int) -> None:
    returns = runs(0.0).samples.copy()
    returns[:lacking] = np.nan
    found = real_check(of_runs(returns))
    assert found.fault is None
    assert f"{8 - lacking} runs" in found.says


def test_curves_have_gaps_where_no_episode_ended() -> None:
    records = [
        {"episodes": [2, 0], "return_sum": [[4.0, 2.0], [0.0, 0.0]]},
        {"episodes": [1, 4], "return_sum": [[1.0, 2.0], [4.0, 8.0]]},
    ]
    found = curves_of(records)
    np.testing.assert_allclose(found[0, 0], [2.0, 1.0])
    assert np.isnan(found[0, 1]).all()
    np.testing.assert_allclose(found[1], [[1.0, 2.0], [1.0, 2.0]])


# Models.


def logged(**values: Any) -> Any:
    """A subject that has logged these in its last update, of five."""
    early = {name: np.zeros_like(value).tolist() for name, value in values.items()}
    late = {name: np.asarray(value).tolist() for name, value in values.items()}
    return SimpleNamespace(records=[early] * 4 + [late])


def test_a_model_that_is_worse_for_one_seat() -> None:
    dice = np.random.default_rng(0)
    even = 0.2 + 0.01 * dice.normal(size=(8, 3))
    worse = even + 0.1 * (np.arange(3) == 2)
    found = {
        check.title: check.fault
        for check in model_checks(
            logged(**{"world/error": worse, "opponent/accuracy": even, "explained": worse})
        )
    }
    assert found == {
        "Models: world/error": "models-differ",
        "Models: opponent/accuracy": None,
        "Models: explained": None,  # an effect, and no cause
    }
    assert model_checks(logged(**{"world/error": worse[:, :1], "value_loss": worse})) == []


def test_buffers_are_told() -> None:
    found = buffer_check(BufferAudit("world", [1200, 900], [3.25, float("nan")]))
    assert found.fault is None
    assert "1,200, 900 steps are kept, 3.2, nan updates old" in found.says


# Where does it begin?

FIRST = runs(0.5)
CALM, SURE = runs(0.0), of_runs(FIRST.samples + 0.01)
AGAIN = "as it is, again"


def test_an_ordering_that_begins_with_a_part() -> None:
    found = ladder_check(FIRST, {AGAIN: SURE, "without imagination": SURE, "plain PPO": CALM})
    assert found.fault == "part-orders"
    assert found.figures["gone"] == "plain PPO"
    checks = [real_check(FIRST), found]
    assert verdict_of(checks, ILLNESSES, HEALTHY).name == "part-orders"
    assert verdict_of(checks, ILLNESSES, HEALTHY).also == ("unexplained",)


def test_an_ordering_that_nothing_explains() -> None:
    found = ladder_check(FIRST, {AGAIN: SURE, "plain PPO": SURE})
    assert found.fault is None
    assert "it is there whatever is taken away" in found.says
    checks = [real_check(FIRST), found]
    assert verdict_of(checks, ILLNESSES, HEALTHY).name == "unexplained"
    assert ladder_check(FIRST, {AGAIN: SURE}).fault is None


def test_an_ordering_that_does_not_come_again() -> None:
    found = ladder_check(FIRST, {AGAIN: CALM, "plain PPO": CALM})
    assert found.fault is None
    assert "do not repeat the ordering" in found.says
    backwards = of_runs(FIRST.samples[:, ::-1])
    assert "do not repeat" in ladder_check(FIRST, {AGAIN: backwards}).says


def test_known_causes_stand_before_an_ordering() -> None:
    checks = [real_check(runs(0.5)), Check("The log", "wrong", "wrong-log")]
    assert verdict_of(checks, ILLNESSES, HEALTHY).name == "wrong-log"


def test_what_is_taken_away() -> None:
    full = rungs_of(PRESETS["hop-plus"], False)
    assert {name: rung.parts for name, rung in full.items()} == {
        AGAIN: ("opponent", "goal", "world", "imagination"),
        "without imagination": ("opponent", "goal"),
        "plain PPO": (),
        "plain PPO, shared parameters": (),
    }
    assert full["plain PPO, shared parameters"].ppo.parameters == "shared"
    assert list(rungs_of(PRESETS["hop-plus"], True)) == [AGAIN, "plain PPO"]
    search = rungs_of(PRESETS["direct-om"], False)
    assert list(search)[:3] == [AGAIN, "without search", "plain PPO"]
    assert search["without search"].parts == ("opponent",)
    assert [bool(rung.search.simulations) for rung in search.values()] == [True] + 3 * [False]
    shared = rungs_of(PRESETS["ppo-shared"], False)
    assert shared["plain PPO, independent parameters"].ppo.parameters == "independent"


def test_parts_that_are_taken_away_begin_from_nothing() -> None:
    config = PRESETS["hop-plus"]
    config = replace(config, world=replace(config.world, from_run="runs/world"))
    full = rungs_of(config, False)
    assert full[AGAIN].world.from_run == "runs/world"
    assert full["without imagination"].world.from_run is None


@pytest.mark.parametrize("search", [SearchConfig(), SearchConfig(simulations=0)], ids=["none", "0"])
def test_nothing_can_be_taken_from_plain_ppo(search: SearchConfig) -> None:
    config = replace(CONFIG, search=search)
    assert list(rungs_of(config, False)) == [AGAIN, "plain PPO, shared parameters"]
    assert list(rungs_of(config, True)) == [AGAIN]


RECORDS = [{"episodes": [1] * 5, "return_sum": [[0.0, 0.0, 0.0]] * 5}]


def climbing(config: Any, lanes: int, make: Any) -> Any:
    laboratory = SimpleNamespace(lanes=lanes)
    return SimpleNamespace(config=config, laboratory=laboratory, records=RECORDS, make=make)


def test_short_runs_are_made_of_each_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fresh seeds; nothing is trained here."""
    trained: list[tuple[Any, ...]] = []

    def of_preset(name: str, laboratory: Any, seed: int, on_step: Any) -> Any:
        trained.append((*laboratory, seed))
        return SimpleNamespace(records=RECORDS)

    monkeypatch.setattr(seats, "made", lambda config, make, lanes: (config.steps, make, lanes))
    monkeypatch.setattr(seats, "of_preset", of_preset)
    config = replace(PRESETS["hop-plus"], game=GAME, seed=7)
    settings = SeatsSettings(ablation_steps=999)
    ladder = climb(climbing(config, 2, "make"), NONE, settings, silent)
    assert list(ladder) == list(rungs_of(config, False))
    assert all(found.chance == 1.0 for found in ladder.values())
    # One run or two could not tell.
    assert trained == [(999, "make", 5, 7 + 1000 * number) for number in (1, 2, 3, 4)]
    # A fault of sets of their own cannot be built in where all share one.
    own = climb(climbing(config, 2, "make"), replace(NONE, own=True), settings, silent)
    assert "plain PPO, shared parameters" not in own
    assert len(own) == 3


def test_a_fault_of_imagination_is_no_fault_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are taken away from a run with such a fault as from any other."""
    monkeypatch.setattr(seats, "of_preset", lambda *given: SimpleNamespace(records=RECORDS))
    config = replace(PRESETS["hop-plus"], game=GAME)
    for name in ("loud-world", "zero-goals"):
        fault = FAULTS[name]
        subject = climbing(config, 5, laboratory_of(config, fault, 5).make)
        assert len(climb(subject, fault, SeatsSettings(), silent)) == 4


@pytest.mark.parametrize("ablate", [True, False])
def test_parts_are_taken_away_only_to_explain(
    ablate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the returns and the ladder is left out here."""
    monkeypatch.setattr(seats, "game_checks", lambda *given: [])
    monkeypatch.setattr(seats, "pipeline_checks", lambda subject: [])
    monkeypatch.setattr(seats, "model_checks", lambda subject: [])
    monkeypatch.setattr(seats, "climb", lambda *given: {AGAIN: SURE, "plain PPO": CALM})

    def of(returns: np.ndarray) -> SeatsDiagnosis:
        record = {"episodes": [1] * len(returns), "return_sum": returns.tolist()}
        learner = SimpleNamespace(game=None)
        subject: Any = SimpleNamespace(name="made up", records=[record], learner=learner)
        return diagnose_seats(subject, NONE, replace(SETTINGS, ablate=ablate), silent)

    assert of(CALM.samples).ladder == {}
    assert of(CALM.samples).verdict.headline == HEALTHY.headline
    few = of(FIRST.samples[:2])  # which cannot tell, so nothing is to be explained
    assert few.verdict.healthy
    assert few.verdict.headline == TOO_FEW.headline
    assert few.ladder == {}
    found = of(FIRST.samples)
    assert list(found.ladder) == ([AGAIN, "plain PPO"] if ablate else [])
    assert found.verdict.name == ("part-orders" if ablate else "unexplained")


# The command.


def read(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out)
    return found


COMMON = ["--episodes", str(EPISODES), "--quick"]


def test_a_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A small one, told as JSON."""
    small = {"ppo": replace(CONFIG, game=StagHuntConfig())}
    for module in (diagnosed, diagnose_seats_command):
        monkeypatch.setattr(module, "PRESETS", small)
    options = ["--steps", "640", "--seeds", str(LANES), "--out", str(tmp_path / "out"), "--json"]
    assert main(["diagnose", "seats", "ppo", *GAME_OPTIONS, *COMMON, *options]) == 0
    found = read(capsys.readouterr().out)
    assert found["verdict"] == "healthy"
    assert found["subject"] == "ppo"
    assert found["returns"]["samples"] == LANES
    assert found["page"] == str(tmp_path / "out" / "seats.html")
    del found["page"]
    assert read((tmp_path / "out" / "seats.json").read_text()) == found
    page = (tmp_path / "out" / "seats.html").read_text(encoding="utf-8")
    assert "Healthy" in page
    assert "✗ wrong" not in page
    assert "data:image/svg+xml" in page
    assert "<script" not in page


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the same tiny game."""
    runs = tmp_path_factory.mktemp("runs")
    assert (
        main(["train", "ppo", *SMALL_RUN, *GAME_OPTIONS, "--runs", str(runs), "--name", "a"]) == 0
    )
    return runs / "a"


def test_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words for people; the page lies in the run."""
    assert main(["diagnose", "seats", str(run), *COMMON]) == 0
    out = capsys.readouterr().out
    assert "2 runs cannot tell, whatever comes out (seat 0: " in out  # the seeds of the run
    assert "Gradient steps by seat: 60, 60, 60; there should be 60." in " ".join(out.split())
    assert "Verdict: Healthy (chance)." in out
    assert (run / "diagnosis" / "seats.html").exists()
    assert read((run / "diagnosis" / "seats.json").read_text())["subject"] == "a"


def complaint(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that ends with status 2: one line."""
    assert main(["diagnose", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["seats", "pppo"], "neither a run's folder nor a preset (did you mean ppo?)"),
        (["value-loss", "nobody"], "neither a run's folder nor a preset; presets are ppo, "),
        (["seats", "ppo", "--fault", "gremlins"], "must be one of strength, first-seat, "),
        (["seats", "ppo", "--fault", "loud-world"], "needs the parts imagination: try hop-plus"),
        (["value-loss", "goal", "--fault", "zero-goals"], "needs the parts imagination"),
        (["seats", "ppo-shared", "--fault", "half-updates"], "parameters of their own"),
        (["seats", "ppo", "--fault", "step-size", "--game.seats", "2"], "at least 3 seats"),
        (["seats", "ppo", "--seeds", "0"], "--seeds is 0 but must be above 0"),
        (["seats", "ppo", "--episodes", "0"], "--episodes is 0"),
        (["seats", "ppo", "--steps", "0"], "--steps is 0"),
        (["seats", "ppo", "--seed", "-1"], "--seed is -1"),
        (["value-loss", "ppo", "--updates", "-1"], "--updates is -1"),
    ],
)
def test_wrong_options(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in complaint(arguments, capsys)


@pytest.mark.parametrize("command", ["seats", "value-loss"])
@pytest.mark.parametrize(
    ("option", "named"),
    [
        (["--game.size", "5"], "--game"),
        (["--steps", "9"], "--steps"),
        (["--fault", "strength"], "--fault"),
    ],
)
def test_a_run_has_its_own_game_and_steps(
    command: str,
    option: list[str],
    named: str,
    run: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = complaint([command, str(run), *option], capsys)
    assert f"{named} is given, but a run has its own" in said


def test_a_run_of_a_model_and_no_run_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").mkdir()
    facts = {"kind": "world", "config": {}}
    (tmp_path / "model" / "config.json").write_text(json.dumps(facts))
    for command in ("seats", "value-loss"):
        said = complaint([command, str(tmp_path / "model")], capsys)
        assert "is a run of kind world, and one of kind training is needed" in said
        assert "has no config.json" in complaint([command, str(tmp_path)], capsys)


def test_a_run_without_a_checkpoint(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = run.parent / "empty"
    empty.mkdir()
    (empty / "config.json").write_bytes((run / "config.json").read_bytes())
    assert "no usable checkpoint and log yet" in complaint(["seats", str(empty)], capsys)


def test_faults_by_name() -> None:
    assert find_fault(None, CONFIG).about == "none"
    assert find_fault("half-updates", CONFIG) is FAULTS["half-updates"]
    with pytest.raises(ConfigError, match="parameters of their own"):
        find_fault("first-seat", with_ppo(parameters="shared"))
    uneven = find_fault("strength", CONFIG).config(CONFIG)
    assert uneven.game.strength == (1.0, 1.0, 2.0)
    assert laboratory_of(CONFIG, find_fault("strength", CONFIG), LANES).config.seeds == LANES


# The benchmark.


def test_verdicts_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By seeds that no two diagnoses share; nothing is trained here."""
    seeds: dict[str, list[int]] = {"ppo": [], "hop-plus": []}
    built: list[str] = []

    def laboratory_of(config: Any, fault: Any, lanes: int) -> Any:
        built.append(fault.about)
        return fault

    def of_preset(name: str, laboratory: Any, seed: int, on_step: Any) -> Any:
        seeds[name].append(seed)
        return laboratory

    def seats_verdict(subject: Any, *given: Any) -> Any:
        wrong = len(seeds["ppo"]) % 3 == 0
        name = "unexplained" if wrong else subject.seats or "healthy"
        return SimpleNamespace(verdict=SimpleNamespace(name=name))

    def loss_verdict(subject: Any, *given: Any) -> Any:
        return SimpleNamespace(verdict=SimpleNamespace(name=subject.value_loss or "healthy"))

    monkeypatch.setattr(bench, "laboratory_of", laboratory_of)
    monkeypatch.setattr(bench, "of_preset", of_preset)
    monkeypatch.setattr(bench, "diagnose_seats", seats_verdict)
    monkeypatch.setattr(bench, "diagnose_value_loss", loss_verdict)
    made = FaultBench(
        seeds=3,
        runs=5,
        steps=1,
        episodes=1,
        experiments=1,
        games=16,
        game=GAME,
        seats_preset="ppo",
        value_preset="hop-plus",
    )
    notes: list[str] = []
    found = list(made.trials((), notes.append))
    assert [trials.fault for trials in found if trials.command == "seats"] == ["none", *SEATS]
    losses = [name for name, fault in FAULTS.items() if fault.value_loss]
    assert [trials.fault for trials in found if trials.command == "value-loss"] == ["none", *losses]
    for trials in found:
        assert trials.count == 3
        assert trials.right == (2 if trials.command == "seats" else 3)
    assert found[1].said == {"unequal-game": 2, "unexplained": 1}
    assert found[1].expected == "unequal-game"
    assert seeds["ppo"][:3] == [0, 5, 10]
    assert seeds["hop-plus"][:3] == [0, 4, 8]
    assert len(notes) == 3 * len(found) == 3 * len(built)
    few = list(made.trials(("none", "loud-world"), notes.append))
    assert [(trials.command, trials.fault) for trials in few] == [
        ("seats", "none"),
        ("value-loss", "none"),
        ("value-loss", "loud-world"),
    ]


def test_the_benchmark_prints_a_table_or_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = Trials("seats", "strength", "unequal-game", {"unequal-game": 19, "healthy": 1}, 2.5)
    monkeypatch.setattr(FaultBench, "trials", lambda *given: [trials])
    assert main(["bench", "faults", "--faults", "strength"]) == 0
    out = capsys.readouterr().out
    for word in ("strength", "unequal-game", "19/20", "healthy 1", "2.5"):
        assert word in out
    assert main(["bench", "faults", "--json"]) == 0
    (row,) = read(capsys.readouterr().out)["trials"]
    assert (row["right"], row["count"]) == (19, 20)
    assert main(["bench", "faults", "--seats-preset", "pppo"]) == 2
    assert "no preset 'pppo'" in capsys.readouterr().err
    assert main(["bench", "faults", "--faults", "gremlins"]) == 2
    assert "no fault 'gremlins'; there are none, strength, " in capsys.readouterr().err
