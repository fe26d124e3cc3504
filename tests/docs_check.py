"""Runs every command of README.md and docs/, made small, and the notebooks: `make docs-test`."""

import subprocess
import sys
from pathlib import Path

import jax
import pytest

from docs_markdown import Command, steps_of
from docs_runner import Runner, make_makers, run_document
from docs_small import DOCUMENTS, NOTEBOOKS, ROOT, START, code_cells, read_documents


@pytest.mark.parametrize("path", DOCUMENTS, ids=[path.name for path in DOCUMENTS])
def test_commands(path: Path, tmp_path: Path) -> None:
    documents = read_documents()
    # A command that stands in several documents is run with the first.
    before = [step for each in DOCUMENTS[: DOCUMENTS.index(path)] for step in documents[each]]
    elsewhere = {step.words for step in before if isinstance(step, Command) and not step.shown}
    makers = make_makers({START: documents[START]} | documents)  # its names go first
    runner = Runner(tmp_path, makers, elsewhere=elsewhere)
    wrong = list(run_document(documents[path], runner))
    jax.clear_caches()
    assert not wrong, "\n".join([f"{path.name}:", *wrong])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebooks(path: Path, tmp_path: Path) -> None:
    """Every cell as it stands, in a process of its own: notebooks are small already."""
    script = "\n\n".join(code_cells(path))
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "nan" not in ended.stdout.split()


def test_demo(tmp_path: Path) -> None:
    """The commands of `make demo`, made small."""
    made = subprocess.run(
        ["make", "--dry-run", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    start = ".venv/bin/"
    lines = [line for line in made.stdout.splitlines() if line.startswith(f"{start}hopplus ")]
    assert len(lines) >= 5
    steps = steps_of("\n".join(f"    {line.removeprefix(start)}" for line in lines))
    wrong = list(run_document(steps, Runner(tmp_path, {})))
    assert not wrong, "\n".join(wrong)
    assert (tmp_path / "demo" / "report.html").exists()
