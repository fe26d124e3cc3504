"""`python -m benchmarks.faults`: verdicts on faults that are built in, held against those kept."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import faults as bench
from benchmarks import main
from benchmarks.faults import (
    DOCS,
    KEPT,
    MARK,
    NONE,
    Case,
    FaultBench,
    Trials,
    list_verdicts,
    tabulate_kept,
)
from benchmarks.players import Players
from hopplus.cli.studies.engine import Engine
from hopplus.diagnosis.faults import FAULTS
from hopplus.diagnosis.finding import read_illnesses
from hopplus.diagnosis.player_faults import PLAYER_FAULTS
from hopplus.presets import PRESETS
from tiny_diagnosis import GAME


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, str, int]]:
    """Command, preset and seed of every diagnosis; nothing is trained. The first diagnosis of the
    fault `strength` is wrong."""
    found: list[tuple[str, str, int]] = []

    def train_subject(name: str, fault: Any, seed: int, on_step: Any) -> Any:
        return SimpleNamespace(name=name, fault=fault, seed=seed)

    def diagnosed(command: str, verdict: str | None, subject: Any) -> Any:
        found.append((command, subject.name, subject.seed))
        name = verdict or "healthy"
        return SimpleNamespace(verdict=SimpleNamespace(name=name, also=(), evidence=""))

    def diagnose_seats(subject: Any, *given: Any) -> Any:
        wrong = subject.fault.seats == "unequal-game" and subject.seed == 7
        return diagnosed("seats", "unexplained" if wrong else subject.fault.seats, subject)

    def diagnose_value_loss(subject: Any, *given: Any) -> Any:
        return diagnosed("value-loss", subject.fault.value_loss, subject)

    def diagnosis(players: Players, fault: str | None, trials: int) -> Callable[[int], Any]:
        verdict = PLAYER_FAULTS[fault].adaptation if fault else None
        verdict = "no-inference" if players.preset == "ppo" else verdict

        def diagnose(seed: int) -> Any:
            return diagnosed(
                "adaptation", verdict, SimpleNamespace(name=players.preset, seed=seed)
            ).verdict

        return diagnose

    monkeypatch.setattr(Players, "task", lambda players: SimpleNamespace(done=True))
    monkeypatch.setattr(Players, "diagnosis", diagnosis)
    monkeypatch.setattr(bench, "make_laboratory", lambda config, fault, replicas: fault)
    for function in (train_subject, diagnose_seats, diagnose_value_loss):
        monkeypatch.setattr(bench, function.__name__, function)
    monkeypatch.setattr(bench, "KEPT", tmp_path / "faults.json")
    docs = tmp_path / "diagnosis.md"
    docs.write_text(f"above\n{MARK}\nold\n{MARK}\nbelow")
    monkeypatch.setattr(bench, "DOCS", docs)
    return found


def make_bench(folder: Path, **options: Any) -> FaultBench:
    given: dict[str, Any] = {"seeds": 3, "seed": 7, "game": GAME, "runs": folder / "runs"} | options
    return FaultBench(**given)


def test_verdicts_are_counted(trained: list[tuple[str, str, int]], tmp_path: Path) -> None:
    """Of every fault by every command that should name it, and of healthy presets, by seeds that no
    two diagnoses share."""
    notes: list[str] = []
    found = list(make_bench(tmp_path).trials(notes.append))
    healthy = {("seats", NONE): 3, ("value-loss", NONE): 3, ("adaptation", NONE): 2}
    players = {("adaptation", name): 1 for name in PLAYER_FAULTS}
    seats = {("seats", name): 1 for name, fault in FAULTS.items() if fault.seats}
    losses = {("value-loss", name): 1 for name, fault in FAULTS.items() if fault.value_loss}
    counted = Counter((one.case.command, one.case.fault) for one in found)
    assert counted == healthy | seats | losses | players
    assert all(one.count == 3 for one in found)
    assert [one.case.fault for one in found if one.right < 3] == ["strength"]
    (wrong,) = [one for one in found if one.case.fault == "strength"]
    assert wrong.said == {"unexplained": 1, "unequal-game": 2}
    assert len(notes) == len(trained) == 3 * len(found)
    by_case: dict[tuple[str, str], list[int]] = {}
    for command, preset, seed in trained:
        by_case.setdefault((command, preset), []).append(seed)
    assert by_case["seats", "ppo"][:3] == [7, 12, 17]
    assert by_case["value-loss", "hop-plus"][:3] == [7, 11, 15]
    assert by_case["adaptation", "belief"] == [7, 8, 9] * 4  # the same players, with each fault
    # A fault that plain PPO has no part for.
    (one,) = [one for one in found if one.case.fault == "one-seat-models"]
    assert one.case.preset == "hop-plus"


def test_some_faults_by_some_diagnoses(tmp_path: Path) -> None:
    few = make_bench(
        tmp_path,
        faults=("none", "first-seat", "strength"),
        commands=("value-loss",),
        healthy=("pg",),
    )
    assert [case.name for case in few.cases] == [
        "value-loss pg none",
        "value-loss ppo first-seat",
    ]


def test_what_is_done_is_not_done_again(
    trained: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    """Not by another process either; unless settings differ."""
    few = make_bench(tmp_path, faults=("strength", "loud-world"), seeds=2)
    first = [one.said for one in few.trials(lambda note: None)]
    assert len(trained) == 4
    assert [one.said for one in few.trials(lambda note: None)] == first
    assert len(trained) == 4
    list(replace(few, seeds=3).trials(lambda note: None))
    assert [seed for *_, seed in trained[4:]] == [17, 15]  # the third of each
    list(replace(few, steps=9).trials(lambda note: None))
    assert len(trained) == 10


def test_players_are_diagnosed_anew_with_settings_of_their_own(
    trained: list[tuple[str, str, int]], tmp_path: Path
) -> None:
    few = make_bench(tmp_path, faults=("deaf-policy",), seeds=2)
    own = (replace(few, trials_each=9), replace(few, player_steps=9))
    for one, count in ((few, 2), (replace(few, steps=9), 2), *zip(own, (4, 6), strict=True)):
        list(one.trials(lambda note: None))
        assert len(trained) == count


def test_training_that_was_stopped_is_no_diagnosis(
    trained: list[tuple[str, str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[str] = []

    class Stopped:
        def execute(self, tasks: list[str]) -> None:
            handed.extend(tasks)
            raise KeyboardInterrupt

    monkeypatch.setattr(Players, "task", lambda players: players.preset)
    monkeypatch.setattr(Engine, "make", lambda engine: Stopped())
    options = ["--faults", "none", "--commands", "adaptation", "--runs", str(tmp_path)]
    assert main(FaultBench, options) == 130
    assert handed == ["ppo", "belief"]
    assert not trained


def test_a_changed_threshold_is_noticed(
    trained: list[tuple[str, str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In code or in the table of illnesses; and counts that are kept are compared all the same."""
    code = tmp_path / "code"
    (code / "seats").mkdir(parents=True)
    (code / "seats" / "checks.py").write_text("SURE = 0.001")
    monkeypatch.setattr(bench, "CODE", code)
    few = make_bench(tmp_path, faults=("strength",), seeds=2)
    list(few.trials(lambda note: None))
    list(few.trials(lambda note: None))
    assert len(trained) == 2
    settings = {**few._settings("seats"), **few._seeds}
    bench.KEPT.write_text(json.dumps({"seats ppo strength": settings | {"said": {"healthy": 2}}}))
    changes = {"seats/checks.py": "SURE = 0.002", "illnesses.toml": "[[illness]]", "more.py": ""}
    for count, (name, text) in enumerate(changes.items(), start=2):
        (code / name).write_text(text)
        (found,) = few.trials(lambda note: None)
        assert len(trained) == 2 * count
        assert found.kept == {"healthy": 2}


