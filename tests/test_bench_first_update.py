"""The table of a first update: a warm start traces nothing of what a cold one does."""

from pathlib import Path

import pytest

from benchmarks import main
from benchmarks.first_update import FirstUpdate, measured
from conftest import SMALL_RUN
from hopplus.program_cache import SWITCH


def test_a_warm_start_compiles_nothing_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "1")
    cold, warm = (measured("ppo", start, tmp_path, SMALL_RUN) for start in ("cold", "warm"))
    for step in ("trace", "lower", "compile"):
        assert cold["wall"][f"{step} init_all"] > 0
        assert f"{step} init_all" not in warm["wall"]
    assert cold["cpu"]["until the first update"] > cold["cpu"]["import"] > 0
    assert warm["cpu"]["until the first update"] < cold["cpu"]["until the first update"]


def test_wrong_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(FirstUpdate, ["--presets", "pop"]) == 2
    assert "'pop'" in capsys.readouterr().err
