"""Imagination: its goals and play are those of the game, its ends and rewards worked by hand."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import NetConfig
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.learning.auxiliary.imagined_rollouts import act_without_goals
from hopplus.learning.auxiliary.learner import flat
from hopplus.learning.auxiliary.transitions import Transitions, present_in
from hopplus.learning.from_run import make_learner
from hopplus.models.opponent import OpponentPart, others_logits, others_views
from hopplus.models.sampling import draw
from hopplus.models.world import Prediction
from hopplus.planning import imagined_rollouts
from hopplus.planning.dynamics import LearnedDynamics, Observation, observe
from hopplus.planning.imagined_rollouts import Imagination, ImaginedRollout
from hopplus.types import Act, View
from tiny_hop_plus import CONFIG, GAME, TINY, TrueWorld, jit, of_seat, random_like, same, setup

STAY = 4


def test_goals_and_play_in_imagination_are_those_of_play() -> None:
    """With the true rules as its world: the first step is the real one with its goal, memory is
    carried along, every step is one that the game could have made, and ends begin anew."""
    s = setup()
    imagined_rollouts = s.learner.auxiliary.imagined_rollouts
    assert imagined_rollouts is not None
    game, actor, seat, steps = s.learner.game, s.learner.actor, 1, 12
    player_params = replace(of_seat(s.param_sets, seat), world=TrueWorld())
    present = np.asarray(game.present(s.played.state))[:, :, seat]
    when, which = (jnp.asarray(found) for found in np.nonzero(present))
    transitions = jax.tree.map(lambda leaf: leaf[when, which], s.played)
    replicas = len(when) // steps
    assert replicas > 2

    @jit
    def imagined_batch() -> Any:
        order = (seat + jnp.arange(3)) % 3
        observation = jax.vmap(
            lambda state: Observation(game.view(state, seat), views(game, state).legal[order])
        )(transitions.state)
        start = jax.tree.map(
            lambda leaf: leaf[: steps * replicas].reshape(steps, replicas, *leaf.shape[1:]),
            (
                observation,
                transitions.memory[:, seat],
                transitions.inferred[:, seat],
                transitions.state,
            ),
        )
        observations, memories, inferred, states = start
        keys = jax.random.split(jax.random.key(5), replicas)
        imagination = imagined_rollouts.imagination(player_params, 0)
        dream = jax.vmap(imagination, in_axes=(1, 1, 0), out_axes=1)(observations, memories, keys)

        def again(carry: Any, now: Any) -> Any:
            memory, state = carry
            view, ended, after, *fresh = now
            before = memory
            memory, goals = actor.infer(player_params, memory, view)
            logits, value = actor.policy_and_value(player_params.policy, view, goals)
            joint = jnp.roll(after.last_actions, seat)  # what all did, from the view that follows
            state, outcome = game.step(state, joint, jax.random.key(0))
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

        def replica(view: View, ended: Any, memories: Any, states: Any) -> Any:
            after, fresh, embeddings = jax.tree.map(
                lambda leaf: jnp.roll(leaf, -1, axis=0), (view, memories, states)
            )
            first = jax.tree.map(lambda leaf: leaf[0], (memories, states))
            now = (view, ended, after, fresh, embeddings)
            return jax.lax.scan(again, first, now)[1]

        over_replicas = jax.vmap(replica, in_axes=1, out_axes=1)
        told = over_replicas(dream.view, dream.ended, memories, states)
        return dream, observations, inferred, told

    dream, observations, inferred, told = jax.device_get(imagined_batch())
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
        after, fresh = getattr(dream.view, name)[1:], getattr(observations.view, name)[1:]
        np.testing.assert_array_equal(after[~on], fresh[~on])


class Ending(eqx.Module):
    """A world that stands still and pays its time; it ends where time has come to `end`, and the
    seat is gone where it has come to `leave`."""

    end: float = eqx.field(static=True)
    leave: float = eqx.field(static=True, default=2.0)

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        there = view.planes[..., :3].any(axis=(0, 1))
        done = (view.time >= self.end).astype(jnp.float32)
        legal = jnp.zeros((3, 7)).at[:, 1].set(1.0)
        gone = (1.0 - there).at[0].max((view.time >= self.leave).astype(jnp.float32))
        return Prediction(view.planes, jnp.full(3, view.time), gone, legal, done)

    def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
        return after

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        return prediction.planes, prediction.gone > 0.5


@pytest.mark.parametrize(
    ("world", "behind"),
    [
        (Ending(0.75), None),
        (Ending(0.75), [0.0] * 5),  # nothing comes behind the end of an episode
        (Ending(2.0, leave=0.75), [0, 2, 0, 22, 41]),  # the value after a step that it leaves with
    ],
    ids=["own", "over", "left"],
)
def test_after_an_imagined_end_the_next_real_moment_follows(
    world: Any, behind: list[float] | None
) -> None:
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
        act = Act(jnp.int32(STAY), logits, logits[0], memory, *[jnp.zeros(0)] * 3)
        return memory + 1, act  # the value tells the memory

    imagination = Imagination(
        decide,
        random_like(shapes, 0),
        LearnedDynamics(world, 4),
        lambda *_: jnp.zeros((2, 0)),
        gains_after_leaving=behind is not None,
    )
    memories = 10.0 * jnp.arange(steps)
    observations = Observation(view, tile(legal))
    dream = jit(lambda: imagination(observations, memories, jax.random.key(0)))()
    # 0.5, then 0.75 and over; the moment of its place, 0.7, then 0.95 and over; then 0.9.
    np.testing.assert_allclose(dream.view.time, [0.5, 0.75, 0.7, 0.95, 0.9])
    assert dream.ended.tolist() == [False, True, False, True, True]
    np.testing.assert_allclose(dream.reward[:, 0], [0.5, 0.75, 0.7, 0.95, 0.9])
    assert dream.act.value.tolist() == [0, 1, 20, 21, 40]
    assert dream.begins.tolist() == [True, False, True, False, True]
    np.testing.assert_array_equal(dream.view.legal[1], np.isin(np.arange(7), [1, STAY]))
    np.testing.assert_array_equal(dream.view.legal[2], True)
    assert behind == (None if dream.behind is None else dream.behind.tolist())


@pytest.mark.parametrize("seats", [[[0], [1], [2]], [[0, 1, 2]], [[0], [2]], [[1, 2]]])
@pytest.mark.parametrize("sight", [None, 1])
def test_it_begins_from_steps_of_seats_that_were_there(
    seats: list[list[int]], sight: int | None
) -> None:
    """View, what is legal and memory are of one step and one seat of the set."""
    s = setup()
    made = s.learner.auxiliary.imagined_rollouts
    assert made is not None
    game = make_game(replace(GAME, sight=sight))
    learning = np.sort(np.concatenate(seats))
    own = replace(made, game=game, seats=np.array(seats))
    rows = len(flat(s.played.joint))
    # Whose memory it is tells the row and the number among those who learn.
    tags = 10 * jnp.arange(rows)[:, None] + jnp.arange(len(learning))
    buffer = replace(flat(Transitions(s.played.state, s.played.joint)), memory=tags)
    observations, memories = jit(own.starts)(buffer, jax.random.key(3))
    shape = (own.config.horizon, len(seats), own.replicas)
    assert memories.shape == shape
    present = np.asarray(present_in(game, buffer))
    for place in np.ndindex(shape):
        row, number = divmod(int(memories[place]), 10)
        seat = learning[number]
        assert seat in seats[place[1]]
        assert present[row, seat]
        state = jax.tree.map(lambda leaf: leaf[row], buffer.state)  # noqa: B023
        view = game.view(state, seat)
        legal = jnp.roll(views(game, state).legal, -seat, axis=0)
        if sight is not None:
            legal = observe(game, view).legal
        for leaf, like in zip(
            jax.tree.leaves(jax.tree.map(lambda leaf: leaf[place], observations)),  # noqa: B023
            jax.tree.leaves(Observation(view, legal)),
            strict=True,
        ):
            np.testing.assert_array_equal(leaf, like)
    assert len(np.unique(memories)) > own.replicas


def test_memory_keeps_its_kind_of_numbers() -> None:
    """Narrower ones are widened, as by `jnp.where`; nothing is cut off in silence."""
    whole, real = jnp.int32(2), jnp.float32(1.5)
    widened = imagined_rollouts._as(whole, real)
    assert widened.dtype == jnp.float32
    assert float(widened) == 2.0
    assert imagined_rollouts._as(real, whole).dtype == jnp.float32
    key = jax.random.key(1)
    assert imagined_rollouts._as(key, jax.random.key(0)) == key


def test_no_key_is_handed_out_twice_in_imagination(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the seat does, what the others are after and do, and what the world brings, at every
    step."""
    actions, steps, used = 7, 3, []

    def note(key: jax.Array) -> None:
        used.append(tuple(jax.random.key_data(key).tolist()))

    def decide(memory: jax.Array, view: View, key: jax.Array) -> tuple[jax.Array, Act]:
        note(key)
        logits = jnp.log(jnp.full(actions, 1 / actions))
        return memory, Act(jnp.int32(STAY), logits, logits[0], memory, *[jnp.zeros(0)] * 3)

    def suppose(inferred: jax.Array, key: jax.Array) -> jax.Array:
        note(key)
        return jnp.zeros((2, 0))

    def draw_noted(key: jax.Array, probabilities: jax.Array) -> jax.Array:
        note(key)
        return draw(key, probabilities)

    class Drawing(Ending):
        def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
            note(key)
            return after

    monkeypatch.setattr(imagined_rollouts, "draw", draw_noted)
    net = OpponentPart((3, 3, 6), 3, actions, 0, TINY, (1.0,) * actions)
    models = jax.vmap(net.init)(jax.random.split(jax.random.key(0), 2))
    view = View(
        jnp.zeros((steps, 3, 3, 6)),
        jnp.ones((steps, actions), bool),
        jnp.zeros(steps),
        jnp.full((steps, 3), -1),
    )
    observations = Observation(view, jnp.ones((steps, 3, actions), bool))
    world: Any = Drawing(2.0)
    imagination = Imagination(decide, models, LearnedDynamics(world, 9), suppose)
    with jax.disable_jit():
        imagination(observations, jnp.zeros(steps), jax.random.key(0))
    assert len(used) == len(set(used)) == 4 * steps + 1  # and the value behind the last


