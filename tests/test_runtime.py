"""JAX is made safe before it starts, and what the user has set stays."""

import json
import os
import subprocess
import sys

import pytest

from hopplus.runtime import SCHEDULER_FLAG

PROBE = """
import json, os, warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    {before}
    import hopplus
import jax
print(json.dumps([
    os.environ["XLA_FLAGS"],
    jax.config._read("jax_cpu_enable_async_dispatch"),
    jax.config.jax_compilation_cache_dir,
    [str(w.message) for w in caught if "hopplus" in str(w.message)],
]))
"""


def probe(before: str = "pass", **environment: str) -> list[object]:
    """Import hopplus in a fresh process and see how JAX is set."""
    names = ("XLA_FLAGS", "JAX_CPU_ENABLE_ASYNC_DISPATCH", "JAX_COMPILATION_CACHE_DIR")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    out = subprocess.run(
        [sys.executable, "-c", PROBE.format(before=before)],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[object] = json.loads(out.stdout)
    return found


def test_defaults() -> None:
    flags, dispatch, cache, warned = probe(XDG_CACHE_HOME="/somewhere")
    assert flags == f"{SCHEDULER_FLAG}=false"
    assert dispatch is False
    assert cache == "/somewhere/hopplus/jax"
    assert warned == []


def test_the_users_settings_stay() -> None:
    flags, dispatch, cache, _ = probe(
        XLA_FLAGS=f"{SCHEDULER_FLAG}=true",
        JAX_CPU_ENABLE_ASYNC_DISPATCH="true",
        JAX_COMPILATION_CACHE_DIR="/elsewhere",
    )
    assert flags == f"{SCHEDULER_FLAG}=true"
    assert dispatch is True
    assert cache == "/elsewhere"
    flags, *_ = probe(XLA_FLAGS="--xla_cpu_enable_fast_math=false")
    assert flags == f"--xla_cpu_enable_fast_math=false {SCHEDULER_FLAG}=false"


def test_too_late_is_said() -> None:
    *_, warned = probe(before="import jax; jax.numpy.zeros(1)")
    assert "import hopplus before using jax" in str(warned)


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder differs elsewhere")
def test_cache_folder_without_xdg() -> None:
    *_, cache, _ = probe(XDG_CACHE_HOME="", HOME="/home/someone")
    assert cache == "/home/someone/.cache/hopplus/jax"
