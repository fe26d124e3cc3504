"""An auxiliary model from outside the package: one file and one row, which `--parts` names."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from examples.reward_model import ROW
from hopplus.cli import main
from hopplus.config import PARTS, AuxiliaryConfig, ConfigError, TrainConfig
from hopplus.learning.auxiliary.learner import AuxiliaryLearner
from hopplus.learning.auxiliary.table import (
    AUXILIARY_MODELS,
    AuxiliaryRow,
    WarmStartRule,
    register_auxiliary_model,
)
from hopplus.learning.from_run import find_trained, make_learner
from hopplus.learning.train import record_of
from hopplus.report.pages.curves import Curved, curves_section
from hopplus.report.pages.logged import read_logged
from hopplus.report.translations import Translations
from hopplus.runs.folder import open_run

ROOT = Path(__file__).resolve().parents[1]
NAME = "examples.reward_model:ROW"
_SMALL = """
--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 5 --net.hidden 8 --ppo.games 16
--ppo.unroll 6 --ppo.minibatches 1 --ppo.epochs 1 --opponent.net.hidden 8 --opponent.fits 1
--opponent.batch 8 --steps 384 --checkpoint-every 2
"""
SMALL = _SMALL.split()  # 4 updates
DEAR = replace(ROW, settings=replace(ROW.settings, every=2), prefix="dear")
TWIN = replace(ROW, needs=("world",))


@pytest.fixture(scope="module", autouse=True)
def here() -> Iterator[None]:
    """Modules that lie where one works are found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    words = ["train", "ppo", "--parts", "opponent", NAME, *SMALL]
    assert main([*words, "--runs", str(folder), "--name", "a"]) == 0
    return folder / "a"


def logged(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_it_learns_and_is_logged(run: Path) -> None:
    records = logged(run)
    losses = np.array([record["reward/loss/squared_error"] for record in records])
    fresh = np.array([record["reward/held_out_loss"] for record in records])
    assert losses.shape == fresh.shape == (4, 1, 3)  # updates, seeds, seats
    assert losses[-1].mean() < 0.5 * losses[0].mean()
    assert fresh[-1].mean() < 0.8 * fresh[0].mean()
    assert [record["reward/fits"] for record in records] == [[[8.0 * n] * 3] for n in (1, 2, 3, 4)]
    assert "opponent/accuracy" in records[-1]
    assert json.loads((run / "config.json").read_text())["config"]["parts"] == ["opponent", NAME]


def test_its_parameters_are_the_players(run: Path, tmp_path: Path) -> None:
    """They are in checkpoints and exported players, each seat's its own, and have learned."""
    players = [find_trained(f"{run}#0@{seat}") for seat in (0, 1)]
    own: list[Any] = [player.params.outside["reward"].layers[0].weight for player in players]
    config = open_run(run).config()
    fresh = make_learner(config, {}).actor.init(jax.random.key(0)).outside["reward"]
    assert own[0].shape == fresh.layers[0].weight.shape == (3 * 3 * 6 + 3 * 7, 32)
    assert not np.array_equal(own[0], own[1])
    out = tmp_path / "one.safetensors"
    assert main(["export", f"{run}@0", "--out", str(out)]) == 0
    back = find_trained(str(out))
    np.testing.assert_array_equal(back.params.outside["reward"].layers[0].weight, own[0])


def test_it_resumes_bit_for_bit(run: Path, tmp_path: Path) -> None:
    again = tmp_path / "a"
    shutil.copytree(run, again)
    shutil.rmtree(again / "checkpoints" / "4")
    (again / "result.json").unlink()
    assert main(["resume", str(again)]) == 0
    assert logged(again) == logged(run)
    one, two = (find_trained(f"{path}#0@1").params.outside for path in (run, again))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_report_draws_it(run: Path, tmp_path: Path) -> None:
    section = curves_section([Curved("a", read_logged(open_run(run)))], Translations())
    (chart,) = (c for c in section.data["charts"] if c["title"] == "Loss of the reward model")
    assert [line["name"] for line in chart["lines"]] == ["fitted", "held out"]
    out = tmp_path / "report.html"
    assert main(["report", str(run), "--quick", "--out", str(out)]) == 0
    page = out.read_text()
    assert NAME in page
    assert "Loss of the reward model" in page


def test_what_else_learns_does_not_change(run: Path) -> None:
    """A model of one's own comes last: the others have the random numbers that they had."""
    alone = make_learner(replace(open_run(run).config(), parts=("opponent",)), {})
    both = make_learner(replace(open_run(run).config(), parts=(NAME, "opponent")), {})
    assert [part.name for part in both.auxiliary.parts] == ["opponent", "reward"]
    one, two = (learner.actor.init(jax.random.key(0)) for learner in (alone, both))
    assert one.outside == {}
    assert len(jax.tree.leaves(two)) > len(jax.tree.leaves(one))
    for a, b in zip(*map(jax.tree.leaves, (one.opponents, two.opponents)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_registered_name_is_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (PARTS, AUXILIARY_MODELS):
        monkeypatch.setattr(table, "_rows", dict(table._rows))
    register_auxiliary_model("dear-reward", DEAR)
    config = TrainConfig(parts=("dear-reward", NAME))
    assert [part.name for part in make_learner(config, {}).auxiliary.parts] == ["dear", "reward"]
    metrics = {"dear/loss/squared_error": 1.0, "reward/loss/squared_error": 1.0, "dear/fill": 1.0}
    assert record_of(1, config, metrics).keys() >= metrics.keys()
    assert metrics.keys() - record_of(2, config, metrics).keys() == {"dear/loss/squared_error"}
    with pytest.raises(ConfigError, match="the auxiliary model 'dear-reward' exists already"):
        register_auxiliary_model("dear-reward", DEAR)


def test_its_settings_follow_the_run() -> None:
    """Where a run goes on with steady step sizes, its own are steady too."""
    falling = replace(ROW, settings=AuxiliaryConfig(anneal=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("examples.reward_model.ROW", falling)
        config = TrainConfig(parts=("opponent", NAME))
        assert config.fitted[NAME].anneal
        assert not config.steady.fitted[NAME].anneal
        assert config.without(NAME).parts == ("opponent",)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (["reword"], "there is no auxiliary model 'reword'"),
        (["no.such:thing"], "there is no module 'no.such'"),
        (["examples.reward_model:nothing"], "has no 'nothing'"),
        (["examples.reward_model:RewardModel"], "is no AuxiliaryRow: see docs/extending.md"),
        (["test_outside_auxiliary:TWIN"], "which needs world"),
        ([NAME, "world", "test_outside_auxiliary:TWIN"], "two models whose metrics are called"),
    ],
)
def test_clear_errors(
    parts: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "ppo", "--parts", *parts, "--runs", str(tmp_path), "--name", "a"]
    assert main([*words, *SMALL]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_it_begins_from_scratch() -> None:
    rule = WarmStartRule("outside", lambda parts: None, lambda run: {})
    for changes in ({"warm_start": rule}, {"settings": AuxiliaryConfig(from_run="runs/a")}):
        with pytest.raises(ConfigError, match="begins from scratch"):
            replace(ROW, **changes)
    made: AuxiliaryRow = replace(ROW)
    assert made.learner is AuxiliaryLearner