REWARDS = {
    "predicted": [[1.0, -9.0], [50.0, 2.0], [3.0, 4.0]],
    "clipped": [[1.0, -1.0], [5.0, 2.0], [3.0, 4.0]],
    "zero": [[0.0, 0.0]] * 3,
}
# To mean 0.5 and deviation 2; those predicted have mean 8.5.
SPREAD = np.std(REWARDS["predicted"])
REWARDS["normalised"] = (0.5 + (np.array(REWARDS["predicted"]) - 8.5) / SPREAD * 2).tolist()


@pytest.mark.parametrize("kind", list(REWARDS))
@pytest.mark.parametrize("critic_on", ["real", "both"])
def test_imagined_rewards_and_returns_by_hand(
    kind: Literal["predicted", "clipped", "normalised", "zero"], critic_on: Literal["real", "both"]
) -> None:
    """Two replicas of three steps; the first ends with its second step."""
    imagined_rollouts = setup().learner.auxiliary.imagined_rollouts
    assert imagined_rollouts is not None
    imagined_rollouts = replace(
        imagined_rollouts,
        config=replace(imagined_rollouts.config, reward=kind, critic_on=critic_on),
        ppo=replace(imagined_rollouts.ppo, gae_lambda=1.0, discount=0.5),
    )
    own = jnp.array(REWARDS["predicted"])
    nothing = jnp.zeros((3, 2, 1))
    dream = ImaginedRollout(
        memory=(),
        begins=nothing,
        view=View(nothing, nothing, nothing, nothing),
        act=Act(nothing, nothing, nothing, own * 0 + 100.0, nothing, nothing, nothing),
        reward=jnp.stack([own, own + 7], axis=-1),
        ended=jnp.array([[False, False], [True, False], [False, False]]),
        last=jnp.array([[8.0, 16.0]]),
    )
    known = jnp.array([-1.0, 5.0, 0.5, 2.0])  # of real rewards
    for opened in (True, False):
        batch = imagined_rollouts.batch(dream, known, jnp.array(opened))
        reward = np.array(REWARDS[kind])
        np.testing.assert_allclose(batch.reward.reshape(3, 2), reward, rtol=1e-5)
        last = reward[2] + 0.5 * np.array([8.0, 16.0])
        middle = reward[1] + 0.5 * np.array([0.0, last[1]])
        first = reward[0] + 0.5 * middle
        wanted = [first, middle, last]
        np.testing.assert_allclose(batch.returns.reshape(3, 2), wanted, rtol=1e-5)
        assert batch.imagined is not None
        assert batch.imagined.all()
        assert batch.present.tolist() == [opened] * 6
        assert batch.valued.tolist() == [opened and critic_on == "both"] * 6


