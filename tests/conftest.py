"""What tests share: games and their compiled functions, made once per setting."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import pytest

from hopplus.cli import main
from hopplus.config import StagHuntConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt

LEVEL_FLAG = "--xla_backend_optimization_level"
QUICK_FLAGS = (f"{LEVEL_FLAG}=0", "--xla_cpu_use_fusion_emitters=false")


def compile_quickly() -> None:
    """Has XLA compile fast, here and in the programs that tests start: it takes a third of the time
    then, which is what nearly all of theirs is spent on.

    Whoever sets the level in XLA_FLAGS has the tests run with that. A version of XLA that does not
    know a flag ends its process, so another process asks, before the workers of pytest-xdist start.
    """
    before = os.environ.get("XLA_FLAGS", "")
    if LEVEL_FLAG in before:
        return
    for flags in (QUICK_FLAGS, QUICK_FLAGS[:1]):
        quick = {"XLA_FLAGS": " ".join([*before.split(), *flags])}
        ended = subprocess.run(
            [sys.executable, "-c", "import jax; jax.devices()"],
            env=os.environ | quick | {"JAX_PLATFORMS": "cpu"},
            stderr=subprocess.DEVNULL,
        )
        if ended.returncode == 0:
            os.environ.update(quick)
            return


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


listen_to_ctrl_c()
collect_rarely()
compile_quickly()  # before anything below starts JAX; importing hopplus does not

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


@pytest.fixture
def quick_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has tyro keep what it has found out about the settings, which it forgets after every command
    line: for tests that read hundreds of them."""
    monkeypatch.setattr("tyro._unsafe_cache.clear_cache", lambda: None, raising=False)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such play, recorded once for all tests that only read it."""
    return record_small(tmp_path_factory.mktemp("recorded") / "small")


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run `a` of 30 updates, trained once for all tests that only read it."""
    runs = tmp_path_factory.mktemp("runs")
    assert main(["train", "ppo", "--runs", str(runs), "--name", "a", *SMALL_RUN]) == 0
    return runs / "a"


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
