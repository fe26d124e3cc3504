"""The games as PettingZoo parallel environments: the one place where seats have names."""

import dataclasses
import math
import secrets
from functools import partial
from itertools import pairwise
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from pettingzoo.utils.env import ParallelEnv

from hopplus.config import DEFAULT_GAME, ConfigError, GameConfig, find_game, make_config
from hopplus.games import make_game
from hopplus.games.game import Game, check_board, drawings_of, views
from hopplus.games.grid import STAY
from hopplus.games.picture import picture
from hopplus.games.render import Frame, terminal
from hopplus.types import Outcome, State

Observation = dict[str, np.ndarray]
RENDER_MODES = ("ansi", "rgb_array")


# A step is a program and one array for the host: what is small waits for calls, not for sums.
@partial(jax.jit, static_argnums=0)
def _start(game: Game, seed: np.uint32) -> tuple[State, jax.Array, jax.Array]:
    key = jax.random.key(seed)
    state = game.init(key)
    later = jax.random.fold_in(key, 1)  # of the steps: boards stay those of the seed
    return state, jax.random.key_data(later), _packed(game, state)


@partial(jax.jit, static_argnums=0)
def _step(
    game: Game, state: State, key: jax.Array, joint: jax.Array | np.ndarray
) -> tuple[State, jax.Array, jax.Array]:
    key, key_step = jax.random.split(jax.random.wrap_key_data(key))
    state, outcome = game.step(state, jnp.asarray(joint), key_step)
    return state, jax.random.key_data(key), _packed(game, state, outcome)


@partial(jax.jit, static_argnums=0)
def _packed(game: Game, state: State, outcome: Outcome | None = None) -> jax.Array:
    """[N, ...] float32 what each seat sees, and whether it is there or how its step went, one after
    the other: see `HopplusEnv._unpacked`."""
    view = views(game, state)
    found = [view.planes, view.legal, view.time, view.last_actions]
    if outcome is None:
        found += [game.present(state)]
    else:
        found += [outcome.reward, outcome.left | outcome.done, outcome.illegal]
    rows = [one.reshape(game.seats, -1).astype(jnp.float32) for one in found]
    return jnp.concatenate(rows, axis=1)


