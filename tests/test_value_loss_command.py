"""`hopplus diagnose value-loss`: its page, its JSON, runs and presets."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import share_programs
from hopplus.cli import main
from hopplus.cli.diagnose import common
from hopplus.cli.diagnose.common import finish
from hopplus.cli.diagnose.value_loss import draw_sections
from hopplus.config import StagHuntConfig
from hopplus.diagnosis.finding import Check
from hopplus.diagnosis.subject import (
    Laboratory,
    make_laboratory,
    restore_subject,
)
from hopplus.diagnosis.value_loss.diagnosis import (
    diagnose_value_loss,
)
from hopplus.runs.folder import open_run
from test_diagnose_value_loss import diagnosis, imagining
from tiny_diagnosis import (
    CONFIG,
    GAME_OPTIONS,
    PPO,
    fault_of,
    silent,
)


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
