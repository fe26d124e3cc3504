"""Odd numbers in every option of every command that takes one."""

import re
from pathlib import Path

import pytest

from hopplus.cli import _manual, main
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS
from test_wrong_inputs import WRONG

# A command line for every command that is refused for its subject once all of its options are fine.
SUBJECTS = {
    "train": "train hop-plus --seats learn,nope.safetensors,stag,stag",
    "resume": "resume nope",
    "evaluate": "evaluate nope",
    "collect": "collect nope",
    "pretrain": "pretrain opponent --data nope",
    "diagnose": "diagnose seats nope",
    "diagnose value-loss": "diagnose value-loss nope",
    "diagnose models": "diagnose models nope",
    "diagnose adaptation": "diagnose adaptation nope",
    "certify": "certify --against nope/x@0,stag,stag",
    "adapt": "adapt nope",
    "crossplay": "crossplay nope/x nope/y",
    "ablate": "ablate ladder --rungs nope",
    "leave-one-out": "leave-one-out nope",
    "sweep": "sweep ppo --over nope=1",
    "report": "report nope",
    "replay": "replay nope",
    "play": "play nope",
    "export": "export nope --out x",
    "list": "list players --game.size 2",
    "bench": "bench game --game.size 2",
    "bench train": "bench train --game.size 2",
    "bench update": "bench update --game.size 2",
    "bench search": "bench search --game.size 2",
}
ODD = ("nan", "inf", "-1", "0", "", "x", "1e99")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_odd_numbers(
    subject: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every option of every command that takes a number."""
    monkeypatch.chdir(tmp_path)
    line = SUBJECTS[subject].split()
    path = tuple(line[: 2 if line[0] in SUBCOMMANDS else 1])
    numeric = [one.names[-1] for one in _manual(path).options if re.search("INT|FLOAT", one.shown)]
    assert numeric or subject in ("resume", "report")
    # The settings are the same everywhere: all of them for training, one of each group elsewhere.
    grouped = {name.partition(".")[0]: name for name in numeric if "." in name}
    alone = [name for name in numeric if "." not in name]
    for name in numeric if subject == "train" else [*alone, *grouped.values()]:
        for given in ODD if subject != "train" or "." not in name else ("nan", "-1", "1e99"):
            if name in line:
                continue
            assert main([*line, f"{name}={given}"]) == 2, (name, given)
            out, err = capsys.readouterr()
            assert out == ""
            assert err.startswith("hopplus: ")
            assert err.count("\n") == 1
            # What is no number at all is refused for itself, not for what else is wrong.
            other = given in ("-1", "0", "1e99") or "--game.size" in line  # read before it
            assert name in err or other, (name, given, err)
    assert not list(tmp_path.iterdir())


def test_every_command_is_tried() -> None:
    assert {line.split()[0] for line in SUBJECTS.values()} == set(COMMANDS)
    assert len(WRONG) >= 200
