"""`hopplus bench search`: its lines, its JSON, where the time goes, and what it refuses."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from hopplus.bench.breakdown import breakdown
from hopplus.bench.search import SCOPES, SearchSpeed
from hopplus.cli import main
from hopplus.config import SearchConfig

_TINY = """
--game.size 2 --game.seats 2 --game.hares 1 --game.horizon 5 --search.simulations 6 --search.trees 2
--games 3 --rounds 2
"""
TINY = ["bench", "search", *_TINY.split()]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What it prints as JSON, of programs that are compiled quickly."""
    said: list[str] = []
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("builtins.print", lambda text: said.append(text))
            assert main([*TINY, "--breakdown", "--json"]) == 0
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    (text,) = said
    result: dict[str, Any] = json.loads(text)
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


def test_all_of_a_decision_is_told_apart(found: dict[str, Any]) -> None:
    spent = found["breakdown"]
    assert list(spent) == [*SCOPES, "rest"]
    assert min(spent[name] for name in ("prepare", "select", "expand", "backup")) > 0
    assert spent["infer"] == 0  # there are no goals to infer


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

    spent = {"select": 0.001, "rest": 0.25}
    monkeypatch.setattr("hopplus.cli.bench_search.measure_search", measured)
    monkeypatch.setattr("hopplus.cli.bench_search.decision_breakdown", lambda *_: spent)
    assert main([*TINY, "--curve", "--breakdown"]) == 0
    first, second, *curve, select, rest = capsys.readouterr().out.splitlines()
    assert "2x2, 2 seats that all search, 3 games, 2 trees" in first
    # 3 games at 50 steps a second are 60 ms, of 6 simulations.
    assert "6 simulations:       50.0 environment steps/s,  10,000 us a simulation" in second
    assert "mctx 10.0 steps/s, ratio 5.0" in second
    assert "25.0, ratio 2.0" in second
    assert [int(line.split()[0]) for line in curve] == [50, 100, 200, 400]
    assert not any("mctx" in line for line in curve)
    assert select.split() == ["select", "1.00", "ms"]
    assert rest.split() == ["rest", "250.00", "ms"]


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
