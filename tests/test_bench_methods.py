"""`python -m benchmarks.methods`: rows that differ as they say, and what their curves tell."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import main, methods
from benchmarks.kept import keep_figures
from benchmarks.methods import FALL, GROUPS, ROWS, MethodsBench, choose, fall_of
from benchmarks.parts import PARTS, adapted_tables
from conftest import SMALL_GAME
from hopplus.config import ConfigError, differing
from hopplus.evaluation.ablation import Trace, measure
from hopplus.learning.from_run import make_learner
from hopplus.presets import PRESETS
from hopplus.runs.folder import open_run


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
    expected["final-reward-r2"] = {*final, "distil.replay", "distil.normalise"}
    assert {name: set(differing([plain, row])) for name, row in FALL.items()} == expected


def test_parts_differ_in_what_is_made_of_the_others_and_in_imagination() -> None:
    """And in what the weight of values has to do with imagined steps."""
    rows = {name: row for name, row in PARTS.items() if not name.endswith("-imagination")}
    assert list(rows) == ["blind", "memory", "liam", "belief", "traits", "goal"]
    for name, row in rows.items():
        more = PARTS[f"{name}-imagination"]
        assert set(differing([row, more])) == {"parts", "ppo.value_weight"}
        assert set(more.parts) - set(row.parts) == {"opponent", "world", "imagination"} - set(
            row.parts
        )
        others = {"parts", "memory.kind"} if name == "memory" else {"parts"}
        assert set(differing([rows["blind"], row])) <= others
        assert row.train_against == "population"
    contexts = [row.context_names for row in rows.values()]
    names = ("none", "recurrent", "liam", "belief", "traits", "goals")
    assert contexts == [(name,) for name in names]
    preset = differing([PRESETS["hop-plus-trial"], PARTS["goal-imagination"]])
    assert all(name.startswith(("train_against", "liam.", "belief.")) for name in preset)
    assert PARTS["liam"].liam.fits == PARTS["goal"].goal.fits == 16


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


def test_parts_adapt_among_families(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blind row, made small; then what it is given of the wall time of another one."""
    blind = PARTS["blind"]
    small = replace(
        blind,
        net=replace(blind.net, hidden=8),
        ppo=replace(blind.ppo, games=8, unroll=12, minibatches=2),
        trial=2,
    )
    rows = {"ppo": ROWS["ppo"], "blind": small, "goal": small}
    monkeypatch.setattr(methods, "ROWS", rows)
    runs = tmp_path / "r"
    given = ["--seeds", "2", "--steps", "288", "--runs", str(runs), "--json", *SMALL_GAME]
    held = ["--held-out", "family-slow", "family-shy", "--adapt", "--trials", "4"]

    def run(*more: str) -> Any:
        status = main(MethodsBench, [*given, *more])
        said = capsys.readouterr()
        return json.loads(said.out) if status == 0 else said.err

    found = run("--only", "blind", *held)
    seats = open_run(runs / "blind").config().seats
    assert seats is not None
    assert not {"family-slow", "family-shy"} & set(seats.split(",")[1].split("|"))
    returns = np.array(found["adapted"]["returns"]["blind"])
    assert returns.shape == (2, 16, 2)
    last = open_run(runs / "blind").metrics()[-1]
    own = np.array(last["return_sum"])[:, 0] / np.array(last["episodes"])  # who learns
    assert found["rows"][0]["mean_return"]["mean"] == pytest.approx(own.mean())
    # What is kept is not played again, and is put together by who was met.
    monkeypatch.setattr("benchmarks.parts.adapt", None)
    done, kept = {"blind": open_run(runs / "blind")}, runs / "adapted.json"
    (strange, met), _ = adapted_tables(done, ("family-slow", "family-shy"), 4, kept)
    away = np.array([name in held for name in found["adapted"]["families"]])
    for table, which in ((strange, away), (met, ~away)):
        (row,) = table.rows or []
        assert row[0] == "blind"
        assert [cell.mean for cell in row[1:]] == pytest.approx(returns[:, which].mean((0, 1)))
    assert "--only parts" in run("--only", "ppo", "--adapt")
    assert "was not timed" in run("--only", "blind", "--as-long-as", "goal")
    game = open_run(runs / "blind").config().game
    timed = {"seeds": 2, "game": asdict(game)}
    for name, seconds in {"goal": 3.0, "blind": 1.0}.items():
        keep_figures(runs / methods.ALONE, {name: {**timed, "seconds": seconds}})
    bench = MethodsBench(game=game, seeds=2, steps=288, runs=runs, as_long_as="goal")
    assert [bench._config(name).steps for name in ("blind", "goal")] == [864, 288]
