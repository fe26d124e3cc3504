"""JaxMARL's environments, and whatever else has their methods, as games.

JaxMARL (Rutherford et al. 2024) hands around dictionaries by agent: `reset(key)` gives observations
and a state, `step_env(key, state, actions)` the next ones, rewards and who is done. Agents are
seats here, in the environment's order. What a seat sees is its observation; no state can be made of
it, so that whatever needs the rules behind a view is refused.
"""

import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import (
    ABOUT_JAXMARL,
    JAXMARL,
    ConfigError,
    GameConfig,
    GameRow,
    check_range,
    check_whole,
)
from hopplus.games.game import Target
from hopplus.registry import import_named
from hopplus.types import Outcome, View, ViewShape

METHODS = ("reset", "step", "action_space")  # that nothing can be played without
LONGEST = 100_000  # steps of an episode


@dataclass(frozen=True)
class JaxmarlConfig(GameConfig):
    """An environment with JaxMARL's methods."""

    name: str = ""
    seats: int = field(init=False, default=0)  # as many as the environment has agents
    horizon: int | None = None
    """Steps of an episode at most; as many as the environment allows when not given."""
    options: str = "{}"
    """What the environment is made with, as JSON: '{"num_agents": 3}'. Lists of numbers become
    arrays."""

    def __post_init__(self) -> None:
        check_whole(self, "game.")
        check_range("game.horizon", self.horizon, 1, LONGEST)
        seats = len(make_environment(self.name, self.options).agents)
        if seats < 2:
            raise ConfigError(f"{self.name} has {seats} agent, and a game needs two or more")
        object.__setattr__(self, "seats", seats)


