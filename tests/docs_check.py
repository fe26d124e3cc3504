"""Runs every command of README.md and docs/, made small: `make docs-test`."""

from pathlib import Path

import jax
import pytest

from docs_markdown import Command
from docs_runner import Runner, make_makers, run_document
from docs_small import DOCUMENTS, README, read_documents


@pytest.mark.parametrize("path", DOCUMENTS, ids=[path.name for path in DOCUMENTS])
def test_commands(path: Path, tmp_path: Path) -> None:
    documents = read_documents()
    # A command that stands in several documents is run with the first.
    before = [step for each in DOCUMENTS[: DOCUMENTS.index(path)] for step in documents[each]]
    elsewhere = {step.words for step in before if isinstance(step, Command) and not step.shown}
    makers = make_makers({README: documents[README]} | documents)  # its names go first
    runner = Runner(tmp_path, makers, elsewhere=elsewhere)
    wrong = list(run_document(documents[path], runner))
    jax.clear_caches()
    assert not wrong, "\n".join([f"{path.name}:", *wrong])
