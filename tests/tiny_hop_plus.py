"""A tiny HOP+ learner with some play, made once: what tests of its parts share."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import (
    GoalConfig,
    GoalLearnerConfig,
    ImagineConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHuntState
from hopplus.learning.auxiliary.learners import AuxiliaryLearners
from hopplus.learning.auxiliary.transitions import EMPTY, transitions_of
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.models.world import Board, Prediction, board_of
from hopplus.play.rollout import rollout, start
from hopplus.types import View

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=12)
TINY = NetConfig(hidden=8)
ALL: Any = ("opponent", "goal", "world", "imagination")
PPO = PPOConfig(games=16, unroll=8, minibatches=2, epochs=1)
GOAL = GoalLearnerConfig(
    buffer=200,
    every=1,
    fits=2,
    batch=16,
    hidden=8,
    mixing=0.5,
    prior=GoalConfig(size=4, ahead=2, net=TINY),
)
OPPONENT = OpponentLearnerConfig(buffer=200, fits=2, batch=32, net=TINY)
WORLD = WorldLearnerConfig(buffer=200, fits=2, batch=32, model=WorldConfig(hidden=16))
IMAGINE = ImagineConfig(buffer=200, horizon=4, warm_up=256)
CONFIG = TrainConfig(
    game=GAME,
    net=TINY,
    ppo=PPO,
    parts=ALL,
    goal=GOAL,
    opponent=OPPONENT,
    world=WORLD,
    imagine=IMAGINE,
    steps=20 * PPO.steps,  # 20 updates; mixing falls to zero in the first 4
)
REAL = PPO.steps  # rows of a seat; the imagined ones are behind them
WARM = 19  # number of an update after the warm-up


def _quick() -> dict[str, Any]:
    """Options with which XLA compiles fast: that is what these tests spend their time on.

    Without its newer emitters it takes less than half of the time; versions that no longer have
    others do not know the option.
    """
    options = {"xla_backend_optimization_level": 0}
    older = {**options, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=older)()
    except jax.errors.JaxRuntimeError:
        return options
    return older


QUICK = _quick()


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options=QUICK)


def random_like(shapes: Any, seed: int) -> Any:
    """Random parameters; those of a seat do not depend on what else there is."""
    chance = np.random.default_rng(seed)
    return jax.device_put(
        jax.tree.map(lambda leaf: (0.4 * chance.normal(size=leaf.shape)).astype(leaf.dtype), shapes)
    )


def zeros_like(shapes: Any) -> Any:
    """Made by NumPy: JAX would compile a program for every shape. Buffers hold no step yet."""

    def zeros(path: Any, leaf: Any) -> np.ndarray:
        value = EMPTY if path and getattr(path[-1], "name", "") == "joint" else 0
        return np.full(leaf.shape, value, leaf.dtype)

    return jax.device_put(jax.tree_util.tree_map_with_path(zeros, shapes))


def begun(learner: Learner) -> Learning:
    """As `Learner.init`, whose compilation takes longer than all that is done with it here."""
    shapes = jax.eval_shape(learner.init, jax.random.key(0))
    param_sets = shapes.params[learner.learning]
    fields = ("policy", "prior", "context", "opponents", "world")
    param_sets = replace(
        param_sets,
        trusts=zeros_like(param_sets.trusts),
        **{name: random_like(getattr(param_sets, name), seed) for seed, name in enumerate(fields)},
    )
    zeros = zeros_like((shapes.optimiser, shapes.auxiliary_state))
    nothing_seen = jnp.broadcast_to(jnp.array([jnp.inf, -jnp.inf]), zeros[1].observed.shape)
    starts = jax.vmap(lambda key: start(learner.game, learner.seating, key))
    now: Learning = replace(
        shapes,
        params=tuple(
            param_sets if group == learner.learning else params
            for group, params in enumerate(shapes.params)
        ),
        optimiser=zeros[0],
        auxiliary_state=replace(zeros[1], observed=nothing_seen),
        plays=jit(starts)(jax.random.split(jax.random.key(1), PPO.games)),
        returns=jnp.zeros((PPO.games, GAME.seats)),
        key=jax.random.key(2),
        updates=jnp.int32(0),
        replay=zeros_like(shapes.replay),
        smoothed=zeros_like(shapes.smoothed),
    )
    return now


@dataclass(frozen=True)
class Setup:
    """A learner with some play, and its learning beside the policy as one program."""

    learner: Learner
    param_sets: Any  # [seats, ...]
    auxiliary_state: Any
    whole: Any  # the trajectory from the games' starts on
    played: Any  # moments [T, B, ...] of its second half
    batch: Any
    compiled: Any

    def learn(self, **given: Any) -> tuple[Any, Any, Any, Any]:
        """Minds, what is kept, lessons and metrics after an update with what is given."""
        given = {
            "param_sets": self.param_sets,
            "auxiliary_state": self.auxiliary_state,
            "played": self.played,
            "batch": self.batch,
            "updates": WARM,
            "gate": 1.0,
        } | given
        found: tuple[Any, Any, Any, Any] = self.compiled(**given)
        return found


@cache
def setup() -> Setup:
    learner = make_learner(CONFIG, {})
    now = begun(learner)

    @jit
    def play(plays: Any) -> Any:
        plays, trajectory = rollout(learner.game, learner.seating, now.params, plays, PPO.unroll)
        played = transitions_of(
            trajectory, learner.learning, learner.seats, learner.actor.context.size
        )
        return plays, trajectory, played, learner.batch(now.params[0], plays, trajectory)

    plays, earlier, _, _ = play(now.plays)
    _, later, played, batch = play(plays)
    whole = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), earlier, later)

    @jit
    def compiled(
        param_sets: Any, auxiliary_state: Any, played: Any, batch: Any, updates: Any, gate: Any
    ) -> Any:
        return with_gate(learner.auxiliary, gate).learn(
            param_sets, auxiliary_state, played, batch, updates, jax.random.key(3)
        )

    return Setup(learner, now.params[0], now.auxiliary_state, whole, played, batch, compiled)


def with_gate(auxiliary: AuxiliaryLearners, gate: Any) -> AuxiliaryLearners:
    """The same with the gate as a number given when it runs: one program for all of them."""
    assert auxiliary.imagined_rollouts is not None
    config = copy.copy(auxiliary.imagined_rollouts.config)
    object.__setattr__(config, "gate", gate)
    return replace(auxiliary, imagined_rollouts=replace(auxiliary.imagined_rollouts, config=config))


def same(one: Any, two: Any) -> bool:
    """Whether all numbers are equal, bit for bit."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def of_seat(tree: Any, seat: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[seat], tree)


