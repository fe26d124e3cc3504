"""Curves of a report: bins, lines of seats, what was not logged, and how much there may be."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fake_runs import write_run
from hopplus.report.html import page_text
from hopplus.report.page import Page
from hopplus.report.pages.curves import Curved, curves_section
from hopplus.report.pages.logged import Logged, read_logged
from hopplus.report.translations import Translations
from hopplus.runs.folder import open_run
from test_report import charts_of, logged_of, warnings_of


def test_bins_are_means() -> None:
    # Five updates in two bins: the first two, the last three; a number that is none counts nothing.
    logged = logged_of(loss=[[1, 5], [3, 5], [1, np.nan], [2, 4], [6, 8]])
    thin = logged.thinned(2)
    np.testing.assert_array_equal(thin.steps, [150, 400])
    found = thin.get("loss")
    assert found is not None
    np.testing.assert_allclose(found[:, :, 0], [[2, 5], [3, 6]])
    assert len(logged.thinned(9).steps) == 5


def test_returns_count_by_their_episodes() -> None:
    """Two seeds, one seat, two bins of two updates; in the last one nothing ended for any seed."""
    charts = charts_of(
        replace(
            logged_of(
                return_sum=[[[2.0], [9.0]], [[6.0], [0.0]], [[0.0], [0.0]]],
                episodes=[[1, 3], [1, 0], [0, 0]],
            ),
            steps=np.array([1.0, 2.0, 3.0]),
        )
    )
    mean = charts["Return"]["lines"][0]
    assert mean["name"] == "mean over seats"
    assert mean["y"] == [2.5, 6, None]  # (2 + 3) / 2; the first seed alone; none
    assert mean["low"] == [2, 6, None]
    assert mean["high"] == [3, 6, None]


def test_seats_have_lines_of_their_own() -> None:
    one = logged_of(return_sum=[[[10.0, 30.0]]], episodes=[[10]])
    lines = charts_of(one, best=3.0)["Return"]["lines"]
    assert [(line["name"], line["y"]) for line in lines] == [
        ("mean over seats", [2]),
        ("seat 0", [1]),
        ("seat 1", [3]),
    ]
    assert not any("low" in line for line in lines)  # of one seed there is no band
    assert not any(line.get("quiet") for line in lines)
    two = charts_of(one, one, best=3.0)["Return"]
    assert [line.get("quiet") for line in two["lines"]] == [None, True, True] * 2
    assert two["levels"] == [{"name": "best possible", "y": 3}]


def test_recall_by_action() -> None:
    logged = logged_of(
        opponent__accuracy=[[[0.5, 0.7]]],
        opponent__count=[[[[[4, 0]], [[4, 0]]]]],
        opponent__hit=[[[[[1, 0]], [[3, 0]]]]],
    )
    lines = charts_of(logged, actions=("stay", "up"))["Opponent accuracy"]["lines"]
    found = [(line["name"], line["y"]) for line in lines]
    assert found == [("all actions", [0.6]), ("stay", [0.5]), ("up", [None])]


def test_accuracy_by_seat_and_by_other() -> None:
    """[U, S, sets, N - 1, A]: the first other of a seat is the next one."""
    count = [[[[[4, 0], [2, 2]], [[5, 5], [0, 0]], [[1, 0], [0, 1]]]]]
    logged = logged_of(
        opponent__accuracy=[[[0.1, 0.2, 0.3]]],
        opponent__top3=[[[0.5, 0.6, 0.7]]],
        opponent__count=count,
        opponent__hit=[[[[[1, 0], [0, 1]], [[5, 0], [0, 0]], [[1, 0], [0, 0]]]]],
        opponent__hit_top3=count,
    )
    charts = charts_of(logged)
    lines = charts["Opponent accuracy by seat"]["lines"]
    seats = [("all seats", [0.2]), ("seat 0", [0.25]), ("seat 1", [0.5]), ("seat 2", [0.5])]
    others = [
        ("seat 0 of seat 1", [0.25]),
        ("seat 0 of seat 2", [0.25]),
        ("seat 1 of seat 2", [0.5]),
        ("seat 1 of seat 0", [None]),
        ("seat 2 of seat 0", [1]),
        ("seat 2 of seat 1", [0]),
    ]
    assert [(line["name"], line["y"]) for line in lines] == seats + others
    assert [bool(line.get("quiet")) for line in lines] == [False] * 4 + [True] * 6
    assert charts["Opponent top-3 by seat"]["lines"][1]["y"] == [1]
    # A set of parameters that all seats share is no seat's own.
    shared = {name: values[:, :, :1] for name, values in logged.values.items()}
    lines = charts_of(logged_of(**shared))["Opponent accuracy by seat"]["lines"]
    assert [line["name"] for line in lines] == ["all seats"]


def test_what_was_not_imagined_is_no_zero(tmp_path: Path) -> None:
    shut = {"imagined/open": [[0.0] * 4] * 2, "imagined/value_loss": [[0.0] * 4] * 2}
    path = write_run(tmp_path / "a", updates=3, seeds=2, more=[shut])
    charts = charts_of(read_logged(open_run(path)), gate=0.2)
    real, imagined = charts["Value loss by source"]["lines"]
    assert real["name"] == "real"
    assert imagined["y"][0] is None
    assert imagined["y"][1] > 0
    assert charts["Imagination"]["lines"][0]["y"][0] == 0
    assert charts["World error"]["levels"] == [{"name": "gate", "y": 0.2}]


def test_metrics_that_are_logged_rarely_have_steps_of_their_own(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", updates=4, seeds=1)
    lines = (path / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for number in (1, 3):
        del records[number]["goal/loss/kl"]
    (path / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    charts = charts_of(read_logged(open_run(path)))
    kl, reconstruction = charts["Loss of the goal model"]["lines"]
    assert kl["x"] == [records[0]["steps"], records[2]["steps"]]
    assert len(kl["y"]) == 2
    assert "x" not in reconstruction
    assert len(reconstruction["y"]) == len(charts["runs"][0]["x"]) == 4


def test_what_is_no_number_is_left_out(tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "value_loss": [[float("nan")] * 4] * 2,
        "text": [["a"] * 4] * 2,
        "uneven": [[1], [1, 2]],
        "entropy": "no list",
        "explained": None,
    }
    path = write_run(tmp_path / "a", updates=3, seeds=2, more=[{}, odd])
    logged = read_logged(open_run(path))
    assert not {"text", "uneven", "entropy"} & set(logged.values)
    assert logged.spoilt == 1
    charts = charts_of(logged)
    assert charts["Value loss by source"]["lines"][0]["y"][1] is None
    assert "1 updates have numbers that are not finite" in warnings_of(path)


def test_models_have_epochs_and_players_have_steps() -> None:
    fit = logged_of(fitted_loss=[[1.0], [0.5]], held_out_loss=[[1.5], [1.0]])
    play = logged_of(return_sum=[[[10.0, 30.0]]], episodes=[[10]])
    charts = charts_of(play, replace(fit, by_epoch=True))
    assert charts["Return"]["axis"] == "environment steps of each seed"
    assert charts["Loss of the model"]["axis"] == "epochs"
    held_out = charts["Loss of the model"]["lines"][1]
    assert (held_out["run"], held_out["y"]) == (1, [1.5, 1])


def test_many_points_make_a_page_of_bearable_size() -> None:
    """Five runs of ten seeds with 2,000 points each of everything HOP+ logs."""
    noise = np.random.default_rng(0).normal(size=(2000, 10, 4))
    names = [name for chart in _metric_names() for name in chart]
    values = dict.fromkeys(names, noise) | {
        "return_sum": 10 * noise,
        "episodes": np.full((2000, 10), 10.0),
    }
    logged = Logged(np.arange(2000.0), False, values, 0, {})
    section = curves_section([Curved(f"run {n}", logged) for n in range(5)], Translations())
    lines = [line for chart in section.data["charts"] for line in chart["lines"]]
    assert {len(line["y"]) for line in lines} == {500}
    assert len(lines) > 5 * 30
    assert "at most 500 a curve" in section.text
    assert len(page_text(Page("title", "answer", "good", sections=[section]))) < 3e6
    for count, points in ((1, 500), (20, 125)):
        runs = [Curved(f"run {n}", logged_of(entropy=noise)) for n in range(count)]
        assert len(curves_section(runs, Translations()).data["runs"][0]["x"]) == points


def _metric_names() -> list[list[str]]:
    from hopplus.report.pages.curves import list_charts

    return [
        [name + "part" * name.endswith("/") for name in chart.names]
        for chart in list_charts()
        if "fitted" not in " ".join(chart.names)
    ]
