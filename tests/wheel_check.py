"""The wheel in a fresh environment, with the ten lines of docs/python.md: `make wheel`.

Dependencies are those that the wheel names, from pip's index or cache. With HOPPLUS_WHEEL=offline
they are this environment's own: then only what is in the wheel itself is tried.
"""

import os
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from docs_markdown import Script, read_steps
from docs_small import ROOT

OFFLINE = os.environ.get("HOPPLUS_WHEEL") == "offline"


@pytest.fixture(scope="module")
def wheel() -> Path:
    (found,) = (ROOT / "dist").glob("hopplus-*.whl")
    return found


def test_the_wheel_has_all_files_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name and ".egg-info" not in name}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == wanted


def test_the_ten_lines_run_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "venv"
    venv.create(fresh, with_pip=not OFFLINE)
    python = fresh / "bin" / "python"
    if OFFLINE:
        packages = next(fresh.glob("lib/python*/site-packages"))
        zipfile.ZipFile(wheel).extractall(packages)
        (packages / "here.pth").write_text(sysconfig.get_paths()["purelib"])
    else:
        install = [str(python), "-m", "pip", "install", "--quiet", str(wheel)]
        subprocess.run(install, check=True, env=_outside())
    script = next(one for one in read_steps(ROOT / "docs/python.md") if isinstance(one, Script))
    code = f"{script.text}\nprint(hopplus.__file__)\n"
    ended = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=_outside(), capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert Path(ended.stdout.splitlines()[-1]).is_relative_to(fresh)
    assert (tmp_path / "runs/tour/report.html").exists()
    if not OFFLINE:  # as a command, too
        subprocess.run([fresh / "bin" / "hopplus", "--version"], check=True, env=_outside())


def _outside() -> dict[str, str]:
    """The environment without what makes Python find this clone."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
