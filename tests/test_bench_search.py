"""`hopplus bench search`: its lines, its JSON, where the time goes, and what it refuses."""

import contextlib
import io
import json
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import benchmarks
from benchmarks.breakdown import SCOPES, STAGES, Breakdown, breakdown
from hopplus.cli import main
from hopplus.cli.bench.search import SearchSpeed
from hopplus.config import PPOConfig, SearchConfig, TrainConfig
from tiny_hop_plus import TINY as TINY_NET

_TINY = """
--game.size 2 --game.seats 2 --game.hares 1 --game.horizon 5 --search.simulations 6 --search.trees 2
--games 3 --rounds 2
"""
TINY = ["bench", "search", *_TINY.split()]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What it prints as JSON, of programs that are compiled quickly."""
    said = io.StringIO()
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        with contextlib.redirect_stdout(said):
            assert main([*TINY, "--json"]) == 0
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    result: dict[str, Any] = json.loads(said.getvalue())
    return result


def test_both_searches_are_measured(found: dict[str, Any]) -> None:
    assert "jax" in found["machine"]
    (speed,) = found["speeds"]
    assert speed["simulations"] == 6
    assert min(speed[name] for name in ("ours", "mctx", "mctx_within", "compile_seconds")) > 0
    assert speed["ratio"] == pytest.approx(speed["ours"] / speed["mctx"])
    assert speed["ratio_within"] == pytest.approx(speed["ours"] / speed["mctx_within"])
    # Both look at the same moments with the same networks.
    assert speed["our_value"] == pytest.approx(speed["mctx_value"], abs=0.5)


def test_all_of_a_decision_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    tiny = _TINY.replace("--rounds 2", "").split()
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        assert benchmarks.main(Breakdown, [*tiny, "--json"]) == 0
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    spent = json.loads(capsys.readouterr().out)["breakdown"]
    assert list(spent) == [*SCOPES, "rest"]
    assert min(spent[name] for name in ("prepare", "select", "expand", "backup")) > 0
    assert spent["infer"] == 0  # there are no goals to infer


def test_all_of_an_update_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of players that search, by far the most is choosing actions."""
    ppo = PPOConfig(games=4, unroll=4, minibatches=1, epochs=1)
    small = TrainConfig(net=TINY_NET, ppo=ppo, search=SearchConfig(simulations=8, trees=2))
    monkeypatch.setattr("benchmarks.breakdown.PRESETS", {"small": small})
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        game = ["--game.size", "2", "--game.seats", "2", "--game.hares", "1", "--game.horizon", "5"]
        assert benchmarks.main(Breakdown, ["--update", "small", *game, "--json"]) == 0
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    spent = json.loads(capsys.readouterr().out)["breakdown"]
    assert list(spent) == [*STAGES, "rest"]
    assert min(spent[name] for name in STAGES) > 0
    assert spent["choose"] > 0.5 * sum(spent.values())
    assert benchmarks.main(Breakdown, ["--update", "smal"]) == 2
    assert "no preset 'smal'" in capsys.readouterr().err


def test_time_is_counted_where_it_is_spent() -> None:
    """A program that does much in one scope and little in another, one inside the other."""

    def program(x: jax.Array) -> jax.Array:
        with jax.named_scope("outer"):
            y = x + 1
            with jax.named_scope("inner"):

                def step(y: jax.Array, _: None) -> tuple[jax.Array, None]:
                    return jnp.sin(y @ y.T / 1e3), None

                y, _ = jax.lax.scan(step, y, None, length=200)
        return y

    spent = breakdown(program, (jnp.ones((100, 100)),), ["outer", "inner", "unused"])
    assert set(spent) == {"outer", "inner", "unused", "rest"}
    assert spent["inner"] > 10 * spent["outer"]
    assert spent["inner"] > 10 * spent["rest"]
    assert spent["unused"] == 0


def test_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def measured(config: Any, search: SearchConfig, *rest: Any) -> SearchSpeed:
        *_, with_mctx = rest
        mctx, within = (10.0, 25.0) if with_mctx else (None, None)
        return SearchSpeed(search.simulations or 0, 50.0, mctx, within, 0.1, 0.1, 1.0)

    monkeypatch.setattr("hopplus.cli.bench.search.measure_search", measured)
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*TINY, "--curve"]) == 0
    out = capsys.readouterr().out
    assert "2x2, 2 seats that all search, 3 games, 2 trees" in out
    rows = [line.strip("│ ").split("│") for line in out.splitlines() if line.startswith("│")]
    first, *curve = [[cell.strip() for cell in row] for row in rows]
    # 3 games at 50 steps a second are 60 ms, of 6 simulations.
    assert first == ["6", "50.0", "10,000", "10.0", "5.0", "25.0", "2.0"]
    assert [row[0] for row in curve] == ["50", "100", "200", "400"]
    assert not any(cell for row in curve for cell in row[3:])  # mctx is measured once


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--search.simulations", "0"], "--search.simulations is 0 but must be from 1 to 32768"),
        (["--search.simulations", "-1"], "search.simulations is -1"),
        (["--search.kind", "one-step", "--search.choice", "values"], "needs --search.kind tree"),
        (["--search.infer-every", "1"], "bench infers nothing"),
        (["--search.world", "learned"], "has learned no world"),
        (["--game.sight", "1"], "nobody sees what is out of sight (game.sight)"),
        (["--parts", "belief"], "--parts has belief, which needs opponent"),
        (["--games", "0"], "--games is 0"),
        (["--rounds", "0"], "--rounds is 0"),
        (["--seed", "-1"], "--seed is -1"),
        (["--tres", "2"], "no option '--tres'"),
        (["--breakdown"], "it is python -m benchmarks.breakdown"),
    ],
    ids=str,
)
def test_wrong_options_are_one_sentence(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TINY, *options]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
