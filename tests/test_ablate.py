"""The ladder: figures worked by hand, and a small one climbed, stopped and gone on with."""

import csv
import json
import math
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from conftest import share_programs
from hopplus.api import training
from hopplus.cli import main
from hopplus.config import TrainConfig
from hopplus.diagnosis.finding import to_json
from hopplus.evaluation.ablation import LADDER, Trace, choose, measure, seconds_per_update
from hopplus.presets import PRESETS
from hopplus.report.figures import palette
from hopplus.report.figures.evaluation import draw_ladder
from hopplus.runs.folder import RunFolder, open_run
from hopplus.runs.progress import Progress

_SMALL = """
--game.size 3 --game.seats 2 --game.hares 2 --net.hidden 8 --ppo.games 16 --ppo.unroll 8 --steps 384
--seeds 2 --rungs ppo tuned-ppo
"""
SMALL = _SMALL.split()


STEPS = 5000  # of an update, of which three are more steps than a return has to be taken over


def trace(name: str, returns: list[list[float]], seconds: float, steps: int = STEPS) -> Trace:
    """A rung whose returns [U, S] are each of ten episodes."""
    means = np.array(returns)
    return Trace(name, name, steps, 10 * means, np.full(means.shape, 10), means, seconds)


def test_steps_to_a_level() -> None:
    # Over three updates, from the third on: 1, 2, 3 for the first seed and 0, 1, 2 for the second.
    one = trace("one", [[0, 0], [0, 0], [3, 0], [3, 3], [3, 3]], 1.0)
    # 2, 3, 3 for both.
    two = trace("two", [[0, 0], [3, 3], [3, 3], [3, 3], [3, 3]], 1.0)
    first, second = measure([one, two], 2.0)
    assert first.steps_to_level_by_seed == [4 * STEPS, 5 * STEPS]
    assert first.steps_to_level == 5 * STEPS  # the mean is 1.5 after four updates, 2.5 after five
    assert second.steps_to_level == 3 * STEPS
    assert second.steps_ratio == pytest.approx(0.6)
    assert first.steps_ratio == 1
    first, second = measure([one, two], 2.9)
    assert first.steps_to_level is None
    assert first.steps_to_level_by_seed == [5 * STEPS, None]
    assert second.steps_to_level == 4 * STEPS
    assert second.steps_ratio is None


def test_updates_count_by_their_episodes() -> None:
    """Nine episodes of 1 and one of 11 have a mean of 2; without any there is none."""
    totals, counts = np.array([[0.0], [9.0], [11.0]]), np.array([[0], [9], [1]])
    curve = Trace("a", "a", STEPS, totals, counts, totals, 1.0).curve()
    np.testing.assert_allclose(curve, [[np.nan], [np.nan], [2.0]])
    none = Trace("a", "a", STEPS, 0 * totals, 0 * counts, totals, 1.0).curve()
    assert np.isnan(none).all()
    for updates in (1, 2):  # too short a run has no curve
        assert np.isnan(trace("a", [[1.0]] * updates, 1.0).curve()).all()


def test_the_first_updates_do_not_count_alone() -> None:
    """Level 2 is passed by the first update, but only the last three together are at it."""
    row = measure([trace("a", [[3], [0], [1], [2], [3]], 1.0)], 2.0)[0]
    assert row.steps_to_level == 5 * STEPS


def test_small_updates_are_taken_together() -> None:
    """12,288 steps are eight updates of 1,536 and seven of 2,000: the level is reached when so many
    have been there, however small they are."""
    rising = [[0.0]] * 4 + [[3.0]] * 96
    for steps, updates in ((1536, 8), (2000, 7), (4096, 3), (100_000, 3)):
        assert trace("one", rising, 1.0, steps).steps_to(3.0) == (4 + updates) * steps
    # No more than a tenth of a run.
    assert trace("one", rising, 1.0, 100).steps_to(3.0) == (4 + 10) * 100


