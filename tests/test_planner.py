"""Players that look ahead: against an exact solution, and their choices worked by hand."""

from dataclasses import replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import plain_stag_hunt as plain
from hopplus.config import OpponentLearnerConfig, SearchConfig, StagHuntConfig, TrainConfig
from hopplus.games import make_game
from hopplus.planning.dynamics import Chance, draw_chance
from hopplus.planning.root import averaged, choice_of, with_noise
from hopplus.planning.search import Found, SearchResult, one_step, search
from hopplus.planning.tree import Leaf, Reached
from hopplus.players.actor import make_actor
from hopplus.players.planner import Planner, Thought
from tiny_hop_plus import TINY, jit, of_seat, same
from tiny_search import mind_of, planner_of, seen

ILLEGAL = -np.inf
VIEW = of_seat(seen("0 . 1\n. S h\nh 2 ."), 0)
LEGAL = [1, 3, 4]  # down, right, stay

# An exact solution

HORIZON, DISCOUNT = 4, 0.9
SMALL = StagHuntConfig(height=1, width=4, seats=2, hares=1, horizon=HORIZON)
RULES = plain.Rules(1, 4, 2, 1, 1, horizon=HORIZON)
WEIGHTS = np.array([1, 1, 1, 1, 1, 8, 2])  # of what the other does, of all that is legal
LAYOUTS = ("0 1S # h", "0h 1S # .", "01S # h .", "1S # 0 h")
TREES = 16


@cache
def worth(layout: str) -> np.ndarray:
    """[A] the exact value of each action to seat 0, by recursion over the plain rules."""
    first = plain.read(RULES, layout)

    @cache
    def values(where: Any, alive: tuple[bool, ...], steps: int) -> np.ndarray:
        prey = [replace(one, alive=lives) for one, lives in zip(first.prey, alive, strict=True)]
        board = plain.Board(first.obstacles, list(where), prey, steps, [-1, -1], None)
        others = np.where(plain.legal(RULES, board, 1), WEIGHTS, 0)
        found = np.where(plain.legal(RULES, board, 0), 0.0, ILLEGAL)
        for own in np.flatnonzero(found == 0):
            for other in np.flatnonzero(others):
                after, result = plain.step(RULES, board, (int(own), int(other)))
                gain = result.rewards[0]
                if not result.done and after.where[0] is not None:
                    lives = tuple(one.alive for one in after.prey)
                    gain += DISCOUNT * values(tuple(after.where), lives, after.steps).max()
                found[own] += others[other] / others.sum() * gain
        return found

    return values(tuple(first.where), tuple(one.alive for one in first.prey), 0)


def looked(simulations: int, outcomes: int) -> SearchResult:
    """What trees say of the layouts, on average, to one who knows the other and thinks nothing of a
    moment by itself: values are 0, priors even, and the model of the other is its weights alone."""
    game = make_game(SMALL)
    parts = TrainConfig(
        game=SMALL, net=TINY, parts=("opponent",), opponent=OpponentLearnerConfig(net=TINY)
    )
    actor = make_actor("one", game, parts)
    shapes = jax.eval_shape(actor.init, jax.random.key(0))
    player_params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes)
    known = jnp.log(jnp.asarray(WEIGHTS, jnp.float32))[None]
    player_params = eqx.tree_at(
        lambda player_params: player_params.opponents.head.bias, player_params, known
    )
    config = SearchConfig(
        simulations=simulations, outcomes=outcomes, discount=DISCOUNT, exploration=3.0, values="raw"
    ).within(HORIZON)
    planner = Planner(actor, game, config)

    def look(state: Any, chance: Chance) -> Found:
        root, leaf = planner.root(player_params, (), game.view(state, 0))
        return search(planner.recurrent_fn(player_params), root, leaf, chance, config)

    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.parse, LAYOUTS))
    chance = draw_chance(jax.random.key(0), (len(LAYOUTS), TREES, simulations), 1)
    over_trees = jax.vmap(look, in_axes=(None, 0))
    over_states = jax.vmap(lambda state, chance: averaged(over_trees(state, chance)))
    found: SearchResult = jit(over_states)(states, chance)
    return found


