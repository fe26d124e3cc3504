"""Where things that others take concern everybody, the structured world model learns what they
bring: harm to the owner of a coin, and a cleared drift's worth to all."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hopplus.config import make_config
from hopplus.games import make_game
from hopplus.games.game import Game, views
from hopplus.learning.auxiliary.world import _wrong
from hopplus.models.structured_world import StructuredWorld
from hopplus.models.world import board_of
from hopplus.planning.dynamics import LearnedDynamics, Observation
from hopplus.types import Sample

GAMES, STEPS = 128, 400


def samples(game: Game, key: jax.Array) -> Sample:
    """[GAMES] steps of random play, each as a seat that is drawn for it sees it."""

    def one(key: jax.Array) -> Sample:
        keys = jax.random.split(key, 5)
        state = game.init(keys[0])
        for number in range(3):  # away from the start, where nobody stands on anything
            joint = _legal_acts(game, state, jax.random.fold_in(keys[1], number))
            state, _ = game.step(state, joint, jax.random.fold_in(keys[2], number))
        joint = _legal_acts(game, state, keys[3])
        after, outcome = game.step(state, joint, keys[4])
        seat = jax.random.randint(key, (), 0, game.seats)
        there = jnp.ones(game.seats, bool)
        view, later = game.view(state, seat), game.view(after, seat)
        legal = jnp.roll(views(game, after).legal, -seat, axis=0)
        joint, reward = jnp.roll(joint, -seat), jnp.roll(outcome.reward, -seat)
        return Sample(
            view, there, joint, reward, later, there, legal, outcome.done, view, seat, jnp.zeros(0)
        )

    return jax.vmap(one)(jax.random.split(key, GAMES))


def _legal_acts(game: Game, state: Any, key: jax.Array) -> jax.Array:
    """Any; what is not a move twice as likely, so that things are taken."""
    legal = views(game, state).legal
    chances = legal * jnp.where(jnp.arange(legal.shape[1]) > 4, 8.0, 1.0)
    return jax.random.categorical(key, jnp.log(chances)).astype(jnp.int32)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("coin-v1", {"size": 3, "seats": 3, "coins": 3}),
        ("snowdrift-v1", {"size": 3, "seats": 3, "drifts": 4}),
    ],
)
def test_rewards_of_what_others_take_are_learned(name: str, settings: dict[str, int]) -> None:
    game = make_game(make_config(name, **settings))
    board = board_of(game)
    assert board.common
    world = StructuredWorld(board, 32, jax.random.key(0))
    optimiser = optax.adam(optax.linear_schedule(1e-2, 0.0, STEPS))
    weights = jnp.ones(game.shape[2])

    def loss(world: StructuredWorld, batch: Sample) -> jax.Array:
        found = jax.vmap(lambda sample: world.losses(sample, weights))(batch)
        return sum(value.mean() for value in found.values())  # type: ignore[return-value]

    @jax.jit
    def fit(world: StructuredWorld, key: jax.Array) -> StructuredWorld:
        def step(now: Any, key: jax.Array) -> tuple[Any, None]:
            world, state = now
            change, state = optimiser.update(jax.grad(loss)(world, samples(game, key)), state)
            return (optax.apply_updates(world, change), state), None

        keys = jax.random.split(key, STEPS)
        return jax.lax.scan(step, (world, optimiser.init(world)), keys)[0][0]

    fresh = samples(game, jax.random.key(99))
    learned = fit(world, jax.random.key(1))
    predicted = jax.jit(jax.vmap(lambda world, one: world(one.view, one.joint).reward, (None, 0)))
    wrong = np.abs(predicted(learned, fresh) - fresh.reward)
    hit = np.asarray(fresh.reward) != 0
    assert hit.mean() > 0.2  # there is something to learn
    assert (wrong[hit] > 0.25).mean() < 0.1
    assert (wrong[~hit] > 0.25).mean() < 0.1
    # Coins that come back by chance are no mistake of the model's.
    judged = jax.jit(jax.vmap(lambda one: _wrong(learned, one, jnp.float32(1.0))))(fresh)
    came = (fresh.after.planes > fresh.view.planes)[..., game.seats + 1 :].any(axis=(1, 2, 3))
    assert (came.mean() > 0.2) == (name == "coin-v1")
    assert judged["planes_wrong"].mean() < 0.1
    if board.returning:
        assert_coins_come_back(game, learned, fresh)


def assert_coins_come_back(game: Game, world: StructuredWorld, steps: Sample) -> None:
    """In imagination as often as in the game, of every owner alike, in cells that were free."""
    assert world.back is not None
    frequencies = np.asarray(jax.nn.softmax(world.back))
    np.testing.assert_allclose(frequencies, [1 / 3, 1 / 3, 1 / 3, 0], atol=0.08)
    dynamics = LearnedDynamics(world, game.horizon)

    @jax.jit
    def imagine(steps: Sample, keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[B, H, W, C] what the world predicts, and what is imagined."""

        def one(step: Sample, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            legal = jnp.ones((game.seats, 5), bool)
            after, _ = dynamics.simulate(Observation(step.view, legal), step.joint, key)
            return world.settled(world(step.view, step.joint))[0], after.view.planes

        return jax.vmap(one)(steps, keys)

    keys = jax.random.split(jax.random.key(7), GAMES)
    predicted, imagined = (np.asarray(planes) for planes in imagine(steps, keys))
    coins = imagined[..., game.seats + 1 :]
    gone = (predicted[..., game.seats + 1 :].sum(axis=(1, 2, 3)) < 3).mean()
    assert gone > 0.2
    assert (coins.sum(axis=(1, 2, 3)) == 3).mean() > 1 - 0.2 * gone
    new = imagined > predicted
    assert not new[..., : game.seats + 1].any()
    assert not predicted[new.any(axis=-1)].any()  # where nothing was
    assert new.sum(axis=-1).max() == 1
    owners = new[..., game.seats + 1 :].sum(axis=(0, 1, 2)) / new.sum()
    np.testing.assert_allclose(owners, 1 / 3, atol=0.15)