def test_it_keeps_and_compares(
    trained: list[tuple[str, str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*more: str) -> tuple[int, Any]:
        options = ["--seeds", "3", "--seed", "7", "--faults", "strength", "--json"]
        status = main(FaultBench, [*options, "--runs", str(tmp_path / "r"), *more])
        return status, json.loads(capsys.readouterr().out)

    status, found = run("--keep")
    (row,) = found["trials"]
    assert (status, row["verdict"], row["right"], row["count"]) == (0, "not kept", 2, 3)
    status, found = run()
    assert (status, found["trials"][0]["verdict"]) == (0, "as kept")
    known = json.loads(bench.KEPT.read_text())
    assert known["seats ppo strength"]["said"] == row["said"]
    written = (tmp_path / "diagnosis.md").read_text()
    about = "`strength`: the last seat is twice as strong"
    assert f"| {about} | `unequal-game` 2/3 (unexplained 1) |   |   |\n" in written
    assert (written[:6], written[-6:]) == ("above\n", "\nbelow")
    known["seats ppo strength"]["said"] = {"unequal-game": 3}
    bench.KEPT.write_text(json.dumps(known))
    status, found = run()
    assert (status, found["trials"][0]["verdict"]) == (1, "LOWER")
    assert {"diagnose": "seats", "verdict": "unequal-game", "faults": "strength"} in found[
        "verdicts"
    ]


@pytest.mark.parametrize(
    ("right", "kept", "verdict"),
    [(20, None, "not kept"), (19, 20, "as kept"), (18, 20, "LOWER"), (18, 18, "as kept")],
)
def test_how_counts_compare(right: int, kept: int | None, verdict: str) -> None:
    case = Case("seats", "ppo", "strength")

    def said(right: int) -> dict[str, int]:
        return {"unequal-game": right, "healthy": 20 - right}

    assert Trials(case, said(right), 1.0, said(kept) if kept else None).verdict == verdict


def test_every_verdict_is_listed() -> None:
    found = list(list_verdicts())
    for command in ("seats", "value-loss", "adaptation"):
        known = set(read_illnesses(command)) - {"healthy", "not-known"}
        listed = {verdict: bool(faults) for of, verdict, faults in found if of == command}
        assert listed == dict.fromkeys(known, True)


def test_it_prints_a_table(
    trained: list[tuple[str, str, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--seeds", "3", "--seed", "7", "--runs", str(tmp_path / "r")]
    monkeypatch.setattr(bench, "FAULTS", {"strength": FAULTS["strength"]})
    assert main(FaultBench, [*options, "--faults", "strength"]) == 0
    out = capsys.readouterr().out
    for word in ("strength", "unequal-game", "2/3", "no fault reaches it"):
        assert word in out


def test_complaints(capsys: pytest.CaptureFixture[str]) -> None:
    for options, says in (
        ("--healthy pppo", "no preset 'pppo'; there are ppo, "),
        ("--faults gremlins", "no fault 'gremlins'; there are none, strength, "),
        ("--commands models", "no diagnosis 'models'; there are seats, value-loss, adaptation"),
        ("--players pppo", "no preset 'pppo'; there are ppo, "),
        ("--trials-each 0", "--trials-each"),
    ):
        assert main(FaultBench, options.split()) == 2
        assert says in capsys.readouterr().err


def test_the_table_in_the_docs_is_what_is_kept() -> None:
    """As `--keep` writes it."""
    _, table, _ = DOCS.read_text(encoding="utf-8").split(MARK)
    assert table.strip() == tabulate_kept()
    for name, row in json.loads(KEPT.read_text(encoding="utf-8")).items():
        _, preset, fault = name.split(" ")
        assert preset in PRESETS
        assert fault in {NONE, *FAULTS, *PLAYER_FAULTS}
        assert sum(row["said"].values()) == row["seeds"]
