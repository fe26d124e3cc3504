"""`python -m benchmarks.methods`: rows that differ as they say, and what their curves tell."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import main, methods
from benchmarks.methods import FALL, GROUPS, ROWS, MethodsBench, choose, fall_of
from conftest import SMALL_GAME
from hopplus.config import ConfigError, differing
from hopplus.evaluation.ablation import Trace, measure
from hopplus.learning.from_run import make_learner


def test_rows_differ_from_the_plain_one_as_they_say() -> None:
    plain = FALL["mcts-root"]
    world = ("parts", "search.world")
    expected = {
        "mcts-root": set(),
        "old-data": {"distil.replay"},
        "own-value": {"distil.value_target"},
        "discount": {"search.discount", "ppo.discount"},
        "learned-world": {*world},
        "learned-gated": {*world, "distil.gate"},
        "steady": {"ppo.anneal"},
    }
    together = {*world, "distil.replay", "distil.value_target", "ppo.anneal"}
    discounted = {*together, "search.discount", "ppo.discount"}
    expected |= {"undiscounted": together, "all": discounted}
    expected["all-gated"] = {*discounted, "distil.gate"}
    final = {"search.discount", "ppo.discount", "ppo.gae_lambda", "ppo.games", "ppo.unroll"}
    expected["final-reward"] = final
    assert {name: set(differing([plain, row])) for name, row in FALL.items()} == expected


def test_every_row_can_be_made() -> None:
    for config in ROWS.values():
        make_learner(replace(config, steps=1), {})


def test_rows_are_chosen_by_name_and_group() -> None:
    assert choose(()) == list(ROWS)
    assert choose(("fall",)) == [name for name in ROWS if name in FALL]
    assert choose(("hop", "ppo")) == ["ppo", "hop"]
    assert set().union(*GROUPS.values()) == set(ROWS)
    with pytest.raises(ConfigError, match="'hops'"):
        choose(("hops",))


def trace(returns: list[list[float]]) -> Trace:
    """[U, S] returns of two episodes each, in updates of a hundred steps."""
    sums = 2.0 * np.array(returns)
    return Trace("a", "a", 100, sums, np.full(sums.shape, 2), np.zeros(sums.shape), 1.0)


def test_the_fall_of_curves_by_hand() -> None:
    """Twenty updates, so stretches of two: one seed falls by 2 from its best, one does not."""
    rising = np.linspace(0, 1.9, 20)
    falling = np.where(np.arange(20) == 9, 2.0, np.where(np.arange(20) < 10, 3.0, 1.0))
    found = fall_of(trace(np.stack([rising, falling], axis=1).tolist()))
    assert found.worst == pytest.approx(2.0)
    assert found.fall.mean == pytest.approx(1.0)
    assert found.best.mean == pytest.approx((1.85 + 3.0) / 2)
    assert found.at.mean == pytest.approx((2000 + 400) / 2)


def test_rows_are_cut_off_at_equal_time() -> None:
    """Ten updates of a second each: when the first row is done, or after so many seconds."""
    slow = trace([[float(update)] * 2 for update in range(10)])
    quick = replace(slow, seconds=0.4)
    assert [row.timed_updates for row in measure([quick, slow], 1.0)] == [10, 4]
    assert [row.timed_updates for row in measure([quick, slow], 1.0, 2.0)] == [5, 2]


@pytest.mark.usefixtures("shared_programs")
def test_it_trains_and_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two rows, trained by two commands into one folder; a third puts them together."""
    monkeypatch.setattr(methods, "ROWS", {name: ROWS[name] for name in ("ppo", "pg")})
    options = ["--steps", "8192", "--seeds", "2", "--runs", str(tmp_path / "r"), *SMALL_GAME]

    def run(*more: str, key: str = "rows") -> tuple[int, Any]:
        status = main(MethodsBench, [*options, "--json", *more])
        said = capsys.readouterr()
        return status, json.loads(said.out)[key] if status == 0 else said.err

    assert "no row is done" in run("--no-train")[1]
    for name in ("ppo", "pg"):
        status, (one,) = run("--only", name)
        assert (status, one["title"]) == (0, name)
    first, second = run("--no-train")[1]
    assert (first["title"], second["title"]) == ("ppo", "pg")
    assert first["mean_return"]["mean"] == pytest.approx(np.mean(first["by_seed"]))
    assert first["fall"]["best"]["mean"] >= first["mean_return"]["mean"]
    assert first["hit"] is first["probe"] is None
    assert second["seconds"] > 0
    assert (tmp_path / "r/all.json").exists()
    monkeypatch.setattr(methods, "WARM", 1)
    alone = run("--time", "--only", "pg", key="seconds")[1]
    assert set(alone) == {"pg"}
    assert alone["pg"] > 0
    first, second = run("--no-train")[1]  # what was timed alone takes the place of the run's own
    assert second["seconds"] == pytest.approx(alone["pg"] * second["updates"])
    assert "other settings" in run("--level", "1", "--steps", "4096")[1]
