"""The soak: its program really learns, and its counts are what happened."""

import subprocess
from typing import Any

import jax
import pytest

from benchmarks.soak import HUNG, Soak, program, soak


def test_the_program_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it may be left out by the compiler as unused."""
    lowered: list[str] = []

    def look(function: Any) -> Any:
        def instead(*arguments: Any) -> Any:
            lowered.append(real(function).lower(*arguments).as_text())
            return (), {}

        return instead

    real = jax.jit
    monkeypatch.setattr(jax, "jit", look)
    program(3)
    assert lowered[0].count("dot_general") > 10
    assert "sort" in lowered[0]


def test_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([0, HUNG, 1, 0])
    environments: list[dict[str, str]] = []

    def run(*arguments: Any, env: dict[str, str], **rest: Any) -> Any:
        environments.append(env)
        return subprocess.CompletedProcess([], next(ends), "", "it failed")

    monkeypatch.setattr(subprocess, "run", run)
    said: list[str] = []
    found = soak(4, 10, unsafe=True, on_run=said.append)
    assert (found.finished, found.hung, found.failed) == (2, 1, 1)
    assert said[1:3] == ["hung", "it failed"]
    assert environments[0]["XLA_FLAGS"].endswith("scheduler=true")
    ends = iter([HUNG])
    assert soak(1, 10, unsafe=False, on_run=said.append) == Soak(0, 1, 0, None)
    assert not environments[-1].get("XLA_FLAGS", "").endswith("scheduler=true")
