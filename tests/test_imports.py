"""Imports go one way, and what a trainer needs drags no drawing in."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from hopplus.cli.bench import BENCHES
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS
from hopplus.cli.diagnose.command import DIAGNOSES
from hopplus.cli.pretrain import MODELS
from hopplus.presets import PRESETS

SOURCE = Path(__file__).resolve().parents[1] / "src" / "hopplus"
# Each may import those after it, and those beside.
LAYERS = ["cli", "api", "report", "diagnosis", "evaluation", "learning", "recorded", "play"]
LAYERS += ["players", "planning", "models", "games"]
BESIDE = {"config", "devices", "errors", "presets", "registry", "types", "runs", "runtime"}
BESIDE |= {"fingerprint", "kernels", "lookup", "program_cache"}
FILES = sorted(SOURCE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The parts of hopplus that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} has a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    parts = {name.split(".")[1] for name in names if name.startswith("hopplus.")}
    return parts - {"__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ("__init__", "__main__"):
        return
    if part in BESIDE:
        allowed = BESIDE
    else:
        assert part in LAYERS, f"{part} has no place in the order of layers"
        allowed = BESIDE | set(LAYERS[LAYERS.index(part) :])
    assert imported(path) <= allowed


def test_playing_and_learning_need_no_pictures() -> None:
    """A training machine may lack the packages that draw and adapt."""
    heavy = ["matplotlib", "PIL", "pettingzoo", "gymnasium", "jinja2", "ray"]
    program = (
        "import sys\n"
        f"for name in {heavy}: sys.modules[name] = None\n"
        "import hopplus.play.rollout, hopplus.evaluation.evaluate, hopplus.cli.bench.game\n"
        "import hopplus.cli\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("words", "status"),
    [("--help", 0), ("--version", 0), ("list games", 0), ("list presets", 0), ("trian ppo", 2)],
)
def test_who_asks_what_there_is_does_not_wait_for_jax(words: str, status: int) -> None:
    program = (
        "import sys\n"
        "from hopplus.__main__ import run\n"
        f"sys.argv[1:] = {words.split()}\n"
        "try: run()\n"
        "except SystemExit as end: status = end.code\n"
        "print([name for name in ('jax', 'equinox', 'optax', 'numpy.random', 'matplotlib')"
        " if name in sys.modules], status)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == f"[] {status}", ended.stderr


def test_the_table_of_commands_is_true() -> None:
    """It repeats what the commands themselves say, so as not to import them."""
    for name, entry in COMMANDS.items():
        kind = entry.load()
        said = inspect.cleandoc(kind.__doc__).partition("\n\n")[0]
        assert entry.about == " ".join(said.split()), name
    assert {
        "train": tuple(PRESETS),
        "pretrain": tuple(MODELS),
        "diagnose": tuple(DIAGNOSES),
        "bench": tuple(BENCHES),
    } == SUBCOMMANDS


def test_every_room_has_quick_tests() -> None:
    """What `make quick` runs looks into every folder of the package."""
    root = SOURCE.parents[1]
    quick = [root / line for line in (root / "tests/quick.txt").read_text().split()]
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    seen = set().union(*(imported(path) for path in quick))
    assert rooms <= seen, f"no quick test imports {rooms - seen}"
