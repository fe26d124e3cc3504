"""Commands that must be refused with one sentence, having written nothing."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hopplus.cli import main

Damage = Callable[[Path], None]
FOUR = "stag,stag,hare,random"


def tree(folder: Path) -> dict[str, str]:
    """Every file there is, by its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in folder.rglob("*")
    }


def refused(
    command: str | Sequence[str], words: str, capsys: pytest.CaptureFixture[str], said: int = 1
) -> None:
    """Check that a command is refused with one sentence, having written nothing."""
    assert not Path("pyproject.toml").exists(), "go to a folder of the test's own: this is large"
    before = tree(Path())
    capsys.readouterr()
    status = main(command.split() if isinstance(command, str) else command)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert all(line.startswith("hopplus: ") for line in lines), err
    assert len(lines) == said, err
    assert words in lines[-1]
    assert status == 2
    assert tree(Path()) == before