def test_values_come_near_those_of_dynamic_programming() -> None:
    exact = np.array([worth(layout) for layout in LAYOUTS])
    best = exact.max(axis=1)
    assert best[:3].min() > 3  # the stag is worth waiting for, with a hare at hand too
    errors = []
    for simulations, outcomes in ((32, 2), (256, 3), (4096, 4)):
        found = looked(simulations, outcomes)
        errors.append(np.abs(found.value - best))
    few, more, many = errors
    assert few.mean() > 1
    assert (more < 0.8 * few).all()
    assert (many < 0.8 * more).all()
    assert many.max() < 0.25
    chosen = np.where(found.visits > 0, found.values, ILLEGAL).argmax(axis=1)
    np.testing.assert_array_equal(exact[range(len(LAYOUTS)), chosen], best)
    np.testing.assert_array_equal(found.visits > 0, exact > ILLEGAL)


# The choice

FOUND = SearchResult(
    jnp.array([0.0, 1.0, 3.0, 0.0]), jnp.array([9.0, 1.0, 0.0, 2.0]), jnp.float32(0.5)
)
PRIOR = Leaf(jnp.array([ILLEGAL, *np.log([0.5, 0.25, 0.25])], jnp.float32), jnp.float32(0.25))


@pytest.mark.parametrize(
    ("choice", "temperature", "weights"),
    [
        ("visits", 1.0, [0, 1, 3, 0]),
        ("visits", 0.5, [0, 1, 9, 0]),
        ("visits", 0.0, [0, 0, 1, 0]),
        ("values", 1.0, [0, np.e, 1, 0]),
        ("values", 0.5, [0, np.e**2, 1, 0]),
        ("values", 0.0, [0, 1, 0, 0]),
    ],
)
def test_choices_by_hand(choice: Any, temperature: float, weights: list[float]) -> None:
    """By their values, the first action would be the best but is illegal, and the last the second
    best but was never looked at."""
    config = SearchConfig(choice=choice, temperature=temperature)
    logits = choice_of(FOUND, PRIOR, config)
    np.testing.assert_allclose(jnp.exp(logits), np.array(weights) / np.sum(weights), rtol=1e-5)
    assert (logits[jnp.array([0, 3])] == ILLEGAL).all()


def test_trees_are_averaged() -> None:
    """Each look at an action counts alike; of what no tree looked at there is only the mean."""
    other = SearchResult(
        jnp.array([0.0, 3.0, 1.0, 2.0]), jnp.array([1.0, 5.0, 2.0, 4.0]), jnp.float32(1)
    )
    both = averaged(jax.tree.map(lambda *leaves: jnp.stack(leaves), FOUND, other))
    assert both.visits.tolist() == [0, 2, 2, 1]
    assert both.values.tolist() == [0.75, (1 + 3 * 5) / 4, (3 * 0 + 2) / 4, 4]
    assert both.value == 0.75