def test_paired_differences() -> None:
    """Seeds differ much, but the second rung is always better by a little."""
    one = trace("one", [[0.0, 0.0, 0.0]] * 9 + [[1.0, 2.0, 3.0]], 1.0)
    two = trace("two", [[0.0, 0.0, 0.0]] * 9 + [[1.1, 2.2, 3.3]], 1.0)
    first, second = measure([one, two], 9.0)
    assert first.mean_return is not None
    assert second.difference is not None
    assert first.by_seed == [1, 2, 3]  # the last of ten updates is the last tenth
    student = 4.302653  # 97.5%, two degrees of freedom
    assert first.mean_return.half_width == pytest.approx(student * 1 / math.sqrt(3), rel=1e-5)
    assert second.difference.mean == pytest.approx(0.2)
    assert second.difference.half_width == pytest.approx(student * 0.1 / math.sqrt(3), rel=1e-5)
    assert second.value_loss == pytest.approx(2.2)


def test_equal_wall_time() -> None:
    """20 updates of 2 s are the time of 8 of 5 s, whose last tenth is the eighth alone."""
    rising = [[float(update), 2.0 * update] for update in range(1, 21)]
    ppo, slow, quick = trace("ppo", rising, 2.0), trace("slow", rising, 5.0), trace("q", rising, 1)
    first, second, third = measure([ppo, slow, quick], 99.0)
    assert first.timed_updates == 20
    assert first.timed_return == first.mean_return
    assert first.by_seed == [19.5, 39.0]  # updates 19 and 20
    assert (second.timed_updates, second.timed_by_seed) == (8, [8.0, 16.0])
    assert second.timed_difference is not None
    assert second.timed_difference.mean == pytest.approx(((8 - 19.5) + (16 - 39)) / 2)
    assert second.seconds_ratio == 2.5
    assert second.difference is not None
    assert second.difference.mean == 0  # at equal steps they are the same
    assert third.timed_updates == 20  # more than the whole run there is not


def test_no_episodes_are_no_number() -> None:
    nothing = np.zeros((2, 2))
    row = measure([Trace("a", "a", 100, nothing, nothing, nothing, 1.0)], 0.0)[0]
    assert row.mean_return is None
    assert row.steps_to_level is None
    assert to_json(row)["by_seed"] == [None, None]
    assert row.across_seeds is None


def test_seconds_per_update_are_without_compilation() -> None:
    config = TrainConfig(steps=4096 * 11, seeds=2)
    result: dict[str, Any] = {"seconds": 50.0, "first_update_seconds": 30.0}
    rate = 10 * 4096 * 2 / 20.0  # ten updates after the first, in the other 20 s
    assert seconds_per_update({**result, "steps_per_second": rate}, config) == pytest.approx(2.0)
    # A run resumed for its last update alone has no rate.
    assert seconds_per_update({**result, "steps_per_second": None}, config) == 20.0 / 11


