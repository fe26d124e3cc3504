"""`python -m benchmarks.peers`: rates in turns, and a sentence where JaxMARL is missing."""

import sys
from typing import Any

import numpy as np
import pytest

from benchmarks import main
from benchmarks.peers import Peers, measure_rates, own_program


def test_rates_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    now, played = [0.0], []
    monkeypatch.setattr("benchmarks.peers.time.perf_counter", lambda: now[0])

    def program(name: str, seconds: float) -> Any:
        def play() -> np.ndarray:
            played.append(name)
            now[0] += seconds
            return np.zeros(1)

        return play

    rates = measure_rates({"a": program("a", 0.5), "b": program("b", 0.25)}, 100, 2)
    assert played == ["a", "b"] * 3  # the first is compilation
    assert rates["a"].tolist() == [200, 200]
    assert rates["b"].tolist() == [400, 400]


def test_our_game_plays_on() -> None:
    play = own_program(3, 4, 0)
    assert np.isfinite(play())
    assert np.isfinite(play())


def test_it_says_that_jaxmarl_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jaxmarl", None)
    assert main(Peers, []) == 2
    assert "jaxmarl is not installed" in capsys.readouterr().err
