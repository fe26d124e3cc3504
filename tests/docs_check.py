"""Runs every command of README.md and docs/, made small: `make docs-test`."""

from pathlib import Path

import jax
import pytest

from docs_runner import Runner, make_makers, run_document
from docs_small import DOCUMENTS, read_documents


@pytest.mark.parametrize("path", DOCUMENTS, ids=[path.name for path in DOCUMENTS])
def test_commands(path: Path, tmp_path: Path) -> None:
    documents = read_documents()
    runner = Runner(tmp_path, make_makers(documents))
    wrong = list(run_document(documents[path], runner))
    jax.clear_caches()
    assert not wrong, "\n".join([f"{path.name}:", *wrong])
