"""The models of a run on its page: measured by play of the run itself."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

from hopplus.cli import main
from hopplus.config import PretrainWorld, TrainConfig, to_json
from hopplus.diagnosis.models.heldout import choose_seat, record_watched
from hopplus.diagnosis.models.measures import Measures
from hopplus.diagnosis.models.opponent import measure_in_play
from hopplus.diagnosis.models.world import WorldDiagnosis
from hopplus.evaluation.replay.replays import run_lineup, telling_replays, watch_first
from hopplus.evaluation.replay.watch import seated, sitting
from hopplus.learning.from_run import new_run
from hopplus.recorded.models import make_setting
from hopplus.report.page import Section
from hopplus.report.pages import models
from hopplus.report.pages.models import model_sections
from hopplus.runs.folder import RunFolder
from hopplus.runs.making import make_run
from tiny_hop_plus import CONFIG, GAME, TrueWorld
from tiny_run import random_run

EPISODES = 16


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return random_run(tmp_path_factory.mktemp("runs") / "tiny", CONFIG)


@pytest.fixture(scope="module")
def watched(run: RunFolder) -> Any:
    """The run's table, and episodes played there."""
    table = run_lineup(run)
    return table, watch_first(*table, among=EPISODES)


@pytest.fixture(scope="module")
def sections(run: RunFolder, watched: Any) -> list[Section]:
    return model_sections(run, *watched)


def test_every_model_has_its_section(sections: list[Section]) -> None:
    assert [section.title for section in sections] == ["Opponent models", "World models", "Goals"]
    assert [len(section.pictures) for section in sections] == [1, 2, 1]
    assert all(isinstance(drawn, Figure) for one in sections for _, drawn in one.pictures)
    assert [row[0] for row in sections[1].rows] == ["0", "1", "2"]


def test_opponent_models_are_judged_by_what_the_others_did(
    sections: list[Section], watched: Any
) -> None:
    """One pair by hand; and all of those who know what comes, or its contrary."""
    (game, _), seen = watched
    told, expected = np.asarray(seen.modelling), np.asarray(seen.expected)
    action = np.asarray(seen.trajectory.act.action)
    assert [row[:2] for row in sections[0].rows] == [
        [str(seat), str(other)] for seat in range(3) for other in range(3) if seat != other
    ]
    mask = told[:, :, 1, 2]
    right = (expected[:, :, 1, 2].argmax(axis=-1) == action[:, :, 2])[mask].mean()
    assert sections[0].rows[3][2:4] == [str(mask.sum()), f"{right:.1%}"]
    for shift, top1 in ((0, 1.0), (1, 0.0)):
        known = jax.nn.one_hot((action[:, :, None] + shift) % 7, 7)
        sure = replace(seen, expected=np.broadcast_to(known, expected.shape))
        figures = measure_in_play(sure, list(game.action_names)).figures
        assert figures["top1"] == top1
        assert figures["samples"] == told.sum()


def test_worlds_are_judged_by_what_came(sections: list[Section], watched: Any) -> None:
    """The rules themselves as the model of one seat are always right, and the other's is shown."""
    steps = sections[1].rows[0][1]
    (game, lineup), seen = watched
    held = record_watched(game, lineup, seen)
    setting = make_setting(PretrainWorld(data="", world=CONFIG.world.model), GAME)
    random = sitting(*seated(lineup))[1][0]
    true_world: Any = TrueWorld()

    def diagnosis(seat: int) -> WorldDiagnosis:
        return WorldDiagnosis(setting, choose_seat(held, seat, int(steps)))

    measured = {1: diagnosis(1).measure(random.params.world), 2: diagnosis(2).measure(true_world)}
    section = models._worlds(measured)
    assert section.rows[1] == ["2", steps, "100.0%", "0", "0", "100.0%"]
    assert section.rows[0] == sections[1].rows[1]
    assert section.rows[0][2] != "100.0%"
    assert "of seat 1, whose model errs most" in section.text
    own = diagnosis(2)
    earned = np.asarray(held.shard.rows.reward)[own.held.row, 2]
    shown = own.predict(true_world, own.held.steps[np.argsort(-earned)[:3]])
    assert shown[0][0].reward[0] > 0
    for sample, prediction in shown:
        np.testing.assert_array_equal(prediction.planes, sample.after.planes)
        np.testing.assert_array_equal(prediction.reward, sample.reward)


def test_replay_tells_the_same_episodes(
    run: RunFolder, watched: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (game, lineup), seen = watched
    assert main(["replay", str(run.path), "--json", "--among", str(EPISODES)]) == 0
    replay = json.loads(capsys.readouterr().out)
    assert replay == telling_replays(game, lineup, seen)
    assert replay["players"] == ["tiny#0@0", "tiny#0@1", "tiny#0@2"]


def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    assert model_sections(new_run(tmp_path / "ppo", TrainConfig(game=GAME))) == []
    (section,) = model_sections(new_run(tmp_path / "young", CONFIG))
    assert section.text.endswith("young has no usable checkpoint yet.")
    config = PretrainWorld(data=str(tmp_path / "none"))
    with make_run(tmp_path / "world", config, {"game": to_json(GAME)}):
        pass
    (section,) = model_sections(RunFolder(tmp_path / "world"))
    assert "could not be measured" in section.text


def test_a_run_of_one_model_is_judged_by_its_own_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its first seed; and where nothing can be drawn, that is said."""

    def draw(measures: Measures) -> Any:
        raise ImportError("matplotlib")

    def measure(params: Any) -> Measures:
        assert params.tolist() == [5, 6]
        return Measures("world", {"samples": 1234}, {})

    config = PretrainWorld(data="somewhere")
    loaded = SimpleNamespace(config=config), np.array([[5, 6], [7, 8]])
    monkeypatch.setattr(models, "DRAWN", {"world": {"world": draw}})
    monkeypatch.setattr(models, "load_parts", lambda run: loaded)
    monkeypatch.setattr(models, "open_data", lambda path: f"data of {path}")
    given = []

    def make_diagnosis(setting: Any, *rest: Any) -> Any:
        given.append((setting, *rest))
        return SimpleNamespace(measure=measure)

    monkeypatch.setattr(models, "make_diagnosis", make_diagnosis)
    with make_run(tmp_path / "world", config, {"origin": "there"}):
        pass
    (section,) = model_sections(RunFolder(tmp_path / "world"))
    assert given == [(loaded[0], "data of somewhere", "there", models.ROWS)]
    assert section.title == "The world model"
    assert section.text.startswith("Measured on 1,234 steps")
    assert "matplotlib is not installed" in section.text
    assert section.pictures == []
