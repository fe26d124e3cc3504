"""`python -m benchmarks.returns`: returns on seeds nobody tuned on, held against those kept."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import main, returns
from benchmarks.returns import KEPT, Learned, ReturnsBench
from conftest import SMALL_GAME
from hopplus.config import make_config
from hopplus.evaluation.statistics import estimate
from hopplus.presets import PRESETS


@pytest.mark.parametrize(
    ("now", "kept", "verdict"),
    [
        ([2.0, 2.1, 1.9], None, "not kept"),
        ([2.0, 2.1, 1.9], [2.0, 2.1, 2.0], "as kept"),
        ([2.0, 2.1, 1.9], [1.0, 1.1, 0.9], "higher"),
        ([1.0, 1.1, 0.9], [2.0, 2.1, 1.9], "LOWER"),
        ([0.0, 9.0, 1.0], [2.0, 2.1, 1.9], "as kept"),  # so few seeds cannot tell
    ],
)
def test_verdicts(now: list[float], kept: list[float] | None, verdict: str) -> None:
    assert Learned("ppo", 1, now, 1.0, kept).verdict == verdict


def test_what_is_kept_is_of_presets_and_their_own_steps() -> None:
    for name, known in json.loads(KEPT.read_text(encoding="utf-8")).items():
        assert known["steps"] == PRESETS[name].steps
        assert (known["seed"], len(known["returns"])) == (100, 5)


def test_documents_quote_what_is_kept() -> None:
    """A figure that stands in a document is followed by a comment that names its preset."""
    rows = json.loads(KEPT.read_text(encoding="utf-8"))
    kept = {name: str(estimate(np.array(row["returns"]))) for name, row in rows.items()}
    root, quoted = KEPT.parents[1], set()
    for path in (*root.glob("*.md"), *(root / "docs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        found = re.findall(r"([\d.]+ ± [\d.]+)<!-- returns:([\w-]+) -->", text)
        assert len(found) == text.count("<!-- returns:"), f"{path.name}: a comment behind no figure"
        for figure, name in found:
            assert figure == kept[name], f"{path.name}: {name} has {kept[name]}"
        for name, figure in kept.items():
            plain = re.findall(rf"{re.escape(figure)}(?!<!-- \w+:)", text)  # nobody's, it seems
            assert not plain, f"{path.name}: {figure} is not said to be of {name}, or of another"
        quoted |= {name for _, name in found}
    assert {"ppo", "pg", "hop-plus", "hop-plus-notes"} <= quoted


@pytest.mark.usefixtures("shared_programs")
def test_it_trains_keeps_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first time there is nothing to compare with; the second finds the run done, and its
    figures kept; a third finds figures that were higher."""
    file = tmp_path / "returns.json"
    file.write_text("{}")
    monkeypatch.setattr(returns, "KEPT", file)
    options = ["--presets", "ppo", "--steps", "8192", "--seeds", "2", "--runs", str(tmp_path / "r")]

    def run(*more: str) -> tuple[int, Any]:
        status = main(ReturnsBench, [*options, *SMALL_GAME, "--json", *more])
        (one,) = json.loads(capsys.readouterr().out)["presets"]
        return status, one

    status, first = run("--keep")
    assert (status, first["verdict"], len(first["by_seed"])) == (0, "not kept", 2)
    monkeypatch.setattr(returns, "train_to_end", lambda *_: pytest.fail("trained again"))
    status, second = run()
    assert (status, second["verdict"]) == (0, "as kept")
    assert second["by_seed"] == second["kept"] == first["by_seed"]
    known = json.loads(file.read_text())
    known["ppo"]["returns"] = [50.0, 50.1]
    file.write_text(json.dumps(known))
    assert run()[0] == 1
    known["ppo"]["steps"] = 1  # of other settings
    file.write_text(json.dumps(known))
    assert run()[1]["verdict"] == "not kept"


def test_all_are_those_that_go_with_the_game() -> None:
    assert set(PRESETS) - set(ReturnsBench()._presets) == {"lola"}  # which is for two seats
    assert ReturnsBench(game=make_config("coin-v1"))._presets == list(PRESETS)


def test_complaints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ReturnsBench, ["--presets", "pp0"]) == 2
    assert "no preset 'pp0'" in capsys.readouterr().err
