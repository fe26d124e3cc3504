"""Figures of a run are about the seats that learn, wherever they are shown."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from conftest import SMALL_RUN
from fake_runs import write_run
from hopplus.api.training import note_on
from hopplus.cli import main
from hopplus.learning.train import Moment
from hopplus.report.pages.runs import runs_page
from hopplus.report.pages.summary import Summary, summarise
from hopplus.runs.checkpoint import read_manifest, steps_of
from hopplus.runs.folder import open_run


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose first seat hunts hares by script, and whose second learns."""
    runs = tmp_path_factory.mktemp("partly")
    words = ["train", "ppo", "--seats", "hare,learn", "--runs", str(runs), "--name", "a"]
    assert main([*words, *SMALL_RUN]) == 0
    return runs / "a"


def late(run: Path, updates: int) -> np.ndarray:
    """[N] mean returns over the last updates, from the log."""
    records = open_run(run).metrics()[-updates:]
    episodes = np.sum([record["episodes"] for record in records])
    totals: np.ndarray = np.sum([record["return_sum"] for record in records], axis=(0, 1))
    return np.asarray(totals / episodes)


def test_result_and_best_checkpoint(partly: Path) -> None:
    result = open_run(partly).result()
    assert result
    assert result["learning_seats"] == [1]
    returns = np.array(result["returns"])
    assert result["mean_return_by_seed"] == pytest.approx(returns[:, 1].tolist())
    assert result["mean_return"] == pytest.approx(returns[:, 1].mean())
    assert abs(result["mean_return"] - returns.mean()) > 0.05  # the hare hunter would show
    last = steps_of(open_run(partly).checkpoints)[-1]
    score = read_manifest(open_run(partly).checkpoints / str(last))["score"]
    assert score == pytest.approx(late(partly, 10)[1], rel=1e-5)


def test_the_table_marks_them(partly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(partly)]) == 0
    out = capsys.readouterr().out
    assert "* learn" in out
    assert "hare" in out
    result = open_run(partly).result()
    assert result
    assert f"mean of the learning seats (*) {result['mean_return']:.3f}" in out


