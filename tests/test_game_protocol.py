"""What every game must do for everything else to work, on the real game and on a toy."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.evaluation.evaluate import evaluate, summarise
from hopplus.evaluation.film import film
from hopplus.games.game import Game, views
from hopplus.games.pettingzoo import HopplusEnv
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.beside import make_beside
from hopplus.learning.company import make_company
from hopplus.learning.learner import Learner
from hopplus.learning.rollout import start
from hopplus.players.actor import make_actor
from hopplus.players.seating import seat_players
from toy_game import Berries

GAMES: dict[str, Game] = {
    "stag-hunt": StagHunt(StagHuntConfig(size=3, seats=2, hares=2, obstacles=1, boards=4)),
    "berries": Berries(),
}
KEY = jax.random.key(5)


@pytest.fixture(params=GAMES)
def game(request: pytest.FixtureRequest) -> Game:
    return GAMES[request.param]


def test_functions_jit_as_they_are(game: Game) -> None:
    state = jax.jit(game.init)(KEY)
    joint = jnp.full(game.seats, 4, jnp.int32)
    after, outcome = jax.jit(game.step)(state, joint)
    view = jax.jit(game.view)(after, 0)
    assert view.planes.shape == game.shape
    assert view.planes.dtype == jnp.float32
    assert view.legal.shape == (len(game.action_names),)
    assert view.last_actions.shape == (game.seats,)
    assert outcome.reward.shape == outcome.left.shape == outcome.illegal.shape == (game.seats,)
    assert outcome.took.shape == (game.seats, len(game.targets))
    assert outcome.taken.shape == (len(game.targets),)
    assert jax.jit(game.present)(after).shape == (game.seats,)
    _, outcomes = jax.lax.scan(game.step, state, jnp.stack([joint] * 3))
    assert outcomes.reward.shape == (3, game.seats)


def test_layouts_round_trip(game: Game) -> None:
    text = game.show(jax.jit(game.init)(KEY))
    assert game.show(game.parse(text)) == text


def test_targets_show_where_they_can_be_taken(game: Game) -> None:
    """A seat on a target's plane may take it, and one elsewhere may not."""
    states = jax.jit(jax.vmap(game.init))(jax.random.split(KEY, 64))
    step = jax.jit(jax.vmap(game.step))
    see = jax.jit(jax.vmap(lambda state: views(game, state)))
    for _ in range(3):
        states, _ = step(states, jnp.zeros((64, game.seats), jnp.int32))
        seen = jax.device_get(see(states))
        for target in game.targets.values():
            on_it = (seen.planes[..., 0] * seen.planes[..., target.plane]).sum(axis=(2, 3)) > 0
            np.testing.assert_array_equal(seen.legal[..., target.action], on_it)


def test_players_play_it(game: Game) -> None:
    kind = next(iter(game.targets))
    seating = seat_players(f"{kind},noisy-{kind}:0.5", game)
    episodes = evaluate(game, seating, seating.init(KEY), KEY, 64, 64)
    summary = summarise(game, seating, [episodes])
    assert 0 < summary.joint_return.episodes.mean <= game.best_joint_return
    assert episodes.length.max() <= game.horizon
    begun = jax.jit(lambda key: start(game, seating, key))(KEY)
    frames = film(game, seating, seating.init(KEY), begun)
    assert len(frames) >= 2


def test_pettingzoo_takes_it(game: Game) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(HopplusEnv(game), num_cycles=30)


def test_learners_learn_it(game: Game) -> None:
    ppo = PPOConfig(games=8, unroll=4, epochs=1, minibatches=1)
    config = TrainConfig(net=NetConfig(hidden=8), ppo=ppo)
    actor = make_actor("learn", game, config)
    company = make_company(["learn", "random"], game, learner=actor)
    beside = make_beside(config, game, actor, np.array([0]), {})
    learner = Learner(game, company, ppo, 2, 0, beside)
    state: Any = jax.jit(learner.init)(KEY)
    _, metrics = jax.jit(learner.update)(state)
    assert np.isfinite(metrics["value_loss"]).all()