def test_imagined_returns_of_who_shares_rewards_by_hand() -> None:
    """One replica of three steps; the seat leaves with its second while others go on."""
    s = setup()
    imagined_rollouts = s.learner.auxiliary.imagined_rollouts
    assert imagined_rollouts is not None
    imagined_rollouts = replace(
        imagined_rollouts,
        config=replace(imagined_rollouts.config, reward="predicted"),
        ppo=replace(imagined_rollouts.ppo, gae_lambda=1.0, discount=0.5, prosociality=0.5),
    )
    assert imagined_rollouts.imagination(of_seat(s.param_sets, 0), 0).gains_after_leaving
    nothing = jnp.zeros((3, 1, 1))
    dream = ImaginedRollout(
        memory=(),
        begins=nothing,
        view=View(nothing, nothing, nothing, nothing),
        act=Act(nothing, nothing, nothing, nothing[..., 0], nothing, nothing, nothing),
        reward=jnp.array([[[0.0, 4.0]], [[6.0, 2.0]], [[1.0, 3.0]]]),
        ended=jnp.array([[False], [True], [False]]),
        last=jnp.array([[8.0]]),
        behind=jnp.array([[0.0], [3.0], [0.0]]),
    )
    known = jnp.array([-1.0, 5.0, 0.5, 2.0])
    batch = imagined_rollouts.batch(dream, known, jnp.array(True))
    # Half of one's own and half of the mean: 0 and 2, 6 and 4, 1 and 2.
    np.testing.assert_allclose(batch.reward, [1.0, 5.0, 1.5])
    np.testing.assert_allclose(batch.returns, [1 + 0.5 * 6.5, 5 + 0.5 * 3, 1.5 + 0.5 * 8])


