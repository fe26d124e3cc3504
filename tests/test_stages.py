"""Where a seat looks ahead: the state it sees does what the real one does, the learned world and
the true one are used alike, and what nobody sees is said."""

import inspect
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import ConfigError, SearchConfig, StagHuntConfig, TrainConfig
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt
from hopplus.planning.dynamics import Dynamics, LearnedDynamics, Observation, TrueDynamics, observe
from hopplus.players.actor import make_actor
from hopplus.players.planner import with_search
from tiny_hop_plus import GAME, TrueWorld, jit
from tiny_search import GAME_MADE, actor_of

STAY = 4
BOARDS = {
    "4x4": StagHuntConfig(size=4, horizon=8),
    "8x8": StagHuntConfig(size=8, stags=2, obstacles=3, boards=8, horizon=30),
    "three seats": GAME,
}
EAGER = jnp.array([0.0] * 5 + [4.0, 0.0])  # who is on a stag waits there for another


@cache
def reached(name: str) -> tuple[StagHunt, Any, jax.Array]:
    """A game, states [B] from the midst of random play, and joints [B, N]: half of them what was
    played, the others any, illegal ones included and hunts more often."""
    game = StagHunt(BOARDS[name])

    def step(state: Any, key: jax.Array) -> Any:
        joint = legal_joint(game, state, key)
        after, outcome = game.step(state, joint, jax.random.key(0))
        return after, (state, joint, outcome.done)

    @jit
    def play(keys: jax.Array) -> Any:
        first = jax.vmap(game.init)(keys[0])
        return jax.lax.scan(jax.vmap(step), first, keys)[1]

    keys = jax.random.split(jax.random.key(1), (game.horizon, 64))
    states, joints, done = jax.device_get(play(keys))
    before_the_end = np.cumsum(done, axis=0) - done == 0
    states, joints = jax.tree.map(lambda leaf: leaf[before_the_end], (states, joints))
    rng = np.random.default_rng(2)
    any_at_all = rng.choice([0, 1, 2, 3, 4, 5, 5, 5, 6, 6], joints.shape).astype(np.int32)
    keep = rng.random(len(joints)) < 0.5
    return game, states, jnp.where(keep[:, None], joints, any_at_all)


def legal_joint(game: StagHunt, state: Any, key: jax.Array) -> jax.Array:
    """[N] any legal actions, and hunts more often than others."""
    return jax.random.categorical(key, jnp.where(views(game, state).legal, EAGER, -jnp.inf))


@pytest.mark.parametrize("name", BOARDS)
def test_what_a_seat_sees_does_what_the_real_state_does(name: str) -> None:
    """For every seat, bit for bit: the seen state shows the view; a step of it, with the joint own
    first, brings the same rewards, own first, the same end and the seat's next view."""
    game, states, joints = reached(name)

    @jit
    def both(state: Any, joint: jax.Array) -> Any:
        after, outcome = game.step(state, joint, jax.random.key(0))
        real = views(game, state), views(game, after)

        def of_seat(seat: jax.Array) -> Any:
            order = (seat + jnp.arange(game.seats)) % game.seats
            seen = game.seen(game.view(state, seat))
            later, transition = game.step(seen, joint[order], jax.random.key(0))
            shown = game.view(seen, 0), game.view(later, 0)
            there = game.present(seen), game.present(later)
            expected = game.present(state)[order], game.present(after)[order]
            same = views(game, seen).legal, views(game, state).legal[order]
            return (
                shown,
                there,
                expected,
                same,
                transition,
                outcome.reward[order],
                outcome.took[order],
            )

        return real, outcome, jax.vmap(of_seat)(jnp.arange(game.seats))

    real, outcome, of_seat = jax.device_get(jax.vmap(both)(states, joints))
    shown, there, expected, legal, transition, reward, took = of_seat
    jax.tree.map(np.testing.assert_array_equal, shown, real)
    jax.tree.map(np.testing.assert_array_equal, there, expected)
    np.testing.assert_array_equal(*legal)
    np.testing.assert_array_equal(transition.reward, reward)
    np.testing.assert_array_equal(transition.took, took)
    np.testing.assert_array_equal(
        transition.done, np.repeat(outcome.done[:, None], game.seats, axis=1)
    )
    np.testing.assert_array_equal(transition.taken[:, 0], outcome.taken)
    # All that matters has happened in these states.
    assert (outcome.taken.sum(axis=0) > 3).all()
    assert 10 < outcome.done.sum() < len(joints) / 2
    assert outcome.illegal.any()
    assert 10 < (~expected[0]).sum() < expected[0].size / 2


def played(dynamics: Dynamics, observation: Observation, joints: jax.Array) -> Any:
    """Scenes [H, ...] from the first on and turns [H, ...] of joints [H, N] in a row."""

    def step(embedding: Any, joint: jax.Array) -> Any:
        after, transition = dynamics.simulate(embedding, joint, jax.random.key(0))
        return after, (dynamics.observation(embedding), transition)

    return jax.lax.scan(step, dynamics.enter(observation), joints)[1]


