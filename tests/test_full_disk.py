"""A disk that takes nothing: one sentence, and whatever is half written is taken away."""

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from hopplus.cli import main
from refusals import tree

SMALL_COLLECT = (
    "collect --players stag,hare --game.size 3 --game.seats 2 --game.hares 2 --episodes 4"
    " --games 4 --out new"
)


@pytest.mark.parametrize(
    "command",
    [
        "train ppo --game.size 3 --game.seats 2 --game.hares 2 --name new",
        "pretrain world --data data --name new",
        SMALL_COLLECT,
        "export runs/a --out x.safetensors",
        "report runs/a --quick",
    ],
)
@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_disk_that_takes_nothing(
    command: str,
    reason: int,
    place: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is half written is taken away again."""

    def fail(*_: object) -> NoReturn:
        raise OSError(reason, os.strerror(reason))

    main(["list", "games"])
    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr("hopplus.runs.progress.Progress.advance", lambda *_: None)
    before = tree(Path())
    capsys.readouterr()
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert os.strerror(reason) in err.splitlines()[-1]
    assert "Traceback" not in err
    assert tree(Path()) == before


@pytest.mark.parametrize("command", ["list games", "evaluate --players stag,stag,hare,random"])
def test_output_that_is_full(command: str) -> None:
    """As `hopplus list games > /dev/full`."""
    import subprocess
    import sys

    more = ["--episodes", "8", "--games", "8"] if command.startswith("evaluate") else []
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "hopplus", *command.split(), *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ended.returncode == 1
    assert "cannot write: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
