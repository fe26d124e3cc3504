"""Imagination, hindsight, buffers and models of the others, by numbers worked by hand."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import GoalConfig, NetConfig
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHuntState
from hopplus.learning.hindsight import Hindsight, Stretch, seen_by
from hopplus.learning.moments import moments_of
from hopplus.learning.ring import capacity, drawn_rows, empty_ring, pushed
from hopplus.models.goal import GoalCode, GoalPart
from hopplus.models.inference import selected
from hopplus.models.nets import Gru
from hopplus.models.opponent import OpponentPart, others_logits, others_views
from hopplus.models.world import Prediction
from hopplus.planning.imagine import Dream, Imagination
from hopplus.planning.simulate import Scene
from hopplus.types import Act, Outcome, Trajectory, View
from test_hop_plus import (
    GAME,
    GOAL,
    PPO,
    TINY,
    jit,
    of_seat,
    plainly_learned,
    random_like,
    same,
    setup,
)

HUNT_HARE, STAY = 6, 4


# Goals in play, in hindsight and in imagination.


def test_goals_in_play_are_inferred_from_the_episode_so_far() -> None:
    """Step by step, and all at once as the goal part looks back on them."""
    s = setup()
    actor, game = s.learner.actor, s.learner.game
    part = actor.parts.inference
    assert part is not None
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
            after, inferred = infer(s.minds, memory, seen)
            return after, (memory, inferred)

        first = jnp.zeros((PPO.games, GAME.seats, GOAL.hidden))
        by_step = jax.lax.scan(step, first, (seen, jnp.asarray(begins)))[1]

        def at_once(mind: Any, seen: View, begins: Any) -> Any:
            before, after = part.recall(mind.inference, part.start(), seen, begins)
            codes = jax.vmap(part.codes, in_axes=(None, 0))(mind.inference, after)
            return before, part.goal.settled(codes)[:, 0]

        over_seats = jax.vmap(at_once, in_axes=(0, 1, None), out_axes=1)
        over_games = jax.vmap(over_seats, in_axes=(None, 1, 1), out_axes=1)
        return by_step, over_games(s.minds, seen, jnp.asarray(begins))

    for memory, inferred in again():
        np.testing.assert_allclose(memory, s.whole.memory[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(inferred, s.whole.act.inferred, rtol=1e-4, atol=1e-5)
    assert np.abs(s.whole.memory[0][1:]).max() > 0.1
    assert (s.whole.memory[0][begins] == 0).all()


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
        after, outcome = game.step(state, joint)
        seen = views(game, after)
        gone, legal = 1.0 - game.present(after), seen.legal.astype(jnp.float32)
        done = outcome.done.astype(jnp.float32)
        return Prediction(seen.planes[0], outcome.reward, gone, legal, done)

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        return prediction.planes, prediction.gone > 0.5


def test_goals_and_play_in_imagination_are_those_of_play() -> None:
    """With the true rules as its world: the first step is the real one with its goal, memory is
    carried along, every step is one that the game could have made, and ends begin anew."""
    s = setup()
    dreams = s.learner.beside.dreams
    assert dreams is not None
    game, actor, seat, steps = s.learner.game, s.learner.actor, 1, 12
    mind = replace(of_seat(s.minds, seat), world=TrueWorld())
    present = np.asarray(game.present(s.played.state))[:, :, seat]
    when, which = (jnp.asarray(found) for found in np.nonzero(present))
    moments = jax.tree.map(lambda leaf: leaf[when, which], s.played)
    lanes = len(when) // steps
    assert lanes > 2

    @jit
    def dreamt() -> Any:
        order = (seat + jnp.arange(3)) % 3
        scene = jax.vmap(
            lambda state: Scene(game.view(state, seat), views(game, state).legal[order])
        )(moments.state)
        start = jax.tree.map(
            lambda leaf: leaf[: steps * lanes].reshape(steps, lanes, *leaf.shape[1:]),
            (scene, moments.memory[:, seat], moments.inferred[:, seat], moments.state),
        )
        scenes, memories, inferred, states = start
        keys = jax.random.split(jax.random.key(5), lanes)
        imagination = dreams.imagination(mind)
        dream = jax.vmap(imagination, in_axes=(1, 1, 0), out_axes=1)(scenes, memories, keys)

        def again(carry: Any, now: Any) -> Any:
            memory, state = carry
            view, ended, after, *fresh = now
            before = memory
            memory, goals = actor.infer(mind, memory, view)
            logits, value = actor.judge(mind.policy, view, goals)
            joint = jnp.roll(after.last_actions, seat)  # what all did, from the view that follows
            state, outcome = game.step(state, joint)
            expected = game.view(state, seat), outcome.reward[order]
            over = outcome.done | ~game.present(state)[seat]
            carry = jax.tree.map(
                lambda new, old: jnp.where(ended, new, old), tuple(fresh), (memory, state)
            )
            return carry, (
                before,
                goals,
                logits,
                value,
                *expected,
                over,
                outcome.illegal & (joint >= 0),
            )

        def lane(view: View, ended: Any, memories: Any, states: Any) -> Any:
            after, fresh, places = jax.tree.map(
                lambda leaf: jnp.roll(leaf, -1, axis=0), (view, memories, states)
            )
            first = jax.tree.map(lambda leaf: leaf[0], (memories, states))
            now = (view, ended, after, fresh, places)
            return jax.lax.scan(again, first, now)[1]

        over_lanes = jax.vmap(lane, in_axes=1, out_axes=1)
        told = over_lanes(dream.view, dream.ended, memories, states)
        return dream, scenes, inferred, told

    dream, scenes, inferred, told = jax.device_get(dreamt())
    _, goals, logits, value, seen, reward, over, illegal = told
    np.testing.assert_allclose(dream.act.inferred[0], inferred[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dream.act.inferred, goals, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dream.act.logits, logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dream.act.value, value, rtol=1e-4, atol=1e-5)
    assert np.ptp(goals, axis=0).max() > 0.01  # they are no constant
    on = ~dream.ended[:-1]  # a view follows in the dream itself
    assert on.any()
    assert dream.ended[:-1].any()
    for name in ("planes", "legal", "last_actions"):
        np.testing.assert_array_equal(
            getattr(dream.view, name)[1:][on], getattr(seen, name)[:-1][on]
        )
    np.testing.assert_allclose(dream.view.time[1:][on], seen.time[:-1][on], atol=1e-6)
    np.testing.assert_array_equal(over[:-1][on], False)
    np.testing.assert_allclose(dream.reward[:-1][on], reward[:-1][on], atol=1e-6)
    assert not illegal[:-1][on].any()
    # After an end, the next real moment is taken.
    for name in ("planes", "legal", "last_actions", "time"):
        after, fresh = getattr(dream.view, name)[1:], getattr(scenes.view, name)[1:]
        np.testing.assert_array_equal(after[~on], fresh[~on])


class Ending(eqx.Module):
    """A world that stands still and pays its time; it ends where time has come to `end`."""

    end: float = eqx.field(static=True)

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        there = view.planes[..., :3].any(axis=(0, 1))
        done = (view.time >= self.end).astype(jnp.float32)
        legal = jnp.zeros((3, 7)).at[:, 1].set(1.0)
        return Prediction(view.planes, jnp.full(3, view.time), 1.0 - there, legal, done)

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        return prediction.planes, prediction.gone > 0.5


def test_after_an_imagined_end_the_next_real_moment_follows() -> None:
    """By hand: moments at times 0.5, 0.6 .. 0.9, steps of 0.25 each, over from 0.75 on."""
    actions = 7
    net = OpponentPart((3, 3, 6), 3, actions, 0, TINY, (1.0,) * actions)
    shapes = jax.eval_shape(jax.vmap(net.init), jax.random.split(jax.random.key(0), 2))
    steps = 5
    times = jnp.array([0.5, 0.6, 0.7, 0.8, 0.9])
    board = jnp.zeros((3, 3, 6)).at[0, 0, :3].set(1.0)

    def tile(leaf: jax.Array) -> jax.Array:
        return jnp.broadcast_to(leaf, (steps, *leaf.shape))

    legal = jnp.ones((3, actions), bool)
    view = View(tile(board), tile(legal[0]), times, tile(jnp.full(3, -1)))

    def decide(memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, Act]:
        logits = jnp.log(jnp.full(actions, 1 / actions))
        act = Act(jnp.int32(STAY), logits, logits[0], memory, jnp.zeros(0), jnp.zeros(0))
        return memory + 1, act  # the value tells the memory

    world: Any = Ending(0.75)
    imagination = Imagination(decide, random_like(shapes, 0), world, lambda _: jnp.zeros((2, 0)), 4)
    memories = 10.0 * jnp.arange(steps)
    scenes = Scene(view, tile(legal))
    dream = jit(lambda: imagination(scenes, memories, jax.random.key(0)))()
    # 0.5, then 0.75 and over; the moment of its place, 0.7, then 0.95 and over; then 0.9.
    np.testing.assert_allclose(dream.view.time, [0.5, 0.75, 0.7, 0.95, 0.9])
    assert dream.ended.tolist() == [False, True, False, True, True]
    np.testing.assert_allclose(dream.reward[:, 0], [0.5, 0.75, 0.7, 0.95, 0.9])
    assert dream.act.value.tolist() == [0, 1, 20, 21, 40]
    np.testing.assert_array_equal(dream.view.legal[1], np.isin(np.arange(7), [1, STAY]))
    np.testing.assert_array_equal(dream.view.legal[2], True)


REWARDS = {
    "predicted": [[1.0, -9.0], [50.0, 2.0], [3.0, 4.0]],
    "clipped": [[1.0, -1.0], [5.0, 2.0], [3.0, 4.0]],
    "zero": [[0.0, 0.0]] * 3,
}


@pytest.mark.parametrize("kind", ["predicted", "clipped", "zero"])
@pytest.mark.parametrize("critic_on", ["real", "both"])
def test_imagined_rewards_and_returns_by_hand(
    kind: Literal["predicted", "clipped", "zero"], critic_on: Literal["real", "both"]
) -> None:
    """Two lanes of three steps; the first ends with its second step."""
    dreams = setup().learner.beside.dreams
    assert dreams is not None
    dreams = replace(
        dreams,
        config=replace(dreams.config, reward=kind, critic_on=critic_on),
        ppo=replace(dreams.ppo, mix=1.0, discount=0.5),
    )
    own = jnp.array(REWARDS["predicted"])
    nothing = jnp.zeros((3, 2, 1))
    dream = Dream(
        view=View(nothing, nothing, nothing, nothing),
        act=Act(nothing, nothing, nothing, own * 0 + 100.0, nothing, nothing),
        reward=jnp.stack([own, own + 7], axis=-1),
        ended=jnp.array([[False, False], [True, False], [False, False]]),
        last=jnp.array([[8.0, 16.0]]),
    )
    for opened in (True, False):
        batch = dreams.batch(dream, jnp.array([-1.0, 5.0]), jnp.array(opened))
        reward = np.array(REWARDS[kind])
        np.testing.assert_allclose(batch.reward.reshape(3, 2), reward)
        last = reward[2] + 0.5 * np.array([8.0, 16.0])
        middle = reward[1] + 0.5 * np.array([0.0, last[1]])
        first = reward[0] + 0.5 * middle
        np.testing.assert_allclose(batch.returns.reshape(3, 2), [first, middle, last])
        assert batch.imagined is not None
        assert batch.imagined.all()
        assert batch.present.tolist() == [opened] * 6
        assert batch.valued.tolist() == [opened and critic_on == "both"] * 6


def test_the_true_world_has_no_error_and_an_unlearned_one_errs_always() -> None:
    s = setup()
    part: Any = next(part for part in s.learner.beside.parts if part.name == "world")
    measure = jit(lambda minds: part.measure(minds, s.played, jax.random.key(0)))
    true = measure(replace(s.minds, world=TrueWorld()))
    for name, value in true.items():
        np.testing.assert_allclose(value, np.zeros(3), atol=1e-6, err_msg=name)
    wrong = {name.removeprefix("world/"): value for name, value in plainly_learned()[3].items()}
    assert wrong["error"].min() > 0.9
    for name in ("planes_wrong", "legal_wrong", "done_wrong", "gone_wrong", "reward_wrong"):
        assert (wrong[name] <= wrong["error"]).all()


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
def stretch() -> Stretch:
    memory = jnp.arange(2.0 * GOAL.hidden).reshape(2, -1) / 10  # of two who learn
    joint = jnp.arange(21).reshape(7, 3) % 7
    return Stretch(hare_states(PRESENT, 7), joint, jnp.asarray(DONE), memory)


seen_of = jit(lambda stretch, seat, own: seen_by(make_game(GAME), stretch, seat, own))


@pytest.mark.parametrize("seat", [0, 2])
def test_how_long_the_others_go_on_by_hand(seat: int) -> None:
    seen = seen_of(stretch(), seat, 1)
    by_seat = np.array(
        [
            [3, 2, 1, 0, 0, 0, 0],  # until the episode ends with step 3; then until it leaves
            [1, 0, 0, 0, 2, 1, 0],  # leaves after step 1; then to the end of the stretch
            [3, 2, 1, 0, 1, 0, 0],
        ]
    ).T
    order = (seat + np.arange(3)) % 3
    np.testing.assert_array_equal(seen.ahead, by_seat[:, order])
    np.testing.assert_array_equal(seen.present, PRESENT[:, order])
    np.testing.assert_array_equal(seen.joint, stretch().joint[:, order])
    assert seen.fresh.tolist() == [False] * 4 + [True, False, False]
    assert seen.memory.tolist() == stretch().memory[1].tolist()


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

    def __call__(self, view: View, goal: jax.Array) -> tuple[None, jax.Array]:
        return None, goal[::4] @ jnp.array([1.0, 0.5])[: len(goal) // 4]


@pytest.mark.parametrize("about", ["joint", "each"])
def test_selectors_choose_as_they_say(about: Literal["joint", "each"]) -> None:
    """Against a loop over the candidates of each step, for seat 0 and a horizon of two."""
    s = setup()
    part = s.learner.actor.parts.inference
    assert part is not None
    part = replace(part, goals=2 if about == "each" else 1)
    seen = seen_of(stretch(), 0, 0)
    mind: Any = SimpleNamespace(
        policy=Wants(),
        prior=of_seat(s.minds.prior, 0),
        inference=random_like(jax.eval_shape(part.init, jax.random.key(0)), 7),
    )
    code = jax.vmap(jax.vmap(part.goal.code, in_axes=(None, 0)), in_axes=(None, 0))
    means = np.asarray(jit(code)(mind.prior, seen.others).mean)  # [T, others, G]
    assert len(np.unique(means[..., 0].round(4))) > 8

    def choose(selector: Any) -> Any:
        return Hindsight(part, replace(GOAL, selector=selector, about=about, horizon=2))

    def all_of(key: jax.Array) -> Any:
        kinds = ("optimistic", "conservative", "last", "random")
        return {kind: choose(kind)(mind, seen, key) for kind in kinds}

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
    found = gru(jnp.asarray(memory, jnp.float32), jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# Buffers.


def test_rooms_are_whole_updates() -> None:
    assert [capacity(wanted, 8) for wanted in (1, 8, 9, 16, 17)] == [8, 8, 16, 16, 24]


def test_a_ring_keeps_the_newest() -> None:
    ring = empty_ring((jnp.zeros((2, 3)), jnp.zeros(2, bool)), capacity(5, 2))
    assert ring[0].shape == (6, 3)
    assert not ring[1].any()
    push = jit(pushed)
    for update in range(5):
        rows = (jnp.full((2, 3), update) + jnp.array([[0.0], [0.5]]), jnp.ones(2, bool))
        ring = push(ring, rows, update)
        held = sorted(ring[0][:, 0][ring[1]].tolist())
        kept = range(max(0, update - 2), update + 1)
        assert held == [number + half for number in kept for half in (0, 0.5)]
    assert ring[0][:, 0].tolist() == [3, 3.5, 4, 4.5, 2, 2.5]


def test_rows_are_drawn_alike_from_those_present() -> None:
    chance = np.random.default_rng(3)
    present = chance.random((20, 3)) < 0.4
    present[0, 0], present[-1, -1] = False, False
    draw = jit(lambda key, present: drawn_rows(key, present, 20_000))
    row, place = draw(jax.random.key(0), present)
    assert present[row, place].all()
    counts = np.zeros(present.shape)
    np.add.at(counts, (np.asarray(row), np.asarray(place)), 1)
    expected = 20_000 / present.sum()
    chi = ((counts - expected) ** 2 / expected)[present].sum()
    free = present.sum() - 1
    assert chi < free + 4 * np.sqrt(2 * free)
    for at in ((0, 0), (7, 1), (19, 2)):  # one alone is always found
        alone = np.zeros_like(present)
        alone[at] = True
        row, place = draw(jax.random.key(1), alone)
        assert (np.asarray(row) == at[0]).all()
        assert (np.asarray(place) == at[1]).all()
    row, place = draw(jax.random.key(1), np.zeros_like(present))  # none: any pair there is
    assert 0 <= int(row.min()) <= int(row.max()) < 20
    assert 0 <= int(place.min()) <= int(place.max()) < 3


# Models of the others.


def test_others_are_modelled_by_what_they_see() -> None:
    """For every seat: the models of the others, applied to the true views of these."""
    game, actions, size, count = make_game(GAME), 7, 2, 40
    s = setup()
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], s.played.state)
    assert not states.present.all()
    assert len(np.unique(states.steps)) > 2
    goals = jax.random.normal(jax.random.key(1), (2, size))
    kinds: tuple[Literal["mlp", "conv", "centred"], ...] = ("mlp", "conv", "centred")
    parts = [
        OpponentPart(game.shape, 3, actions, size, NetConfig(kind, 8, channels=2), (1.0,) * actions)
        for kind in kinds
    ]
    keys = jax.random.split(jax.random.key(0), 2)
    models = [random_like(jax.eval_shape(jax.vmap(part.init), keys), 5) for part in parts]

    @jit
    def both(states: Any) -> Any:
        seen = jax.vmap(lambda state: views(game, state))(states)  # [count, N]

        def one(seen: View, seat: Any) -> Any:
            order = (seat + jnp.arange(3)) % 3
            own, *others = (jax.tree.map(lambda leaf: leaf[at], seen) for at in order)  # noqa: B023
            true = jax.tree.map(lambda *leaves: jnp.stack(leaves), *others)
            legal = seen.legal[order]
            by_model: Any = jax.vmap(lambda model, view, goal: model(view, goal))
            pairs = [
                (others_logits(model, own, legal, goals), by_model(model, true, goals))
                for model in models
            ]
            return others_views(own, legal), true, pairs

        return jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))(seen, jnp.arange(3))

    turned, true, pairs = jax.device_get(both(states))
    assert same(turned, true)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert np.isinf(expected).any()
        assert np.exp(expected).std(axis=0).max() > 0.05


def test_moments_hold_goals_of_the_own_size() -> None:
    """Others at the board may infer larger goals, to which all are filled up."""
    inferred = jnp.arange(2 * 1 * 3 * 5, dtype=jnp.float32).reshape(2, 1, 3, 5)
    nothing: Any = jnp.zeros((2, 1, 3))
    act = Act(nothing, nothing, nothing, nothing, nothing, inferred)
    outcome = Outcome(nothing, nothing, jnp.zeros((2, 1), bool), nothing, nothing, nothing)
    trajectory = Trajectory((), nothing, ((), jnp.zeros((2, 1, 2, 4))), act, outcome)
    found = moments_of(trajectory, 1, np.array([0, 2]), 3)
    np.testing.assert_array_equal(found.inferred, inferred[:, :, [0, 2], :3])
    assert found.memory.shape == (2, 1, 2, 4)