def test_evaluation_is_about_the_run(partly: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--episodes", "32"]
    assert main(["evaluate", str(partly), *few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["mean_over_seats"] == [1]
    assert found["mean_return"] == found["seats"][1]["return"]
    assert [seat["player"] for seat in found["seats"]] == ["hare", "a@1"]
    assert main(["evaluate", str(partly), *few]) == 0
    out = capsys.readouterr().out
    assert "a@1 *" in out
    assert "* the mean is over these seats alone" in out
    both = f"{partly}@1,{partly}@1"
    small = [*SMALL_RUN[:6], *few, "--json"]
    assert main(["evaluate", "--players", both, *small]) == 0
    assert json.loads(capsys.readouterr().out)["mean_over_seats"] == [0, 1]
    assert main(["evaluate", "--players", f"hare,{partly}", *small]) == 0
    assert json.loads(capsys.readouterr().out)["mean_over_seats"] == [1]
    assert main(["evaluate", "--players", "hare,random", *small]) == 0
    assert json.loads(capsys.readouterr().out)["mean_over_seats"] == [0, 1]


def test_seeds_count_only_where_the_run_plays(
    partly: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripted players are the same with every seed, and so are players of one that is named."""
    for players in ("hare,stag", f"hare,{partly}#1@1"):
        words = ["evaluate", str(partly), "--players", players, "--episodes", "32", "--json"]
        assert main(words) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["seeds"] == []
        assert found["mean_return"]["over_seeds"] is None


RETURNS = np.broadcast_to([1.0, 2.0, 3.0, 4.0], (6, 5, 4))


def summary_of(path: Path, seats: str, **more: object) -> Summary:
    run = write_run(path, RETURNS, preset="ppo", seats=seats.split(","), **more)  # type: ignore[arg-type]
    return summarise([open_run(run)])[0]


def test_the_report_is_about_them(tmp_path: Path) -> None:
    run = summary_of(tmp_path / "a", "learn,stag,learn,stag")
    page = runs_page([run], "")
    assert page.answer == "Mean return 2.000 ± 0.000 of the seats that learn"  # of 1 and 3
    rows = {row[0]: row[1] for row in page.sections[0].cells}
    assert rows["return of seat 0 ± 95%"] == "1.000 ± 0.000 *"
    assert rows["return of seat 1 ± 95%"] == "2.000 ± 0.000"
    assert rows["lowest and highest seed"] == "2.000, 2.000"
    assert "share of the best" not in rows  # nobody knows what is best beside others
    assert any("means are over these alone" in line for line in page.lines)
    curves = next(section for section in page.sections if section.view == "curves")
    lines = {line["name"]: line["y"] for line in curves.data["charts"][0]["lines"]}
    assert lines["mean over learning seats"] == pytest.approx(2.0)
    assert set(lines) >= {"seat 0 *", "seat 1", "seat 2 *", "seat 3"}
    assert run.as_json()["learning_seats"] == [0, 2]


def test_other_co_players_are_not_ranked(tmp_path: Path) -> None:
    one = summary_of(tmp_path / "one", "learn,stag,stag,stag")
    other = summary_of(tmp_path / "other", "learn,hare,hare,hare")
    page = runs_page([one, other], "")
    assert page.answer == "These runs cannot be ranked by their returns"
    assert any("different co-players" in line for line in page.lines)
    same = summary_of(tmp_path / "same", "learn,stag,stag,stag")
    page = runs_page([one, same], "")
    assert page.answer.startswith("No significant difference between one (1.000 ± 0.000) and same")
    assert not any("co-players" in line for line in page.lines)


def test_players_kept_in_runs_are_told_apart(tmp_path: Path) -> None:
    """They go by the same name in every run, so that what is in the files counts."""
    seats = "learn,players/0.safetensors,stag,stag"
    runs = [summary_of(tmp_path / name, seats) for name in "abc"]
    for run, content in zip(runs, (b"one", b"one", b"two"), strict=True):
        file = run.run.path / "players" / "0.safetensors"
        file.parent.mkdir()
        file.write_bytes(content)
    assert "cannot be ranked" not in runs_page(runs[:2], "").answer
    assert "cannot be ranked" in runs_page(runs[1:], "").answer


def test_what_differs_is_said(tmp_path: Path) -> None:
    one = summarise([open_run(write_run(tmp_path / "ppo", preset="ppo"))])[0]
    two = summarise([open_run(write_run(tmp_path / "hop", preset="hop-plus"))])[0]
    page = runs_page([one, two], "")
    section = next(part for part in page.sections if part.title == "What differs")
    rows = {row[0]: row[1:] for row in section.cells}
    assert rows["ppo.learning_rate"] == ["0.001", "0.002"]
    assert rows["parts"] == ["-", "opponent, goal, world, imagination"]
    assert "game.size" not in rows
    assert not any(part.title == "What differs" for part in runs_page([one], "").sections)


def test_progress_shows_the_learners_mean() -> None:
    returns = np.array([4.0, 1.0])
    assert note_on(Moment(1, 10, returns, [1])) == "return 1.00 (seats 4.00 1.00*)"
    assert note_on(Moment(1, 10, returns, [0, 1])) == "return 2.50 (seats 4.00 1.00)"
    assert note_on(Moment(1, 10, None, [1])) == ""


def test_means_that_cannot_be_told_apart_are_not_ranked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = 0.1 * rng.normal(size=(6, 5, 4))
    paths = [write_run(tmp_path / "a", 2.0 + noise), write_run(tmp_path / "b", 2.01 - noise)]
    page = runs_page(summarise([open_run(path) for path in paths]), "")
    assert page.answer.startswith("No significant difference between")
    one = [
        write_run(tmp_path / name, np.full((3, 1, 4), high)) for name, high in (("c", 1), ("d", 3))
    ]
    page = runs_page(summarise([open_run(path) for path in one]), "")
    assert page.answer == "One seed cannot tell d (3.000) from c (1.000): train more"


def test_every_seed_is_evaluated(small_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--episodes", "64"]
    one_by_one = []
    for seed in (0, 1):
        assert main(["evaluate", f"{small_run}#{seed}", *few, "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        assert alone["seeds"] == [seed]
        assert alone["mean_return"]["over_seeds"] is None
        one_by_one.append(alone["mean_return"]["mean"])
    assert one_by_one[0] != one_by_one[1]
    assert main(["evaluate", str(small_run), *few, "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert both["seeds"] == [0, 1]
    assert both["mean_return"]["by_seed"] == pytest.approx(one_by_one)
    assert both["mean_return"]["mean"] == pytest.approx(np.mean(one_by_one))
    over = both["mean_return"]["over_seeds"]
    half = 12.7062 * abs(one_by_one[0] - one_by_one[1]) / 2  # Student's, one degree of freedom
    assert over["high"] - over["mean"] == pytest.approx(half, rel=1e-4)
    assert main(["evaluate", str(small_run), *few]) == 0
    out = capsys.readouterr().out
    assert "64 episodes of each of 2 seeds" in out
    assert re.search(rf"mean by seed: 0: {one_by_one[0]:.3f}, 1: {one_by_one[1]:.3f}", out)
