"""What tests share: games and their compiled functions, made once per setting."""

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import tyro._cli
from tyro._parsers import ParserSpecification

import hopplus.cli
from browser import launched
from hopplus.cli import main
from hopplus.config import StagHuntConfig, TrainConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.compilation import Update, first_and_next, next_of
from hopplus.learning.learner import Learner, Learning

LEVEL_FLAG = "--xla_backend_optimization_level"
# From the one that matters most on: a version of XLA may not know the later ones.
QUICK_FLAGS = (
    f"{LEVEL_FLAG}=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",  # the workers use all cores already
)


def compile_quickly() -> None:
    """Has XLA compile fast, here and in the programs that tests start: it takes a third of the time
    then, which is what nearly all of theirs is spent on.

    Whoever sets the level in XLA_FLAGS has the tests run with that. A version of XLA that does not
    know a flag ends its process, so another process asks, before the workers of pytest-xdist start.
    """
    before = os.environ.get("XLA_FLAGS", "")
    if LEVEL_FLAG in before:
        return
    for count in range(len(QUICK_FLAGS), 0, -1):
        quick = {"XLA_FLAGS": " ".join([*before.split(), *QUICK_FLAGS[:count]])}
        ended = subprocess.run(
            [sys.executable, "-c", "import jax; jax.devices()"],
            env=os.environ | quick | {"JAX_PLATFORMS": "cpu"},
            stderr=subprocess.DEVNULL,
        )
        if ended.returncode == 0:
            os.environ.update(quick)
            return


def keep_small_programs() -> None:
    """Has JAX's cache on disk keep the smallest programs too: most of those that run outside a
    compiled function are needed again, by another worker or by a program that a test starts. JAX
    has read the environment here already, but not in those."""
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def keep_no_programs() -> None:
    """Tests replace what programs are made of, and most of these are compiled once only."""
    os.environ.setdefault("HOPPLUS_PROGRAMS", "0")


def listen_to_ctrl_c() -> None:
    """Whoever starts the tests in the background of a script has them ignore Ctrl-C, and with them
    the programs that some of them interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def collect_rarely() -> None:
    """What was imported stays, and tracing makes many objects that live for long: looking through
    all of them over and over is an eighth of its time."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def parse_quickly() -> None:
    """Has tyro build the parser of a command once per process instead of once per command line:
    tests read thousands of them, and building takes twenty times as long as reading.

    Only the outermost call is replaced, so the parser itself is tyro's own. It is kept per type and
    game: a test that changes what a type's options are has to use a type of its own.
    """
    build = ParserSpecification.from_callable_or_type
    built: dict[tuple[object, str, str], Any] = {}
    offered, game = vars(hopplus.cli)["options_of"], ""

    @contextmanager
    def options_of(chosen: str, choices: Any) -> Iterator[None]:
        nonlocal game
        game = f"{chosen} {choices}"
        with offered(chosen, choices):
            yield

    def built_once(kind: Any, **given: Any) -> Any:
        key = (kind, game, repr(given))
        if key not in built:
            built[key] = build(kind, **given)
        return built[key]

    vars(hopplus.cli)["options_of"] = options_of
    specification = SimpleNamespace(from_callable_or_type=built_once)
    vars(tyro._cli)["_parsers"] = SimpleNamespace(ParserSpecification=specification)


listen_to_ctrl_c()
collect_rarely()
parse_quickly()
keep_small_programs()
keep_no_programs()
compile_quickly()  # before anything below starts JAX; importing hopplus does not

# The files that take longest, so that no worker is left alone with one of them at the end. Those
# of a group share what they compile: one worker takes them all.
COSTLY = (
    (
        *("test_diagnose_seats", "test_seats_ablation", "test_audit", "test_audit_steps"),
        *("test_diagnose_value_loss", "test_value_loss_experiments", "test_value_loss_command"),
    ),
    (
        *("test_hop_plus", "test_opponent_learning", "test_imagined_learning", "test_imagine"),
        *("test_hindsight", "test_foresight"),
    ),
    ("test_runs",),
    ("test_switches",),
    ("test_wrong_inputs", "test_damaged_files", "test_odd_numbers", "test_full_disk"),
    ("test_adaptation",),
    ("test_certificate",),
    ("test_planner",),
    ("test_cli", "test_options"),
    ("test_learning",),
    ("test_resume_parts",),
    ("test_pretrain",),
    ("test_diagnose_command",),
)