class HopplusEnv(ParallelEnv[str, Observation, int]):
    """A game for players named `player_0`, `player_1`, ...

    An observation holds `observation` (the planes), `action_mask`, `time` and `last_actions`. A
    player who leaves is terminated with its reward and drops out of `agents`; an episode that
    reaches its horizon terminates, since time is part of what players see.
    """

    def __init__(self, game: Game, render_mode: str | None = None) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise ConfigError(f"render_mode is {render_mode!r} but must be one of {RENDER_MODES}")
        check_board(game, "PettingZoo's API")
        self.game = game
        self.metadata = {
            "name": game.name,
            "render_modes": list(RENDER_MODES),
            "render_fps": 3,
            "is_parallelizable": True,
        }
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(game.seats)]
        self.agents: list[str] = []
        actions = len(game.action_names)
        self._seat = {name: seat for seat, name in enumerate(self.possible_agents)}
        self._action_spaces: dict[str, gymnasium.spaces.Discrete[Any]] = {
            n: gymnasium.spaces.Discrete(actions) for n in self._seat
        }
        self._observation_spaces = {n: self._observation_space() for n in self._seat}
        self._shape = game.shape  # worked out anew each time that a game is asked
        ends = np.cumsum([0, math.prod(self._shape), actions, 1, game.seats, 3]).tolist()
        self._places = [slice(*pair) for pair in pairwise(ends)]  # in what a step gives
        self._state: State = None
        self._rng = np.random.default_rng(secrets.randbits(64))

    def _observation_space(self) -> gymnasium.spaces.Dict:
        box, seats, actions = gymnasium.spaces.Box, self.game.seats, len(self.game.action_names)
        return gymnasium.spaces.Dict(
            {
                "observation": box(0.0, 1.0, self.game.shape, np.float32),
                "action_mask": box(0, 1, (actions,), np.int8),
                "time": box(0.0, 1.0, (1,), np.float32),
                "last_actions": box(-1, actions - 1, (seats,), np.int32),
            }
        )

    def observation_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start an episode: at random, or from `options={"layout": text}`."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        layout = (options or {}).get("layout")
        self._state, self._key, packed = _start(
            self.game, self._rng.integers(2**32, dtype=np.uint32)
        )
        if layout is not None:
            self._state = self.game.parse(layout)
            packed = _packed(self.game, self._state)
        observations, (present,) = self._unpacked(packed)
        self.agents = [name for name, seat in self._seat.items() if present[seat]]
        self._returns = np.zeros(self.game.seats)
        self._steps = 0
        self._played: tuple[list[str], list[int], list[float]] | None = None
        return {n: observations[n] for n in self.agents}, {n: {} for n in self.agents}

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play the actions of the players in `agents`; one that is missing stays."""
        if self._state is None:
            raise ConfigError("no episode is under way: call reset first")
        unknown = set(actions) - set(self._seat)
        if unknown:
            raise ConfigError(f"no player is called {sorted(unknown)[0]!r} in this game")
        playing = self.agents
        joint = [STAY] * self.game.seats
        for name in playing:
            joint[self._seat[name]] = actions.get(name, STAY)
        acts = np.array(joint, np.int32)
        self._state, self._key, packed = _step(self.game, self._state, self._key, acts)
        observations, step = self._unpacked(packed)
        self._returns = self._returns + step[0]
        self._steps += 1
        reward, left, illegal = step.tolist()
        self._played = playing, acts.tolist(), illegal
        seats = [(name, self._seat[name]) for name in playing]
        self.agents = [name for name, seat in seats if not left[seat]]
        return (
            {name: observations[name] for name in playing},
            {name: reward[seat] for name, seat in seats},
            {name: bool(left[seat]) for name, seat in seats},
            dict.fromkeys(playing, False),
            {name: {"illegal": bool(illegal[seat])} for name, seat in seats},
        )

    @property
    def _doing(self) -> tuple[str, ...]:
        """What each seat did in the last step, for a picture of it."""
        if self._played is None:
            return ("",) * self.game.seats
        playing, joint, illegal = self._played
        names = self.game.action_names
        return tuple(
            names[STAY if illegal[seat] else joint[seat]] if name in playing else ""
            for name, seat in self._seat.items()
        )

    def _unpacked(self, packed: jax.Array) -> tuple[dict[str, Observation], np.ndarray]:
        """What each sees; and of a start [1, N] whether it is there, of a step [3, N] its reward,
        whether it is gone, and whether its act was illegal."""
        found = np.array(packed)
        planes, legal, time, last, step = (found[:, place] for place in self._places)
        planes = planes.reshape(-1, *self._shape)
        legal, last = legal.astype(np.int8), last.astype(np.int32)
        return {
            name: {
                "observation": planes[seat],
                "action_mask": legal[seat],
                "time": time[seat],
                "last_actions": last[seat],
            }
            for name, seat in self._seat.items()
        }, step.T

    def render(self) -> np.ndarray | str | None:
        """The board as text or as a picture, [height, width, 3] uint8, by `render_mode`."""
        if self.render_mode is None:
            return None
        if self._state is None:
            raise ConfigError("there is nothing to render yet: call reset first")
        frame = Frame(
            layout=self.game.show(self._state),
            step=self._steps,
            horizon=self.game.horizon,
            returns=tuple(self._returns.tolist()),
            players=tuple(self.possible_agents),
            doing=self._doing,
            drawings=drawings_of(self.game),
        )
        return terminal(frame, colour=False) if self.render_mode == "ansi" else picture(frame)


def parallel_env(
    game: str | GameConfig = DEFAULT_GAME, *, render_mode: str | None = None, **settings: Any
) -> HopplusEnv:
    """A game as a PettingZoo environment, by its name or by settings that are all made.

    Further settings are those of the game, as in `parallel_env(size=8, render_mode="ansi")` or
    `parallel_env("my_package.games:ROW", seats=3)`.
    """
    if not isinstance(game, str):
        if settings:
            raise ConfigError("give either a config or single settings, not both")
        return HopplusEnv(make_game(game), render_mode)
    kind: Any = find_game(game).config
    known = [field.name for field in dataclasses.fields(kind) if field.name != "name"]
    for name in settings:
        if name not in known:
            raise ConfigError(f"the game has no setting {name}; it has {', '.join(known)}")
    return HopplusEnv(make_game(make_config(game, **settings)), render_mode)
