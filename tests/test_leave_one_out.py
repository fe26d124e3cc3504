"""Leave-one-family-out: figures worked by hand, and their page."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hopplus.evaluation.leave_one_out import Table
from hopplus.report.figures.evaluation import draw_families
from hopplus.report.pages.leave_one_out import leave_one_out_page

# Two seeds, three families, two episodes. Blind has 1 and best responses 3 among the first; 1 and
# 2, then 5 among the second; and among the third nothing is to be had.
BLIND = np.array([[[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]] * 2)
BEST = np.array([[[3.0, 3.0], [2.0, 5.0], [2.0, 2.0]]] * 2)
OTHER = np.array([[[2.0, 3.0], [1.0, 3.0], [4.0, 3.0]], [[2.0, 3.0], [1.0, 3.0], [4.0, 3.5]]])
FOUND = Table(["a", "b", "c"], {"ppo": BLIND, "memory": OTHER}, "ppo", BEST)


def means(estimates: Any) -> list[float]:
    return [one.mean for one in estimates]


def test_shares_of_the_way() -> None:
    first, second, third = FOUND.shares("memory")
    assert means(first) == [0.5, 1.0]
    assert means(second) == [0.0, 0.5]
    assert third is None  # there is no way
    assert FOUND.passable == [0, 1]
    # The way is 3 and 6 of three families together; of it, 3 and 5 (5.5 with the other seed).
    share = FOUND.share_of_mean("memory")
    assert share is not None
    assert means(share) == pytest.approx([1.0, 5.25 / 6])
    assert share[1].half_width == pytest.approx(12.7062 * 0.25 / 6, rel=1e-4)
    assert means(FOUND.mean_of_shares("memory")) == pytest.approx([0.25, 0.75])
    assert means(FOUND.shares("ppo")[0]) == [0, 0]
    # Of blind of the same seed: what both seeds lack alike is no doubt.
    apart = np.array([[[0.0]], [[4.0]]])
    moved = replace(FOUND, rows={"ppo": BLIND + apart, "memory": OTHER + apart}, best=BEST + apart)
    assert moved.share_of_mean("memory") == share


def test_no_share_where_best_responses_are_not_clearly_ahead_or_not_known() -> None:
    noisy = BEST.copy()
    noisy[:, 0] = [[1.1, 1.1], [5.0, 5.0]]  # 0.1 and 4 more than blind
    assert replace(FOUND, best=noisy).passable == [1]
    unknown = BEST.copy()
    unknown[:, 1] = np.nan
    found = replace(FOUND, best=unknown)
    assert found.passable == [0]
    assert found.share_of_mean("memory") is None
    assert found.mean_of_shares("memory") is not None
    assert replace(FOUND, best=BLIND).mean_of_shares("memory") is None
    page = leave_one_out_page("t", found, [])
    assert "best responses to 1 of the families are not known" in page.lines
    assert page.sections[0].cells[1][2] == ""
    # Where the way leads down in one episode, that one alone has no share.
    down = BEST.copy()
    down[:, 1, 0] = 0.5
    later = replace(FOUND, best=down)
    assert np.isnan(means(later.shares("memory")[1])).tolist() == [True, False]
    assert np.isnan(means(later.mean_of_shares("memory"))).tolist() == [True, False]


def test_what_is_lost_on_the_way() -> None:
    among = [FOUND.change("memory", place) for place in range(3)]
    assert means(among) == pytest.approx([0.5, 2.0, -0.75 / 4])
    overall = FOUND.change("memory")
    assert overall is not None
    assert overall.mean == pytest.approx((9.25 - 7) / 7)
    assert FOUND.fallen("memory") == ["c"]
    assert FOUND.fallen("ppo") == []
    little = OTHER.copy()
    little[:, 2] = [4.0, 3.9]  # a fortieth
    assert replace(FOUND, rows={"ppo": BLIND, "memory": little}).fallen("memory") == []
    poor = replace(FOUND, rows={"ppo": BLIND, "memory": OTHER - 4})
    assert means([poor.change("memory", 0)]) == [0.5]  # from -2 to -1
    assert poor.change("memory", 2) is None  # of nothing there is no share
    assert poor.fallen("memory") == ["c"]  # but it can be lost


def test_who_is_ahead() -> None:
    trial, last = FOUND.comparisons()
    assert (trial.one, trial.other, trial.over) == ("memory", "ppo", "the trial")
    assert trial.difference.mean == pytest.approx((1.5 + 1.0 + 1.625) / 3)
    assert means(trial.by_family) == pytest.approx([1.5, 1.0, 1.625])
    assert last.over == "episode 2"
    # 1 and 1.5 more in the last episode among the third: of two seeds that is not clear.
    assert [last.places(side) for side in (1, 0, -1)] == [[0, 1], [2], []]
    worse = OTHER.copy()
    worse[:, 0] = 0.5
    last = list(replace(FOUND, rows={"ppo": BLIND, "memory": worse}).comparisons())[1]
    assert last.places(-1) == [0]
    alone = Table(["a"], {"ppo": BLIND[:1, :1], "memory": OTHER[:1, :1]}, "ppo", BEST[:1, :1])
    assert next(alone.comparisons()).places(0) == [0]  # one seed tells nothing


def test_episodes_of_tables() -> None:
    for count, numbers in {1: [1], 2: [1, 2], 3: [1, 3], 5: [1, 3, 5]}.items():
        assert replace(FOUND, best=np.zeros((2, 3, count))).numbers == numbers


def test_the_page() -> None:
    page = leave_one_out_page("title", FOUND, ["more"])
    assert page.answer.startswith(
        "memory closes most of the gap from blind to best responses: 0.875 ±"
    )
    assert page.mark == "bad"  # of two seeds
    assert any(
        "no share in 1 of 3 families" in line and line.endswith(": c") for line in page.lines
    )
    assert "memory loses over 3% of its return by the last episode in: c" in page.lines
    assert "ppo loses over 3% of its return by the last episode in: no family" in page.lines
    assert page.lines[-1] == "more"
    returns, shares, changes, ahead, _ = page.sections
    assert [column.name for column in returns.columns] == [
        *("left out", "blind", "best responses", "memory\nepisode 1", "memory\nepisode 2")
    ]
    assert [cell[:5] for cell in returns.cells[1]] == ["b", "1.000", "3.500", "1.000", "3.000"]
    assert [cell[:5] for cell in returns.cells[-1]][2:] == ["2.833", "2.333", "3.083"]
    assert [row[0] for row in shares.cells[-2:]] == ["share of the mean gap", "mean of 2 shares"]
    assert shares.cells[2] == ["c", "-", "-"]
    assert shares.cells[-1][1].startswith("0.250")
    assert changes.cells[-1][0] == "mean"
    assert ahead.cells[1][4:] == ["2 of 3", "-", "c"]
    json.dumps(page.payload, default=lambda one: one.as_json())
    assert page.payload["comparisons"][1]["not_clear"] == ["c"]
    assert page.payload["rows"]["memory"]["fallen"] == ["c"]
    blind = leave_one_out_page("t", replace(FOUND, rows={"ppo": BLIND}), [])
    assert blind.answer.endswith("is not known")
    assert len(blind.sections) == 4


def test_the_picture() -> None:
    axes = draw_families(FOUND).axes
    assert [one.get_title() for one in axes[:4]] == ["mean", "a", "b", "c"]
    for place, among in ((0, slice(None)), (2, slice(1, 2))):
        drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in axes[place].get_lines()}
        for name, returns in {"memory": OTHER, "blind": BLIND, "best responses": BEST}.items():
            np.testing.assert_allclose(drawn[name], returns[:, among].mean(axis=(0, 1)))
    assert len(axes[0].collections) == 1  # a band over seeds
    assert not axes[-1].axison  # nothing is left to show
