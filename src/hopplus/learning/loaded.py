"""Trained players for other programs: one seat at a time, in a plain PettingZoo loop."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.learning.restore import run_players
from hopplus.learning.trained import Trained, named, read_player
from hopplus.players.actor import Actor
from hopplus.runs.folder import open_run
from hopplus.types import Act, Memory, Params, View


@eqx.filter_jit
def _act(
    actor: Actor, params: Params, memory: Memory, view: View, key: jax.Array
) -> tuple[Memory, Act]:
    return actor.act(params, memory, view, key)


class LoadedPlayer:
    """A trained player with its memory and its dice: `act` takes an observation of its seat.

    It can sit in any seat of a game with the boards it has learned on. Call `reset` before each
    episode.
    """

    def __init__(self, trained: Trained, seed: int = 0) -> None:
        self.trained = trained
        self._key = jax.random.key(seed)
        self.reset()

    def reset(self) -> None:
        """A new episode begins."""
        self._memory = self.trained.actor.start()

    def act(self, observation: Mapping[str, Any]) -> int:
        """The action for one observation of the PettingZoo adapter."""
        view = View(
            planes=jnp.asarray(observation["observation"], jnp.float32),
            legal=jnp.asarray(observation["action_mask"]).astype(bool),
            time=jnp.asarray(np.float32(np.reshape(observation["time"], ()))),
            last_actions=jnp.asarray(observation["last_actions"], jnp.int32),
        )
        self._key, key = jax.random.split(self._key)
        actor, params = self.trained.actor, self.trained.params
        self._memory, act = _act(actor, params, self._memory, view, key)
        return int(act.action)


def load_players(
    run: str | Path, *, seed: int = 0, greedy: bool = False, dice: int = 0
) -> dict[int, LoadedPlayer]:
    """The learned players of a run by seat.

    `seed` counts the run's seeds from 0; `dice` seeds what the players draw.
    """
    return {
        seat: LoadedPlayer(named(trained, f"seat {seat}", greedy=greedy), dice + seat)
        for seat, trained in run_players(open_run(Path(run)), seed).items()
    }


def load_player(path: str | Path, *, greedy: bool = False, dice: int = 0) -> LoadedPlayer:
    """A player from a file of its own, as written by `hopplus export`."""
    trained = read_player(Path(path))
    return LoadedPlayer(named(trained, trained.actor.name, greedy=greedy), dice)