@lru_cache(maxsize=64)  # its methods are compiled for this very object
def make_environment(name: str, options: str) -> Any:
    """The environment of that name, `jaxmarl:NAME` or `module:factory`, made with these options."""
    try:
        given = json.loads(options)
    except ValueError as error:
        raise ConfigError(f"--game.options is {options!r}, which is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise ConfigError(f"--game.options is {options!r} but must be of the form {{NAME: VALUE}}")
    try:
        made = _find_factory(name)(**{key: _as_arrays(value) for key, value in given.items()})
    except TypeError as error:
        raise ConfigError(
            f"{name} cannot be made with --game.options {options}: {error}"
        ) from error
    if missing := [one for one in METHODS if not callable(getattr(made, one, None))]:
        raise ConfigError(
            f"{name} is no GameRow, and makes no environment with JaxMARL's methods: it has no"
            f" {missing[0]}"
        )
    return made


def _find_factory(name: str) -> Callable[..., Any]:
    if not name.startswith(JAXMARL):
        return import_named(name, "game")
    try:
        with _quietly():
            import jaxmarl  # an extra, which takes seconds to import
    except ModuleNotFoundError as error:
        raise ConfigError(f"{name} needs JaxMARL: pip install 'hopplus[jaxmarl]'") from error
    wanted = name.removeprefix(JAXMARL)
    if wanted not in jaxmarl.registered_envs:
        near = get_close_matches(wanted, jaxmarl.registered_envs, 1)
        hint = f": did you mean {JAXMARL}{near[0]}?" if near else ""
        raise ConfigError(f"JaxMARL has no environment {wanted!r}{hint}")
    return partial(jaxmarl.make, wanted)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps what JaxMARL prints when it is imported away from what a command prints. It sets both
    streams to those that Python began with, so that these are put aside, too."""
    began = sys.__stdout__
    with redirect_stdout(io.StringIO()) as aside, redirect_stderr(sys.stderr):
        vars(sys)["__stdout__"] = aside
        try:
            yield
        finally:
            vars(sys)["__stdout__"] = began


def _as_arrays(value: Any) -> Any:
    """Payoffs and the like, which environments take as arrays; anything else as it is."""
    if not (isinstance(value, list) and value):
        return value
    try:
        found = np.asarray(value)
    except ValueError:  # of different lengths
        return value
    return jnp.asarray(found) if found.dtype.kind in "if" else value


class JaxmarlState(eqx.Module):
    inner: Any  # the environment's own
    seen: jax.Array  # [N, H, W, C] float32 observations
    legal: jax.Array  # [N, A] bool
    present: jax.Array  # [N] bool, agents that are not done
    steps: jax.Array  # [] int32, steps played
    last_actions: jax.Array  # [N] int32; -1 none


@dataclass(frozen=True)
class Jaxmarl:
    """The environment of one setting; equal settings are equal games."""

    config: JaxmarlConfig
    env: Any = field(init=False, repr=False, compare=False)
    _step: Any = field(init=False, repr=False, compare=False)
    _masks: Any = field(init=False, repr=False, compare=False)  # None where all actions are allowed
    actions: tuple[int, ...] = field(init=False, repr=False, compare=False)  # [N] of each agent
    frame: ViewShape = field(init=False, repr=False, compare=False)  # of an observation
    horizon: int = field(init=False, repr=False, compare=False)

    sees_all = False
    symmetric = False  # nobody has said that it is
    has_board = False
    hidden = "the state behind an observation"
    best_joint_return = None

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        env = make_environment(self.config.name, self.config.options)
        put("env", env)
        put("actions", tuple(self._count(agent) for agent in env.agents))
        put("horizon", self.config.horizon or self._longest())
        key = jax.eval_shape(jax.random.key, 0)
        each, inner = jax.eval_shape(self._reset, key)
        put("frame", _frame(each))
        joint = self._by_agent([jax.ShapeDtypeStruct((), jnp.int32)] * self.seats)
        stepped = _works(getattr(env, "step_env", None), key, inner, joint)
        # One that has no more than a step which begins anew by itself shows the next episode's
        # first state in place of the last one, which nobody learns from.
        put("_step", env.step_env if stepped else env.step)
        masked = _works(getattr(env, "get_avail_actions", None), inner)
        put("_masks", env.get_avail_actions if masked else None)

    def _count(self, agent: Any) -> int:
        space = self.env.action_space(agent)
        if not isinstance(found := getattr(space, "n", None), int | np.integer):
            kind = type(space).__name__
            raise ConfigError(
                f"{self.name} has actions of the kind {kind}, and players here choose one of a few"
            )
        return int(found)

    def _longest(self) -> int:
        """Steps of an episode, as the environments of JaxMARL tell them."""
        env = self.env
        if inner := getattr(env, "num_inner_steps", None):
            return int(inner) * int(getattr(env, "num_outer_steps", 1))
        if most := getattr(env, "max_steps", None):
            return int(most) + 1  # some ask whether they are over before they count the step
        raise ConfigError(f"{self.name} does not tell how long an episode is: give --game.horizon")

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def seats(self) -> int:
        return self.config.seats

    @property
    def shape(self) -> ViewShape:
        height, width, planes = self.frame
        return height, width, self.seats + planes

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(f"action {number}" for number in range(max(self.actions)))

    @property
    def targets(self) -> Mapping[str, Target]:
        return {}

    def describe(self) -> tuple[str, Mapping[str, Any]]:
        return "{name} {options}", {"name": self.name, "options": self.config.options}

    def init(self, key: jax.Array) -> JaxmarlState:
        seen, inner = self._reset(key)
        everyone = jnp.ones(self.seats, bool)
        return self._state(inner, seen, everyone, jnp.int32(0), jnp.full(self.seats, -1, jnp.int32))

    def _reset(self, key: jax.Array) -> tuple[list[Any], Any]:
        """[N] observations, and the environment's state."""
        seen, inner = self.env.reset(key)
        inner = jax.tree.map(lambda leaf: _typed(leaf, jnp.asarray(leaf).dtype), inner)
        return self._each(seen), inner

    def _state(
        self, inner: Any, seen: list[Any], present: jax.Array, steps: jax.Array, last: jax.Array
    ) -> JaxmarlState:
        legal = jnp.arange(max(self.actions)) < jnp.array(self.actions)[:, None]
        if self._masks:
            masks = self._each(self._masks(inner))
            legal &= jnp.stack([_flat(mask, legal.shape[1]) > 0 for mask in masks])
        # A policy has to have something to choose, if only because a seat that has left still acts.
        legal = legal.at[:, 0].set(legal[:, 0] | ~legal.any(axis=1))
        size = math.prod(self.frame)
        views = jnp.stack([_flat(one, size).reshape(self.frame) for one in seen])
        return JaxmarlState(inner, views, legal, present, steps, last)

    def _each(self, by_agent: Any) -> list[Any]:
        """[N] what is each agent's, from a dictionary by agents or in the agents' order."""
        if not isinstance(by_agent, Mapping):
            return [by_agent[at] for at in range(self.seats)]
        if any(agent not in by_agent for agent in self.env.agents):
            raise ConfigError(f"{self.name} does not say what is whose: {', '.join(by_agent)}")
        return [by_agent[agent] for agent in self.env.agents]

    def _by_agent(self, values: Any) -> Any:
        """One value per agent, as the environment takes them."""
        # Those whose agents are numbers take actions in their order: of a dictionary, STORM's would
        # take the keys.
        numbered = all(isinstance(agent, int) for agent in self.env.agents)
        return tuple(values) if numbered else dict(zip(self.env.agents, values, strict=True))

    def step(
        self, state: JaxmarlState, joint: jax.Array, key: jax.Array
    ) -> tuple[JaxmarlState, Outcome]:
        # What is beyond an agent's own actions counts as its first; the environment's own rules say
        # what comes of any other that is not allowed.
        played = jnp.where(joint < jnp.array(self.actions), joint, 0)
        seen, inner, rewards, dones, _ = self._step(key, state.inner, self._by_agent(played))
        inner = jax.tree.map(lambda new, old: _typed(new, old.dtype), inner, state.inner)
        steps = state.steps + 1
        over = jnp.asarray(dones["__all__"], bool).reshape(()) | (steps >= self.horizon)
        # Whether an agent is done by itself; some tell only of all of them.
        done = [dones.get(agent, dones.get(str(agent), False)) for agent in self.env.agents]
        left = _stacked(done, bool) & state.present & ~over
        last = jnp.where(state.present, joint, -1).astype(jnp.int32)
        after = self._state(inner, self._each(seen), state.present & ~left, steps, last)
        allowed = jnp.take_along_axis(state.legal, joint[:, None], axis=1)[:, 0]
        return after, Outcome(
            reward=_stacked(self._each(rewards), jnp.float32),
            left=left,
            done=over,
            illegal=~allowed,
            took=jnp.zeros((self.seats, 0), jnp.int32),
            taken=jnp.zeros(0, jnp.int32),
        )

    def view(self, state: JaxmarlState, seat: jax.Array | int) -> View:
        """The observation, behind a plane for each seat that says whose it is: the first, as seats
        see themselves first. Models of the others are given it turned, and so know of whom."""
        whose = jnp.zeros((*self.frame[:2], self.seats)).at[..., 0].set(1.0)
        return View(
            planes=jnp.concatenate([whose, state.seen[seat]], axis=-1),
            legal=state.legal[seat],
            time=state.steps / self.horizon,
            last_actions=jnp.roll(state.last_actions, -seat),
        )

    def present(self, state: JaxmarlState) -> jax.Array:
        return state.present

    def seen(self, view: View) -> NoReturn:
        raise ConfigError(f"nobody sees {self.hidden} of {self.name}")

    def parse(self, text: str) -> NoReturn:
        raise ConfigError(f"{self.name} has no board that could be read from a layout")

    def show(self, state: JaxmarlState) -> NoReturn:
        raise ConfigError(f"{self.name} has no board that could be shown")


def _stacked(values: list[Any], dtype: Any) -> jax.Array:
    """[N] one number of each agent."""
    return jnp.stack([jnp.asarray(value, dtype).reshape(()) for value in values])


def _works(method: Any, *given: Any) -> bool:
    """Whether the environment has that method: the base class has it, too, and raises an error."""
    if not callable(method):
        return False
    try:
        jax.eval_shape(method, *given)
    except NotImplementedError:
        return False
    return True


def _frame(observations: list[Any]) -> ViewShape:
    """Height, width and planes: of pictures that all agents see alike their own, else one cell with
    as many numbers as the longest observation has."""
    shapes = {tuple(leaf.shape for leaf in jax.tree.leaves(one)) for one in observations}
    first = next(iter(shapes))
    if len(shapes) == 1 and len(first) == 1 and len(first[0]) == 3:
        height, width, planes = first[0]
        return height, width, planes
    return 1, 1, max(sum(math.prod(shape) for shape in one) for one in shapes)


def _flat(tree: Any, size: int) -> jax.Array:
    """[size] float32 all numbers of an observation, zeros behind a shorter one."""
    leaves = [jnp.asarray(leaf, jnp.float32).reshape(-1) for leaf in jax.tree.leaves(tree)]
    numbers = jnp.concatenate(leaves)
    return jnp.pad(numbers, (0, size - len(numbers)))


def _typed(leaf: Any, dtype: Any) -> jax.Array:
    """The same as an array of exactly that type, as loops ask for."""
    array = jnp.asarray(leaf)
    return array if jnp.issubdtype(dtype, jax.dtypes.prng_key) else jnp.array(array, dtype)


ROW = GameRow(JaxmarlConfig, Jaxmarl, ABOUT_JAXMARL)
