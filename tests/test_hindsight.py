"""Goals inferred in play and selected in hindsight, by numbers worked by hand."""

from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import GoalConfig
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.learning.auxiliary.hindsight import Segment, seen_by, select_goals
from hopplus.models.goal import GoalCode, GoalPart, selected
from hopplus.models.history import recalled
from hopplus.models.nets import Gru
from hopplus.players.context.goals import GoalsContext
from hopplus.types import View
from tiny_hop_plus import GAME, GOAL, PPO, TINY, jit, of_seat, random_like, setup

# Goals in play.


def test_goals_in_play_are_inferred_from_the_episode_so_far() -> None:
    """Step by step, and all at once as the goal part looks back on them."""
    s = setup()
    actor, game = s.learner.actor, s.learner.game
    part = actor.context
    assert isinstance(part, GoalsContext)
    done = np.asarray(s.whole.outcome.done)
    begins = np.roll(done, 1, axis=0)
    begins[0] = False
    assert begins[:-3].any()  # an episode begins within, and goes on

    @jit
    def again() -> Any:
        seen = jax.vmap(jax.vmap(lambda state: views(game, state)))(s.whole.state)
        infer = jax.vmap(jax.vmap(actor.infer), in_axes=(None, 0, 0))  # games, seats

        def step(memory: Any, now: Any) -> Any:
            seen, begins = now
            memory = jnp.where(begins[:, None, None], actor.start(), memory)
            after, inferred = infer(s.param_sets, memory, seen)
            return after, (memory, inferred)

        first = jnp.zeros((PPO.games, GAME.seats, GOAL.hidden))
        by_step = jax.lax.scan(step, first, (seen, jnp.asarray(begins)))[1]

        def at_once(player_params: Any, seen: View, begins: Any) -> Any:
            before, after = recalled(player_params.context.history, part.start(), seen, begins)
            codes = jax.vmap(part.codes, in_axes=(None, 0))(player_params.context, after)
            return before, part.goal.settled(codes)[:, 0]

        over_seats = jax.vmap(at_once, in_axes=(0, 1, None), out_axes=1)
        over_games = jax.vmap(over_seats, in_axes=(None, 1, 1), out_axes=1)
        return by_step, over_games(s.param_sets, seen, jnp.asarray(begins))

    for memory, inferred in again():
        np.testing.assert_allclose(memory, s.whole.memory[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(inferred, s.whole.act.inferred, rtol=1e-4, atol=1e-5)
    assert np.abs(s.whole.memory[0][1:]).max() > 0.1
    assert (s.whole.memory[0][begins] == 0).all()


# What hindsight selects.


def hare_states(present: np.ndarray, steps: int) -> Any:
    """[T] states of different boards in which those [T, N] are present."""
    game = make_game(GAME)
    states = jit(jax.vmap(game.init))(jax.random.split(jax.random.key(4), steps))
    return replace(states, present=jnp.asarray(present))


PRESENT = np.array(
    [[1, 1, 1], [1, 1, 1], [1, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [0, 1, 0]], bool
)
DONE = np.array([False, False, False, True, False, False, False])


@cache
def segment() -> Segment:
    memory = jnp.arange(2.0 * GOAL.hidden).reshape(2, -1) / 10  # of two who learn
    joint = jnp.arange(21).reshape(7, 3) % 7
    fresh = jnp.append(False, jnp.asarray(DONE)[:-1])
    return Segment(hare_states(PRESENT, 7), joint, jnp.asarray(DONE), fresh, memory)


seen_of = jit(lambda segment, seat, own: seen_by(make_game(GAME), segment, seat, own))


@pytest.mark.parametrize("seat", [0, 2])
def test_how_long_the_others_go_on_by_hand(seat: int) -> None:
    seen = seen_of(segment(), seat, 1)
    by_seat = np.array(
        [
            [3, 2, 1, 0, 0, 0, 0],  # until the episode ends with step 3; then until it leaves
            [1, 0, 0, 0, 2, 1, 0],  # leaves after step 1; then to the end of the segment
            [3, 2, 1, 0, 1, 0, 0],
        ]
    ).T
    order = (seat + np.arange(3)) % 3
    np.testing.assert_array_equal(seen.ahead, by_seat[:, order])
    np.testing.assert_array_equal(seen.present, PRESENT[:, order])
    np.testing.assert_array_equal(seen.joint, segment().joint[:, order])
    assert seen.fresh.tolist() == [False] * 4 + [True, False, False]
    assert seen.memory.tolist() == segment().memory[1].tolist()


def test_selected_by_hand() -> None:
    scores = jnp.array([[1.0, 9.0], [3.0, 2.0], [7.0, 5.0]])  # [H, others]
    valid = jnp.array([[True, False], [True, True], [False, True]])
    mean = jnp.arange(6.0).reshape(3, 2, 1)
    codes = GoalCode(mean, -mean)
    one, known = selected(scores, valid, codes, each=False)
    assert (one.mean.tolist(), one.log.tolist(), known.tolist()) == ([[5.0]], [[-5.0]], [True])
    each, known = selected(scores, valid, codes, each=True)
    assert (each.mean.tolist(), known.tolist()) == ([[2.0], [5.0]], [True, True])
    _, known = selected(scores, valid & jnp.array([False, True]), codes, each=True)
    assert known.tolist() == [False, True]
    assert selected(scores, valid & False, codes, each=False)[1].tolist() == [False]


class Wants(eqx.Module):
    """A policy to which a view is worth what the first number of each goal says, each its own."""

    def of_many_goals(self, view: View, goals: jax.Array) -> tuple[None, jax.Array]:
        return None, goals[:, ::4] @ jnp.array([1.0, 0.5])[: goals.shape[1] // 4]


@pytest.mark.parametrize("about", ["joint", "each"])
def test_selectors_choose_as_they_say(about: Literal["joint", "each"]) -> None:
    """Against a loop over the candidates of each step, for seat 0 and a horizon of two."""
    s = setup()
    part = s.learner.actor.context
    assert isinstance(part, GoalsContext)
    part = replace(part, goals=2 if about == "each" else 1)
    seen = seen_of(segment(), 0, 0)
    player_params: Any = SimpleNamespace(
        policy=Wants(),
        prior=of_seat(s.param_sets.prior, 0),
        context=random_like(jax.eval_shape(part.init, jax.random.key(0)), 7),
    )
    code = jax.vmap(jax.vmap(part.goal.code, in_axes=(None, 0)), in_axes=(None, 0))
    means = np.asarray(jit(code)(player_params.prior, seen.others).mean)  # [T, others, G]
    assert len(np.unique(means[..., 0].round(4))) > 8

    def choose(selector: Any) -> Any:
        config = replace(GOAL, selector=selector, about=about, horizon=2)
        return partial(select_goals, part, config)

    def all_of(key: jax.Array) -> Any:
        kinds = ("optimistic", "conservative", "last", "random")
        return {kind: choose(kind)(player_params, seen, key) for kind in kinds}

    founds = [jax.device_get(jit(all_of)(jax.random.key(key))) for key in range(8)]
    ahead, drawn = np.asarray(seen.ahead), set()
    for step in range(7):
        groups = [[1], [2]] if about == "each" else [[1, 2]]
        for number, places in enumerate(groups):
            options = [
                (step + after, place - 1)
                for after in (1, 2)
                for place in places
                if after <= ahead[step, place]
            ]
            known = {kind: found.known[step, number] for kind, found in founds[0].items()}
            assert set(known.values()) == {bool(options)}
            if not options:
                continue
            goal = {kind: found.code.mean[step, number] for kind, found in founds[0].items()}
            best = max(options, key=lambda at: means[at][0])
            worst = min(options, key=lambda at: means[at][0])
            last = max(when for when, _ in options)
            np.testing.assert_allclose(goal["optimistic"], means[best], atol=1e-5)
            np.testing.assert_allclose(goal["conservative"], means[worst], atol=1e-5)
            latest = [means[at] for at in options if at[0] == last]
            assert min(np.abs(goal["last"] - one).max() for one in latest) < 1e-5
            for found in founds:
                far = [
                    np.abs(found["random"].code.mean[step, number] - means[at]).max()
                    for at in options
                ]
                assert min(far) < 1e-5
                drawn.add((step, number, int(np.argmin(far))))
    assert len(drawn) > len({pair[:2] for pair in drawn}) + 2  # not always the same


def test_divergence_of_two_codes_by_hand() -> None:
    gaussian = GoalPart((3, 3, 6), 7, GoalConfig("gaussian", 2, net=TINY))
    one = GoalCode(jnp.array([1.0, 0.0]), jnp.log(jnp.array([1.0, 2.0])))
    two = GoalCode(jnp.array([3.0, 0.0]), jnp.log(jnp.array([2.0, 1.0])))
    # log(s2 / s1) + (s1^2 + (m1 - m2)^2) / (2 s2^2) - 1/2
    expected = [np.log(2) + 5 / 8 - 0.5, -np.log(2) + 4 / 2 - 0.5]
    np.testing.assert_allclose(gaussian.apart(one, two), expected, rtol=1e-6)
    np.testing.assert_allclose(gaussian.apart(two, two), 0, atol=1e-6)
    standard = GoalCode(jnp.zeros(2), jnp.zeros(2))
    np.testing.assert_allclose(gaussian.apart(one, standard), gaussian.divergence(one), atol=1e-6)
    discrete = GoalPart((3, 3, 6), 7, GoalConfig("discrete", 2, net=TINY))
    p, q = np.array([0.75, 0.25]), np.array([0.5, 0.5])
    found = discrete.apart(GoalCode(p, np.log(p)), GoalCode(q, np.log(q)))  # type: ignore[arg-type]
    np.testing.assert_allclose(found.sum(), 0.75 * np.log(1.5) + 0.25 * np.log(0.5), rtol=1e-6)


def test_the_recurrent_unit_by_hand() -> None:
    chance = np.random.default_rng(0)
    shapes = jax.eval_shape(lambda key: Gru(3, 2, key), jax.random.key(0))
    gru = random_like(shapes, 1)
    x, memory = chance.normal(size=3), chance.normal(size=2)
    w, b, u, c = (
        np.asarray(leaf, np.float64)
        for leaf in (gru.given.weight, gru.given.bias, gru.kept.weight, gru.kept.bias)
    )

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-z)))

    reset = sigmoid(x @ w[:, :2] + b[:2] + memory @ u[:, :2] + c[:2])
    update = sigmoid(x @ w[:, 2:4] + b[2:4] + memory @ u[:, 2:4] + c[2:4])
    fresh = np.tanh(x @ w[:, 4:] + b[4:] + reset * (memory @ u[:, 4:] + c[4:]))
    expected = update * memory + (1 - update) * fresh
    given = gru.given(jnp.asarray(x, jnp.float32))
    found = gru.advance(jnp.asarray(memory, jnp.float32), given)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