def test_the_real_ratio_follows_its_schedule() -> None:
    """From half of the steps real to all of them, over 20 updates: replicas leave one by one, those
    that stay with all of their steps."""
    rollouts = setup().learner.auxiliary.imagined_rollouts
    assert rollouts is not None
    config = replace(rollouts.config, real_ratio=0.5, real_ratio_end=1.0, horizon=4)
    rollouts = replace(rollouts, config=config)
    # 128 real steps of a seat, so 32 replicas of 4 steps are half.
    assert (rollouts.replicas, rollouts.updates) == (32, 20)
    present = jnp.ones((3, rollouts.rows), bool)
    batch: Any = SimpleBatch(present, present)
    told = {"imagined/open": jnp.ones(3)}
    for update, ratio, replicas in ((0, 0.5, 32), (10, 0.75, 11), (19, 0.975, 1), (20, 1.0, 0)):
        found, shown = rollouts.scheduled(batch, told, rollouts.used(jnp.array(update)))
        assert shown["imagined/open"].tolist() == [float(replicas > 0)] * 3
        assert round(32 * (1 - ratio) / ratio) == replicas
        for mask in (found.present, found.valued):
            steps = mask.reshape(3, 4, 32)  # [sets, H, replicas]
            assert steps[..., :replicas].all()
            assert not steps[..., replicas:].any()
    steady = replace(rollouts, config=replace(config, real_ratio_end=None))
    assert steady.scheduled(batch, told, steady.used(jnp.array(20)))[0] is batch
    # The other way round there must be room for what comes at the end.
    later = replace(config, real_ratio=1.0, real_ratio_end=0.5)
    assert replace(rollouts, config=later).replicas == 32


def test_few_imagined_steps_are_as_few_as_asked_for() -> None:
    """There is a replica for every minibatch, and those that are too many are not learned from."""
    rollouts = setup().learner.auxiliary.imagined_rollouts
    assert rollouts is not None
    rollouts = replace(
        rollouts,
        config=replace(rollouts.config, real_ratio=0.97, horizon=4),
        ppo=replace(rollouts.ppo, minibatches=8),
    )
    present = jnp.ones((3, rollouts.rows), bool)
    batch: Any = SimpleBatch(present, present)
    told = {"imagined/open": jnp.ones(3)}
    found, shown = rollouts.scheduled(batch, told, rollouts.used(jnp.array(5)))
    assert rollouts.replicas == 8
    assert found.present.sum(axis=1).tolist() == [4] * 3  # of 128 + 4 steps, one replica's
    assert shown["imagined/open"].all()


@dataclass(frozen=True)
class SimpleBatch:
    present: jax.Array
    valued: jax.Array


def test_all_real_is_nothing_imagined() -> None:
    config = replace(CONFIG, imagine=replace(CONFIG.imagine, real_ratio=1.0))
    assert make_learner(config, {}).auxiliary.imagined_rollouts is None
    assert not config.imagines
    assert CONFIG.imagines
    later = replace(config.imagine, real_ratio_end=0.5)
    learner = make_learner(replace(config, imagine=later), {})
    assert learner.auxiliary.imagined_rollouts is not None


def test_goals_in_imagination_can_be_zero() -> None:
    config = replace(CONFIG, imagine=replace(CONFIG.imagine, goals="zero"))
    for chosen, zero in ((CONFIG, False), (config, True)):
        rollouts = make_learner(chosen, {}).auxiliary.imagined_rollouts
        assert rollouts is not None
        assert (rollouts.act is act_without_goals) == zero


# Models of the others.


def test_others_are_modelled_by_what_they_see() -> None:
    """For every seat: the models of the others, applied to the true views of these."""
    game, actions, size, count = make_game(GAME), 7, 2, 40
    s = setup()
    states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], s.played.state)
    assert not states.present.all()
    assert len(np.unique(states.steps)) > 2
    goals = jax.random.normal(jax.random.key(1), (2, size))
    kinds: tuple[Literal["mlp", "conv", "centred", "walking"], ...]
    kinds = ("mlp", "conv", "centred", "walking")
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