def _place(file: str) -> int:
    """Where in that order a file stands; those that are not in it come last."""
    places = (n for n, group in enumerate(COSTLY) if Path(file).stem in group)
    return next(places, len(COSTLY))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # of pytest-xdist: by itself, the usual order is as good
        items.sort(key=lambda item: _place(item.nodeid.partition("::")[0]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """As `--dist loadfile`, in the order above and with the files of a group together."""
    from xdist.scheduler import LoadScopeScheduling

    class LoadInOrder(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            place = _place(file)
            return COSTLY[place][0] if place < len(COSTLY) else file

    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by the number of tests, which says little here
    return LoadInOrder(config, log)


_SMALL_RUN = """
--game.size 3 --game.seats 2 --game.hares 2 --net.hidden 16 --ppo.games 16 --ppo.unroll 8
--ppo.minibatches 2 --ppo.epochs 1 --steps 3840 --checkpoint-every 4 --seeds 2
"""
SMALL_RUN = _SMALL_RUN.split()  # 30 updates; one setting for all, compiled once
_SMALL_GAME = "--game.size 3 --game.seats 3 --game.hares 3 --game.horizon 12"
SMALL_GAME = _SMALL_GAME.split()
MIXTURE = "noisy-stag:0.1|noisy-hare:0.1"


def record_small(out: Path, *more: str) -> Path:
    """A little recorded play of stag and hare hunters, 300 episodes unless told otherwise."""
    command = ["collect", "--players", MIXTURE, *SMALL_GAME, "--games", "64", "--out", str(out)]
    assert main([*command, "--episodes", "300", *more]) == 0
    return out


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such play, recorded once for all tests that only read it."""
    return record_small(tmp_path_factory.mktemp("recorded") / "small")


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run `a` of 30 updates, trained once for all tests that only read it."""
    runs = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        share_programs(patch)
        assert main(["train", "ppo", "--runs", str(runs), "--name", "a", *SMALL_RUN]) == 0
    return runs / "a"


@pytest.fixture(scope="session")
def kit(
    small_run: Path, recorded: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """What commands read: a run, recorded play and an exported player."""
    folder = tmp_path_factory.mktemp("kit")
    player = folder / "player.safetensors"
    assert main(["export", str(small_run), "--out", str(player)]) == 0
    return {"runs/a": small_run, "data": recorded, "player.safetensors": player}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """To open pages in; tests are skipped where there is none."""
    yield from launched()


@pytest.fixture
def place(kit: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A copy of it to damage, in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, source in kit.items():
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    return {name: tmp_path / name for name in kit}


@pytest.fixture
def shared_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has runs of the same settings share their compiled programs: for tests of what surrounds the
    updates. It is not for tests that replace something that a program is made of, nor for runs with
    players or models from elsewhere, which are part of theirs."""
    share_programs(monkeypatch)


def share_programs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("hopplus.learning.train.first_and_next", _shared_first_and_next)
    patch.setattr("hopplus.learning.train.update_from_kept", _shared_next_of)


_copied = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))  # one program, not one for each shape
_beginnings: dict[TrainConfig, Learning] = {}
_updates: dict[TrainConfig, Update] = {}


def _shared_first_and_next(learner: Learner, config: TrainConfig) -> tuple[Learning, Update]:
    assert "/" not in (config.seats or ""), "its program holds players from elsewhere"
    if config not in _beginnings:
        _beginnings[config], _updates[config] = first_and_next(learner, config)
    # The update takes its argument over, so every run begins with a copy.
    return _copied(_beginnings[config]), _updates[config]


def _shared_next_of(learner: Learner, config: TrainConfig, seeds: int) -> Update:
    if config not in _updates:
        _updates[config] = next_of(learner, config, seeds)
    return _updates[config]


@dataclass(frozen=True)
class Compiled:
    """A game with its functions compiled over a batch [B] of states."""

    game: StagHunt
    init: Callable[[jax.Array], Any]  # keys [B] -> states
    step: Callable[[Any, jax.Array], Any]  # states, joints [B, N] -> states, outcomes
    views: Callable[[Any], Any]  # states -> views [B, N]


@cache
def compiled_game(config: StagHuntConfig) -> Compiled:
    game = StagHunt(config)
    return Compiled(
        game,
        jax.jit(jax.vmap(game.init)),
        jax.jit(jax.vmap(lambda state, joint: game.step(state, joint, jax.random.key(0)))),
        jax.jit(jax.vmap(lambda state: views(game, state))),
    )
