"""What tests share: games and their compiled functions, made once per setting."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from hopplus.cli import main
from hopplus.config import StagHuntConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt

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
        jax.jit(jax.vmap(game.step)),
        jax.jit(jax.vmap(lambda state: views(game, state))),
    )