def test_worlds_learned_and_true_are_used_alike() -> None:
    """One signature, and the same shapes of all that comes out."""
    for name in ("enter", "observation", "simulate"):
        one, two, said = (
            list(inspect.signature(getattr(kind, name)).parameters)
            for kind in (LearnedDynamics, TrueDynamics, Dynamics)
        )
        assert one == two == said
    actor = actor_of("opponent", "world")
    world = eqx.filter_eval_shape(actor.init, jax.random.key(0)).world
    view = jax.eval_shape(lambda key: GAME_MADE.view(GAME_MADE.init(key), 1), jax.random.key(0))
    observation = jax.eval_shape(lambda view: observe(GAME_MADE, view), view)
    joints = jax.ShapeDtypeStruct((5, 3), jnp.int32)
    shapes = [
        jax.eval_shape(played, dynamics, observation, joints)
        for dynamics in (LearnedDynamics(world, GAME.horizon), TrueDynamics(GAME_MADE))
    ]
    learned, true = (jax.tree_util.tree_flatten_with_path(shape)[0] for shape in shapes)
    assert learned == true
    observations, turns = shapes[0]
    assert observations.legal.shape == (5, 3, 7)
    assert turns.reward.shape == (5, 3)
    assert turns.ended.shape == (5,)


def test_a_world_that_has_learned_the_rules_is_the_true_one() -> None:
    """From states of random play, three steps of what is legal."""
    game, states, _ = reached("three seats")
    world: Any = TrueWorld()

    @jit
    def both(state: Any, seat: jax.Array, key: jax.Array) -> Any:
        observation = observe(game, game.view(state, seat))

        def step(state: Any, key: jax.Array) -> Any:
            joint = legal_joint(game, state, key)
            return game.step(state, joint, jax.random.key(0))[0], joint

        joints = jax.lax.scan(step, game.seen(observation.view), jax.random.split(key, 3))[1]
        dynamics: tuple[Any, ...] = (LearnedDynamics(world, game.horizon), TrueDynamics(game))
        return [played(dynamics, observation, joints) for dynamics in dynamics]

    count = len(states.steps)
    seats = jnp.arange(count) % 3
    keys = jax.random.split(jax.random.key(3), count)
    (observations, turns), (true_scenes, true_turns) = jax.device_get(
        jax.vmap(both)(states, seats, keys)
    )
    going = np.cumsum(true_turns.ended, axis=1) - true_turns.ended == 0  # steps up to the end
    assert 0.3 < going.mean() < 1
    for name in ("planes", "legal", "last_actions"):
        one, two = (getattr(found.view, name) for found in (observations, true_scenes))
        np.testing.assert_array_equal(one[going], two[going])
    np.testing.assert_array_equal(observations.legal[going], true_scenes.legal[going])
    np.testing.assert_allclose(
        observations.view.time[going], true_scenes.view.time[going], atol=1e-6
    )
    np.testing.assert_array_equal(turns.reward[going], true_turns.reward[going])
    np.testing.assert_array_equal(turns.ended[going], true_turns.ended[going])
    assert (turns.reward[going] > 0).any()


def test_an_end_is_the_seats_own() -> None:
    """It ends for a seat that leaves, though others go on, and goes on when others leave."""
    dynamics = TrueDynamics(GAME_MADE)
    embedding = GAME_MADE.parse("0h . 1h\n. . .\n2 . S")
    joints = jnp.array([[6, STAY, STAY], [STAY, 6, STAY], [STAY, STAY, STAY]])
    key = jax.random.key(0)
    after, transition = jit(jax.vmap(lambda joint: dynamics.simulate(embedding, joint, key)))(
        joints
    )
    assert transition.ended.tolist() == [True, False, False]
    assert transition.reward.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(after.last_actions, joints)


# What nobody sees

HIDDEN: list[tuple[dict[str, Any], str]] = [
    ({"sight": 1}, "what is out of sight (game.sight)"),
    ({"grace": 2}, "when the first prey was caught (game.grace)"),
    ({"strength": (1, 1, 2, 1)}, "who is stronger (game.strength)"),
]


def test_what_is_hidden_is_named() -> None:
    for settings, words in HIDDEN:
        assert StagHunt(StagHuntConfig(**settings)).hidden == words
    for settings in ({}, {"strength": (2, 2, 2, 2)}, {"time_reward": -0.1}):
        assert StagHunt(StagHuntConfig(**settings)).hidden is None


@pytest.mark.parametrize(("settings", "words"), HIDDEN)
def test_search_and_belief_refuse_it_in_one_sentence(settings: dict[str, Any], words: str) -> None:
    config = TrainConfig(game=StagHuntConfig(**settings))
    game = make_game(config.game)
    actor = make_actor("one", game, config)
    with pytest.raises(ConfigError) as error:
        with_search(actor, game, SearchConfig(simulations=1), config)
    assert str(error.value) == (
        f"a search by the rules needs the whole game, but nobody sees {words}: take"
        " --search.world learned"
    )
    assert with_search(actor, game, SearchConfig(simulations=0), config) is actor
    config = TrainConfig(game=config.game, parts=("opponent", "belief"))
    with pytest.raises(ConfigError) as error:
        make_actor("one", game, config)
    assert str(error.value) == f"a belief needs the whole game, but nobody sees {words}"


@pytest.mark.parametrize("options", [["--game.sight", "1"], ["--game.grace", "2"]], ids=str)
@pytest.mark.parametrize("preset", ["direct-om", "hop"])
def test_and_so_does_the_command_line(
    preset: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", preset, *options, "--name", "never"]) == 2
    said = capsys.readouterr().err
    assert "the whole game, but nobody sees" in said
    assert said.count("\n") == 1
