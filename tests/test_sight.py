"""Seats that do not see the whole board: what they imagine follows from what they see."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import MemoryConfig, StagHuntConfig, TrainConfig, WorldConfig
from hopplus.errors import ConfigError
from hopplus.games import make_game
from hopplus.games.grid import STAY
from hopplus.learning.from_run import make_learner
from hopplus.models.world import Prediction
from hopplus.planning.dynamics import LearnedDynamics, observe
from hopplus.types import View
from tiny_hop_plus import CONFIG, begun, jit

GAME = StagHuntConfig(size=5, seats=3, hares=2, horizon=12, sight=1)
BOARD = "0 1 . . .\n. . . . .\n. . . . h\n. . . . .\nS . h . 2"
CELLS = replace(CONFIG.world, model=WorldConfig(head="cells", hidden=8))
BLIND = replace(
    CONFIG, game=GAME, world=CELLS, imagine=replace(CONFIG.imagine, warm_up=0, gate=1.0)
)


class Still:
    """A world in which nothing changes, and everything is legal."""

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        nobody = jnp.zeros(len(joint))
        return Prediction(view.planes, nobody, nobody, jnp.ones((len(joint), 7)), jnp.float32(0))

    def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
        return after

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        return prediction.planes, prediction.gone > 0.5


def test_who_is_out_of_sight_may_do_anything() -> None:
    """Seat 1 stands beside seat 0, seat 2 in the other corner."""
    game = make_game(GAME)
    state = game.parse(BOARD)
    view = game.view(state, 0)
    assert not view.planes[..., 2].any()
    legal = np.asarray(observe(game, view).legal)
    np.testing.assert_array_equal(legal[0], view.legal)
    np.testing.assert_array_equal(legal[1], game.view(state, 1).legal)
    assert legal[2].all()
    # Later on, the last actions tell who is still there.
    later = replace(view, time=jnp.float32(0.5), last_actions=jnp.array([0, 1, -1]))
    assert observe(game, later).legal[2].tolist() == [number == STAY for number in range(7)]
    assert observe(game, replace(later, last_actions=jnp.array([0, 1, 2]))).legal[2].all()


@pytest.mark.parametrize("left", [False, True])
def test_who_is_out_of_sight_is_not_gone(left: bool) -> None:
    """What it does is known a step later, as in play; of one that has left, nothing."""
    game = make_game(GAME)
    observation = observe(game, game.view(game.parse(BOARD), 0))
    if left:
        only = jnp.arange(7) == STAY
        observation = replace(observation, legal=observation.legal.at[2].set(only))
    world: Any = Still()
    dynamics = LearnedDynamics(world, game.horizon, game.sees_all)
    joint = jnp.array([3, 1, 2])
    after, _ = dynamics.simulate(dynamics.enter(observation), joint, jax.random.key(0))
    assert after.view.last_actions.tolist() == [3, 1, -1 if left else 2]


MEMORY = replace(
    BLIND, parts=("opponent", "world", "imagination"), memory=MemoryConfig(kind="episode", size=8)
)


@pytest.mark.parametrize("config", [BLIND, MEMORY], ids=["goals", "memory"])
def test_parts_learn_from_what_is_seen(config: TrainConfig) -> None:
    """Two updates, in which every model changes and imagined steps are learned from."""
    learner = make_learner(config, {})
    now = begun(learner)
    update = jit(lambda now: learner.update_shown(now))
    first = now.params[learner.learning]
    for _ in range(2):
        now, metrics, lesson = update(now)
    assert all(np.isfinite(value).all() for value in metrics.values())
    assert lesson.batch.imagined.any()
    assert lesson.batch.present[lesson.batch.imagined].all()
    last = now.params[learner.learning]
    for name in ("policy", "context", "opponents", "world"):
        before, after = (jax.tree.leaves(getattr(params, name)) for params in (first, last))
        assert any((one != two).any() for one, two in zip(before, after, strict=True)), name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"world": CONFIG.world}, "take --world.head cells"),
        ({"parts": ("opponent", "belief")}, "a belief needs the whole game"),
        (
            {"parts": ("opponent",), "search": replace(CONFIG.search, simulations=2)},
            "take --search.world learned",
        ),
    ],
)
def test_what_needs_the_whole_board_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_learner(replace(BLIND, **change), {})
