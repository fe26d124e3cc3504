"""What every game must do for everything else to work, on the real game and on a toy."""

import re
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

import hopplus
from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.evaluation.evaluate import evaluate, summarise
from hopplus.evaluation.replay.film import film
from hopplus.games.game import Game, views
from hopplus.games.pettingzoo import HopplusEnv
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.auxiliary.learners import make_auxiliary_learners
from hopplus.learning.learner import Learner
from hopplus.play.lineup import make_lineup
from hopplus.play.rollout import start
from hopplus.play.seating import seat_players
from hopplus.players.actor import make_actor
from toy_game import Coins

GAMES: dict[str, Game] = {
    "stag-hunt": StagHunt(StagHuntConfig(size=3, seats=2, hares=2, obstacles=1, boards=4)),
    "coins": Coins(),
}
KEY = jax.random.key(5)


@pytest.fixture(params=GAMES)
def game(request: pytest.FixtureRequest) -> Game:
    return GAMES[request.param]


def test_functions_jit_as_they_are(game: Game) -> None:
    state = jax.jit(game.init)(KEY)
    joint = jnp.full(game.seats, 4, jnp.int32)
    after, outcome = jax.jit(game.step)(state, joint, KEY)
    view = jax.jit(game.view)(after, 0)
    assert view.planes.shape == game.shape
    assert view.planes.dtype == jnp.float32
    assert view.legal.shape == (len(game.action_names),)
    assert view.last_actions.shape == (game.seats,)
    assert outcome.reward.shape == outcome.left.shape == outcome.illegal.shape == (game.seats,)
    assert outcome.took.shape == (game.seats, len(game.targets))
    assert outcome.taken.shape == (len(game.targets),)
    assert jax.jit(game.present)(after).shape == (game.seats,)
    keys = jax.random.split(KEY, 3)
    _, outcomes = jax.lax.scan(lambda state, key: game.step(state, joint, key), state, keys)
    assert outcomes.reward.shape == (3, game.seats)


def test_layouts_round_trip(game: Game) -> None:
    text = game.show(jax.jit(game.init)(KEY))
    assert game.show(game.parse(text)) == text


def test_targets_show_where_they_can_be_taken(game: Game) -> None:
    """A seat on a target's plane may take it, and one elsewhere may not; where walking onto it
    takes it, nobody stands on one, but some come where one was and have then taken it."""
    keys = jax.random.split(KEY, 64)
    states = jax.jit(jax.vmap(game.init))(keys)
    step = jax.jit(jax.vmap(game.step))
    see = jax.jit(jax.vmap(lambda state: views(game, state)))
    before = jax.device_get(see(states))
    for move in (0, 2, 1):  # up, left, down
        states, outcome = step(states, jnp.full((64, game.seats), move, jnp.int32), keys)
        seen = jax.device_get(see(states))
        for kind, target in enumerate(game.targets.values()):
            on_it = (seen.planes[..., 0] * seen.planes[..., target.plane]).sum(axis=(2, 3)) > 0
            if target.action is not None:
                np.testing.assert_array_equal(seen.legal[..., target.action], on_it)
                continue
            assert not on_it.any()
            where_it_was = seen.planes[..., 0] * before.planes[..., target.plane]
            came = where_it_was.sum(axis=(2, 3)) > 0
            np.testing.assert_array_equal(came, outcome.took[..., kind] > 0)
            assert came.any()
        before = seen


def test_players_play_it(game: Game) -> None:
    kind = next(iter(game.targets))
    seating = seat_players(f"{kind},noisy-{kind}:0.5", game)
    episodes = evaluate(game, seating, seating.init(KEY), KEY, 64, 64)
    summary = summarise(game, seating, [episodes])
    assert game.best_joint_return is not None
    assert summary.joint_return.episodes.mean <= game.best_joint_return
    assert (np.asarray(episodes.taken).sum(axis=0) > 0).any()
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
    lineup = make_lineup(["learn", "random"], game, newcomer=actor)
    auxiliary = make_auxiliary_learners(config, game, actor, np.array([0]), {})
    learner = Learner(game, lineup, ppo, 2, 0, auxiliary)
    state: Any = jax.jit(learner.init)(KEY)
    _, metrics = jax.jit(learner.update)(state)
    assert np.isfinite(metrics["value_loss"]).all()


SOURCE = Path(hopplus.__file__).parent
# What only Stag-Hunt has: its settings, its actions, its class.
OWN = re.compile(
    r"\.(sight|weights|grace|strength|stags|hares|stag_hunters|stag_reward|hare_reward|board_seed)\b"
    r"|\b(StagHunt\w*|HUNT_\w+|LETTERS)\b|getattr\(.*\"(sight|weights|grace|strength|stags|hares)\""
)
# The table of games by name has a row for it, its settings stand there, and it has co-players.
AT_HOME = {f"config/{name}.py" for name in ("__init__", "board_games", "games")}
AT_HOME |= {"players/scripted/stag_hunt.py"}


def test_nobody_outside_the_games_knows_one_of_them() -> None:
    assert OWN.search("self.game.sight is None")
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        if "games" not in path.parts and str(path.relative_to(SOURCE)) not in AT_HOME
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OWN.search(line)
    ]
    assert found == []