def test_rungs() -> None:
    assert list(choose(["+imagination", "ppo"])) == ["ppo", "imagination"]
    parts = [rung.config.parts for rung in LADDER.values()]
    whole = ("opponent", "goal", "world", "imagination")
    assert parts == [(), whole[:1], whole[:2], whole[:3], whole, ()]
    assert LADDER["imagination"].config == PRESETS["hop-plus"]
    tuned = replace(PRESETS["hop-plus"].ppo, value_weight=PRESETS["ppo"].ppo.value_weight)
    assert LADDER["tuned-ppo"].config.ppo == tuned
    assert {LADDER[name].config.ppo for name in ("ppo", "opponent", "goal", "world")} == {
        PRESETS["ppo"].ppo
    }


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ladder of two rungs, three updates each; the first was stopped after an update."""
    runs = tmp_path_factory.mktemp("runs")
    command = ["ablate", "ladder", *SMALL, "--runs", str(runs)]
    with pytest.MonkeyPatch.context() as patch:
        share_programs(patch)

        def stop(progress: Progress, units: int, note: str = "") -> None:
            progress.done += units
            os.kill(os.getpid(), signal.SIGINT)

        patch.setattr(Progress, "advance", stop)
        assert main([*command, "--name", "all"]) == 130
    first = open_run(runs / "all" / "ppo")
    assert len(first.metrics()) == 1
    assert first.result() is None
    advances = []
    with pytest.MonkeyPatch.context() as patch:
        share_programs(patch)

        def note_down(progress: Progress, units: int, note: str = "") -> None:
            progress.done += units
            advances.append(units)

        patch.setattr(Progress, "advance", note_down)
        assert main([*command, "--name", "all"]) == 0
    assert advances == [256, 128, 128, 128, 128]  # the first went on with its second update
    return runs / "all"


def again(folder: Path, *more: str) -> int:
    return main(
        ["ablate", "ladder", *SMALL, "--runs", str(folder.parent), "--name", folder.name, *more]
    )


def test_a_ladder_is_climbed_though_it_was_stopped(climbed: Path) -> None:
    for name in ("ppo", "tuned-ppo"):
        run = open_run(climbed / name)
        assert [record["update"] for record in run.metrics()] == [1, 2, 3]
        assert run.result() is not None
        assert run.config().ppo.minibatches == LADDER[name].config.ppo.minibatches
    assert Image.open(climbed / "ladder.png").width > 500
    page = (climbed / "ladder.html").read_text(encoding="utf-8")
    assert "<td>ppo as tuned for hop-plus</td>" in page
    assert '"name":"ppo as tuned for hop-plus","x":[' in page  # its curves
    assert "⚠ below 5 seeds" in page
    figures = json.loads((climbed / "ladder.json").read_text())
    assert figures["seeds"] == [0, 1]
    ppo, tuned = figures["rungs"]
    result = open_run(climbed / "ppo").result()
    assert result is not None
    assert ppo["by_seed"] == pytest.approx(result["mean_return_by_seed"])
    assert ppo["value_loss"] == pytest.approx(result["value_loss"])
    assert ppo["timed_updates"] == 3
    assert tuned["difference"]["mean"] == pytest.approx(
        np.mean(np.subtract(tuned["by_seed"], ppo["by_seed"]))
    )
    with (climbed / "ladder.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == ["ppo", "tuned-ppo"]
    assert ppo["probability_of_improvement"] is None
    assert ppo["iqm"]["figure"] == pytest.approx(np.mean(ppo["by_seed"]))
    better = np.mean(np.greater.outer(tuned["by_seed"], ppo["by_seed"]))
    level = np.mean(np.equal.outer(tuned["by_seed"], ppo["by_seed"]))
    assert tuned["probability_of_improvement"]["figure"] == pytest.approx(better + level / 2)
    assert float(lines[0]["iqm_figure"]) == pytest.approx(ppo["iqm"]["figure"])
    assert f"{ppo['iqm']['figure']:.3f} [" in page
    assert float(lines[1]["difference_mean"]) == pytest.approx(tuned["difference"]["mean"])


def test_again_trains_nothing(
    climbed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(runs: list[RunFolder], *_: object) -> None:
        raise AssertionError(f"{runs[0].path} is trained again")

    monkeypatch.setattr(training, "train_side_by_side", refuse)
    assert again(climbed) == 0
    out = capsys.readouterr().out
    for words in (
        "ppo as tuned",
        "return ± 95%",
        "- ppo",
        "equal wall time",
        "too few to tell",
        "IQM",
        "probability of improvement",
    ):
        assert words in out
    assert f"the page is {climbed / 'ladder.html'}" in out
    monkeypatch.setitem(sys.modules, "jinja2", None)  # not everywhere
    assert again(climbed, "--json", "--level", "0") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["rungs"][0]["steps_to_level"] <= 384
    assert figures["page"] is None


def test_other_settings_are_not_mixed_in(climbed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert again(climbed, "--seed", "7") == 2
    assert "was made with other settings" in capsys.readouterr().err


def test_without_a_name_it_says_how_to_go_on(
    climbed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train_side_by_side", stopped)
    runs = climbed.parent / "other"
    assert main(["ablate", "ladder", *SMALL, "--runs", str(runs)]) == 130
    made = next(runs.iterdir()).name
    shutil.rmtree(runs)
    assert f"stopped; go on with the same command and --name {made}" in capsys.readouterr().err


def test_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(palette, "_lacking", [])  # said once
    rungs = [trace("a", [[1.0]], 1.0)]
    assert not palette.try_figure(tmp_path / "ladder.png", lambda: draw_ladder(rungs, 1.0))
    assert "matplotlib is not installed" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rungs", "ppo", "wrold"], "--rungs has 'wrold' but there are only ppo, opponent"),
        (["--ppo.games", "5", "--ppo.unroll", "5"], "ppo.minibatches"),
        (["--seeds", "0"], "--seeds is 0"),
        (["--level", "nan"], "'nan' is not a finite number"),
    ],
)
def test_wrong_input_is_one_sentence(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ablate", "ladder", "--runs", str(tmp_path), *options]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.startswith("hopplus: ")
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
