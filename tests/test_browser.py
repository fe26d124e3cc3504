"""Pages that were not tested are skipped for a newcomer and a failure where that is asked for."""

from pathlib import Path

import pytest

from browser import SETTING, find_chromium


def test_skipped_without_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(SETTING, raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt install chromium"):
        find_chromium()


def test_a_failure_where_one_is_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(SETTING, "required")
    with pytest.raises(pytest.fail.Exception, match="no chromium here"):
        find_chromium()


def test_found_by_any_of_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "chromium-browser"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_chromium() == str(program)