class TrueWorld(eqx.Module):
    """The rules themselves as a world, from nothing but the view."""

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        game = make_game(GAME)
        flat = view.planes.reshape(-1, 6)
        hares = jnp.nonzero(flat[:, 5], size=2, fill_value=0)[0]
        state = StagHuntState(
            walls=flat[:, 3] > 0,
            seats=flat[:, :3].argmax(axis=0).astype(jnp.int32),
            present=flat[:, :3].any(axis=0),
            prey=jnp.append(flat[:, 4].argmax(), hares).astype(jnp.int32),
            alive=jnp.append(flat[:, 4].any(), jnp.arange(2) < flat[:, 5].sum()),
            steps=jnp.rint(view.time * game.horizon).astype(jnp.int32),
            last_actions=view.last_actions,
            first_catch=jnp.int32(-1),
        )
        after, outcome = game.step(state, joint, jax.random.key(0))
        seen = views(game, after)
        gone, legal = 1.0 - game.present(after), seen.legal.astype(jnp.float32)
        done = outcome.done.astype(jnp.float32)
        return Prediction(seen.planes[0], outcome.reward, gone, legal, done)

    def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
        return after

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        return prediction.planes, prediction.gone > 0.5

    @property
    def board(self) -> Board:
        return board_of(make_game(GAME))
