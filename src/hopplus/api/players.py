"""Trained players for other programs: one seat at a time, in a plain PettingZoo loop."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.api.training import GameLike, SearchLike, as_game, as_search
from hopplus.config import ConfigError, SearchConfig
from hopplus.games import make_game
from hopplus.games.game import Game, has_board
from hopplus.learning.from_run import run_players
from hopplus.planning.dynamics import observe
from hopplus.play.introspection import Telling, predict_others, predicts
from hopplus.play.lineup import fitting
from hopplus.play.names import read_run_name
from hopplus.play.trained import Trained, named, read_player
from hopplus.players.actor import Actor
from hopplus.players.parameters import PlayerParams
from hopplus.players.planner import Planner
from hopplus.types import Act, Memory, Params, View


@eqx.filter_jit
def _act(
    player: Actor | Planner, params: Params, memory: Memory, view: View, key: jax.Array
) -> tuple[Memory, Act]:
    return player.act(params, memory, view, key)


@eqx.filter_jit
def _decide(
    player: Actor | Planner, game: Game, params: PlayerParams, memory: Memory, view: View, key: Any
) -> tuple[Memory, Act, jax.Array | None]:
    """As `_act`, with [N - 1, A] what its models say of the others, if it has any."""
    teller = Telling(player) if isinstance(player, Planner) else player
    memory, act = teller.act(params, memory, view, key)
    actor = player.actor if isinstance(player, Planner) else player
    if not predicts(actor, params) or not has_board(game):
        return memory, act, None
    known = act.inferred[: actor.context.size]
    legal = observe(game, view).legal
    return memory, act, predict_others(actor, params, view, legal, known)


@eqx.filter_jit
def _carry(player: Actor | Planner, memory: Memory, view: View) -> Memory:
    return player.carry(memory, view)


class Decision(NamedTuple):
    """What a player does, and why. The others run from the next seat on, cyclically."""

    action: int
    probabilities: np.ndarray  # [A] that the action is drawn from: by its policy, or its search
    value: float  # the return that it expects from here on
    context: np.ndarray  # [J] what it makes of the others, as its policy is told; J may be 0
    others: np.ndarray | None  # [N - 1, A] what it expects each other to do; None without models
    visits: np.ndarray | None  # [A] the share of its search that went to each action, if it has one


class LoadedPlayer:
    """A trained player with its memory and its dice: `act` takes an observation of its seat.

    It can sit in any seat of a game with the boards it has learned on. Call `reset` before each
    episode. With a game it looks ahead before it acts, as it has learned to or as `search` says;
    without one it cannot.
    """

    def __init__(
        self,
        trained: Trained,
        seed: int = 0,
        game: Game | None = None,
        search: SearchConfig | None = None,
    ) -> None:
        self.trained = trained
        if game is None and search is not None:
            raise ConfigError(
                "a player needs to know the game to search: give game=default_game(...)"
            )
        self._player: Actor | Planner = trained.actor
        self._game = make_game(trained.config.game) if game is None else game
        if game is not None:
            self._player = fitting(trained, trained.actor.name, game).playing(game, search)
        self._key = jax.random.key(seed)
        self.reset()

    def reset(self, last: Mapping[str, Any] | None = None) -> None:
        """A new episode begins: of a new trial, or of the same one as before, with `last` what was
        seen at the end of that, for players that carry something from one to the next."""
        if last is None or not self._player.carries:
            self._memory = self._player.start()
        else:
            self._memory = _carry(self._player, self._memory, _view(last))

    def act(self, observation: Mapping[str, Any]) -> int:
        """The action for one observation of the PettingZoo adapter."""
        self._key, key = jax.random.split(self._key)
        params, view = self.trained.params, _view(observation)
        self._memory, act = _act(self._player, params, self._memory, view, key)
        return int(act.action)

    def decide(self, observation: Mapping[str, Any]) -> Decision:
        """The same action, and what led to it."""
        self._key, key = jax.random.split(self._key)
        found = _decide(
            self._player, self._game, self.trained.params, self._memory, _view(observation), key
        )
        self._memory, act, others = jax.device_get(found)
        visits = None
        if isinstance(self._player, Planner):
            visits = Telling(self._player).told(act.extras).visits
        return Decision(
            int(act.action), np.exp(act.logits), float(act.value), act.inferred, others, visits
        )


def _view(observation: Mapping[str, Any]) -> View:
    return View(
        planes=jnp.asarray(observation["observation"], jnp.float32),
        legal=jnp.asarray(observation["action_mask"]).astype(bool),
        time=jnp.asarray(np.float32(np.reshape(observation["time"], ()))),
        last_actions=jnp.asarray(observation["last_actions"], jnp.int32),
    )


def load_players(
    run: str | os.PathLike[str],
    *,
    seed: int | None = None,
    greedy: bool = False,
    dice: int = 0,
    search: SearchLike | None = None,
) -> dict[int, LoadedPlayer]:
    """The learned players of a run by seat.

    Those of its first seed, or of `seed`, which may also stand behind the run, as may a stage:
    runs/a#1~0.5. `dice` seeds what the players draw. They look ahead as they have learned to, or as
    `search` says.
    """
    said = read_run_name(os.fspath(run))
    if said.seat is not None or None not in (seed, said.seed):
        raise ConfigError(f"{run} is to be a run and one seed at most: its players come by seat")
    folder, seed = said.open(), said.seed if seed is None else seed
    game, asked = make_game(folder.config().game), as_search(search)
    return {
        seat: LoadedPlayer(named(trained, f"seat {seat}", greedy=greedy), dice + seat, game, asked)
        for seat, trained in run_players(folder, seed, said.stage).items()
    }


def load_player(
    path: str | os.PathLike[str],
    *,
    greedy: bool = False,
    dice: int = 0,
    game: GameLike | None = None,
    search: SearchLike | None = None,
) -> LoadedPlayer:
    """A player from a file of its own, as written by `hopplus export`; with the `game` it is to
    play it looks ahead as it has learned to, or as `search` says."""
    trained = read_player(Path(path))
    made = None if game is None else make_game(as_game(game))
    asked = None if search is None else as_search(search)
    named_so = named(trained, trained.actor.name, greedy=greedy)
    return LoadedPlayer(named_so, dice, made, asked)
