"""What tests share: games and their compiled functions, made once per setting."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax

from hopplus.config import StagHuntConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt

_SMALL_RUN = """
--game.size 3 --game.seats 2 --game.hares 2 --net.hidden 16 --ppo.games 16 --ppo.unroll 8
--ppo.minibatches 2 --ppo.epochs 1 --steps 3840 --checkpoint-every 4 --seeds 2
"""
SMALL_RUN = _SMALL_RUN.split()  # 30 updates; one setting for all, compiled once


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
