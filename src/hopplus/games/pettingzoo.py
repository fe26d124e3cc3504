"""The games as PettingZoo parallel environments: the one place where seats have names."""

import dataclasses
import secrets
from typing import Any

import equinox as eqx
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
from hopplus.types import Outcome, State, View

Observation = dict[str, np.ndarray]
RENDER_MODES = ("ansi", "rgb_array")


@eqx.filter_jit
def _start(game: Game, key: jax.Array) -> tuple[State, View]:
    state = game.init(key)
    return state, views(game, state)


@eqx.filter_jit
def _step(
    game: Game, state: State, joint: jax.Array, key: jax.Array
) -> tuple[State, View, Outcome]:
    state, outcome = game.step(state, joint, key)
    return state, views(game, state), outcome


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
        key = jax.random.key(int(self._rng.integers(2**32)))
        self._key = jax.random.fold_in(key, 1)  # of the steps: boards stay those of the seed
        if layout is None:
            self._state, view = _start(self.game, key)
        else:
            self._state = self.game.parse(layout)
            view = views(self.game, self._state)
        present = np.asarray(self.game.present(self._state))
        self.agents = [name for name, seat in self._seat.items() if present[seat]]
        self._returns = np.zeros(self.game.seats)
        self._steps = 0
        self._doing = ("",) * self.game.seats
        observations = self._observations(view)
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
        joint = np.full(self.game.seats, STAY, np.int32)
        for name in playing:
            joint[self._seat[name]] = actions.get(name, STAY)
        self._key, key = jax.random.split(self._key)
        self._state, view, outcome = _step(self.game, self._state, jnp.asarray(joint), key)
        outcome = jax.device_get(outcome)
        observations = self._observations(view)
        self._returns = self._returns + outcome.reward
        self._steps += 1
        self._doing = tuple(
            self.game.action_names[STAY if outcome.illegal[seat] else joint[seat]]
            if name in playing
            else ""
            for name, seat in self._seat.items()
        )
        ended = {n: bool(outcome.left[self._seat[n]] or outcome.done) for n in playing}
        self.agents = [n for n in playing if not ended[n]]
        return (
            {n: observations[n] for n in playing},
            {n: float(outcome.reward[self._seat[n]]) for n in playing},
            ended,
            dict.fromkeys(playing, False),
            {n: {"illegal": bool(outcome.illegal[self._seat[n]])} for n in playing},
        )

    def _observations(self, view: View) -> dict[str, Observation]:
        seen = jax.device_get(view)
        return {
            name: {
                "observation": seen.planes[seat].copy(),
                "action_mask": seen.legal[seat].astype(np.int8),
                "time": seen.time[seat].reshape(1).copy(),
                "last_actions": seen.last_actions[seat].copy(),
            }
            for name, seat in self._seat.items()
        }

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
