"""JaxMARL's own independent PPO on our games, for `benchmarks.peers`.

The file of it is no part of the package jaxmarl: it comes with a clone of the repository, as
`baselines/IPPO/ippo_ff_mpe.py`, and is run as it is. What it imports to draw, to log and to read
settings is not needed for that and may be missing.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.config import ConfigError, NetConfig, PPOConfig
from hopplus.games.game import Game, views

# What JaxMARL and its file import, but for the categorical distribution not for training.
DISPENSABLE = (
    "matplotlib",
    "PIL",
    "imageio",
    "distrax",
    "hydra",
    "omegaconf",
    "wandb",
    "gymnax",
    "six",
)
TRAIN = "make_train"  # of the file: settings -> a function of a key that trains


class Anything(ModuleType):
    """A module in which everything asked for is there, and does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Nothing:
    """Whatever is called by it or asked of it."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, function: Any = None, *_: Any, **__: Any) -> Any:
        return function  # as a decorator


class Categorical:
    """As distrax has it, where it is not installed: it drags in a nightly build of TensorFlow
    Probability."""

    def __init__(self, logits: jax.Array) -> None:
        self.logits = jax.nn.log_softmax(logits)

    def sample(self, *, seed: jax.Array) -> jax.Array:
        return jax.random.categorical(seed, self.logits)

    def log_prob(self, action: jax.Array) -> jax.Array:
        return jnp.take_along_axis(self.logits, action[..., None], axis=-1)[..., 0]

    def entropy(self) -> jax.Array:
        return -(jnp.exp(self.logits) * self.logits).sum(axis=-1)


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what is dispensable after all others have not."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        top, _, inner = name.partition(".")
        # What an installed one lacks, it lacks on purpose: six has no `moves.winreg` on Linux.
        if top not in DISPENSABLE or (inner and not isinstance(sys.modules.get(top), Anything)):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = Anything(spec.name)
        if spec.name == "distrax":
            vars(module)["Categorical"] = Categorical
        if spec.name == "wandb":
            vars(module)["log"] = lambda metric: None
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


@contextmanager
def without_dispensable() -> Iterator[None]:
    """Import what needs them although they are missing; they are as missing as before later."""
    finder, before = StandIns(), set(sys.modules)
    sys.meta_path.append(finder)
    try:
        with redirect_stdout(sys.stderr):  # what is said meanwhile is no figure
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            if isinstance(sys.modules[name], Anything):
                del sys.modules[name]


def load_ippo(file: Path) -> ModuleType:
    """The file as a module, or `ConfigError`."""
    if not file.is_file():
        raise ConfigError(
            f"--ippo is {file}, which is no file: give baselines/IPPO/ippo_ff_mpe.py of a clone of"
            " JaxMARL"
        )
    with without_dispensable():
        try:
            import jaxmarl.environments.multi_agent_env  # noqa: F401
        except ImportError as error:
            raise ConfigError(f"jaxmarl is not installed (pip install jaxmarl): {error}") from error
        spec = importlib.util.spec_from_file_location("jaxmarl_ippo", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    if not hasattr(module, TRAIN):
        raise ConfigError(f"--ippo is {file}, which has no {TRAIN}")
    return module


def as_environment(game: Game) -> Any:
    """Our game with JaxMARL's methods: what our networks are given, and new episodes by its own
    `step`."""
    base: Any = import_module("jaxmarl.environments.multi_agent_env")
    spaces: Any = import_module("jaxmarl.environments.spaces")
    seats = [f"seat_{seat}" for seat in range(game.seats)]
    height, width, planes = game.shape
    size, actions = height * width * planes + 1, len(game.action_names)

    class Environment(base.MultiAgentEnv):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(num_agents=len(seats))
            self.agents = seats
            self.observation_spaces = {seat: spaces.Box(0.0, 1.0, (size,)) for seat in seats}
            self.action_spaces = {seat: spaces.Discrete(actions) for seat in seats}

        def reset(self, key: jax.Array) -> tuple[Any, Any]:
            state = game.init(key)
            return self.get_obs(state), state

        def step_env(self, key: jax.Array, state: Any, actions: Any) -> Any:
            joint = jnp.stack([actions[seat].reshape(()) for seat in seats])
            after, outcome = game.step(state, joint, key)
            over = ~game.present(after) | outcome.done
            rewards = dict(zip(seats, outcome.reward, strict=True))
            dones = {**dict(zip(seats, over, strict=True)), "__all__": outcome.done}
            return self.get_obs(after), after, rewards, dones, {}

        def get_obs(self, state: Any) -> dict[str, jax.Array]:
            seen = views(game, state)
            planes = seen.planes.astype(jnp.float32).reshape(len(seats), -1)
            flat = jnp.concatenate([planes, seen.time[:, None]], axis=1)
            return dict(zip(seats, flat, strict=True))

    return Environment()


def equal_network(module: ModuleType, net: NetConfig) -> Any:
    """Flax's reading of ours: one body of dense layers with rectifiers, and two heads."""
    nn: Any = module.nn
    distrax: Any = module.distrax

    class Equal(nn.Module):  # type: ignore[misc]
        action_dim: int
        activation: str = "relu"

        @nn.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: jax.Array) -> tuple[Any, jax.Array]:
            for _ in range(net.layers):
                x = nn.relu(nn.Dense(net.hidden)(x))
            logits, value = nn.Dense(self.action_dim)(x), nn.Dense(1)(x)
            return distrax.Categorical(logits=logits), value[..., 0]

    return Equal


def ippo(
    module: ModuleType, game: Game, config: PPOConfig, updates: int, net: NetConfig | None
) -> Callable[[jax.Array], Any]:
    """Its training of so many updates, of as many games, steps, epochs and minibatches as ours;
    with its own network, or with one like ours."""
    settings = {
        "ENV_NAME": game.name,
        "ENV_KWARGS": {},
        "NUM_ENVS": config.games,
        "NUM_STEPS": config.unroll,
        "TOTAL_TIMESTEPS": updates * config.steps,
        "UPDATE_EPOCHS": config.epochs,
        "NUM_MINIBATCHES": config.minibatches,
        "LR": config.learning_rate,
        "GAMMA": config.discount,
        "GAE_LAMBDA": config.gae_lambda,
        "CLIP_EPS": config.clip,
        "ENT_COEF": config.entropy,
        "VF_COEF": config.value_weight,
        "MAX_GRAD_NORM": config.gradient_norm,
        "ACTIVATION": "relu",
        "ANNEAL_LR": updates > 0,
    }
    own: dict[str, Any] = vars(module)
    changed = {"jaxmarl": SimpleNamespace(make=lambda name, **_: as_environment(game))}
    if net is not None:
        changed["ActorCritic"] = equal_network(module, net)
    before = {name: own[name] for name in changed}

    def train(key: jax.Array) -> Any:
        own.update(changed)  # looked up while it is traced
        try:
            return own[TRAIN](dict(settings))(key)
        finally:
            own.update(before)

    return train