def test_noise_is_on_legal_actions_only() -> None:
    def noisy(share: float, alpha: float = 0.3) -> Leaf:
        config = SearchConfig(noise=share, noise_alpha=alpha)
        keys = jax.random.split(jax.random.key(0), 2000)
        found: Leaf = jax.vmap(lambda key: with_noise(PRIOR, config, key))(keys)
        return found

    assert same(with_noise(PRIOR, SearchConfig(noise=0.0), jax.random.key(0)), PRIOR)
    some, all_noise, even = noisy(0.25), noisy(1.0), noisy(1.0, alpha=1e4)
    for found in (some, all_noise, even):
        chances = np.exp(found.prior)
        np.testing.assert_array_equal(chances[:, 0], 0)
        np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(found.value, PRIOR.value)
    drawn = np.exp(all_noise.prior)
    np.testing.assert_allclose(np.exp(some.prior), 0.75 * np.exp(PRIOR.prior) + 0.25 * drawn, 1e-4)
    # Of Dirichlet(a, a, a): mean 1/3 and variance 2/9 / (3 a + 1).
    np.testing.assert_allclose(drawn[:, 1:].mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(drawn[:, 1:].var(axis=0), 2 / 9 / 1.9, rtol=0.1)
    np.testing.assert_allclose(np.exp(even.prior)[:, 1:], 1 / 3, atol=0.02)


@pytest.fixture(scope="module")
def acts() -> Any:
    """50 acts each, without noise, with nothing else, and greedy with nothing else, of a planner
    whose tree looks at an action as often as the prior that it is given says."""

    def instead(
        recurrent_fn: Any, root: Thought, leaf: Leaf, chance: Any, config: SearchConfig
    ) -> Any:
        return SearchResult(1e6 * jnp.exp(leaf.prior), jnp.zeros(7), jnp.float32(0))

    def told(noise: float, greedy: bool) -> Any:
        settings: Any = {"choice": "visits", "temperature": 1.0, "noise": noise}
        made = planner_of("opponent", simulations=1, trees=1, **settings)
        planner = replace(made, actor=replace(made.actor, greedy=greedy))
        player_params = mind_of(planner)
        keys = jax.random.split(jax.random.key(1), 50)
        return jit(jax.vmap(lambda key: planner.act(player_params, (), VIEW, key)[1]))(keys)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hopplus.players.planner.search", instead)
        return told(0.0, False), told(1.0, False), told(1.0, True)


def test_noise_is_what_a_tree_begins_with(acts: Any) -> None:
    """That there is none behind its root is in test_thoughts.py."""
    plain, noisy, _ = acts
    policy, value = mind_of(planner_of("opponent")).policy(VIEW, jnp.zeros(0))
    for act in (plain, noisy):
        assert np.flatnonzero(np.isfinite(act.logits).any(axis=0)).tolist() == LEGAL
        assert set(act.action.tolist()) == set(LEGAL)
        np.testing.assert_allclose(act.value, value, rtol=1e-5)  # the network's own
    np.testing.assert_allclose(plain.logits, np.broadcast_to(policy, (50, 7)), rtol=1e-4)
    assert np.ptp(noisy.logits[:, LEGAL], axis=0).min() > 1


def test_the_greedy_take_what_is_likeliest(acts: Any) -> None:
    _, drawn, greedy = acts
    np.testing.assert_array_equal(drawn.logits, greedy.logits)
    assert (drawn.action != greedy.action).any()
    np.testing.assert_array_equal(greedy.action, greedy.logits.argmax(axis=1))


# One step


def test_one_step_by_hand() -> None:
    """What is behind an action is drawn 1, 2 or 6: so much is earned with the second, half of it
    with the third, where a value of 10 follows, but not where a 6 was drawn, which ends it."""
    rates = jnp.array([100.0, 1.0, 0.5, 0.0])

    def recurrent_fn(node: jax.Array, action: jax.Array, chance: jax.Array) -> Reached:
        leaf = Leaf(PRIOR.prior, jnp.where(action == 2, 10.0, node))
        return Reached(node, leaf, rates[action] * chance, chance == 6)

    config = SearchConfig(kind="one-step", choice="values", discount=0.5)
    found = one_step(recurrent_fn, jnp.float32(2), PRIOR, jnp.array([1.0, 2.0, 6.0]), config)
    # The means of 1 + 1, 2 + 1 and 6; of 0.5 + 5, 1 + 5 and 3; of 1, 1 and 0.
    expected = [11 / 3, 14.5 / 3, 2 / 3]
    assert found.values[0] == PRIOR.value  # illegal: nothing is known of it
    np.testing.assert_allclose(found.values[1:], expected, rtol=1e-6)
    assert found.visits.tolist() == [0, 3, 3, 3]
    np.testing.assert_allclose(found.value, np.dot([0.5, 0.25, 0.25], expected), rtol=1e-6)
