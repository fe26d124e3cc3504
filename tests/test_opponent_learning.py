"""What models of the others learn from, and how they are scored."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.learning.auxiliary.goal import GoalLearner
from hopplus.learning.auxiliary.opponent import OpponentLearner
from hopplus.learning.auxiliary.transitions import EMPTY, empty_buffer, transitions_of
from hopplus.learning.auxiliary.world import WorldLearner
from tiny_hop_plus import PPO, REAL, jit, of_seat, same, setup

Settling = GoalLearner | OpponentLearner | WorldLearner
LEARNED = ("prior", "context", "opponents", "world")


def test_opponent_models_are_scored_by_other_and_action() -> None:
    """As NumPy ranks what they say of each sample; of classes as likely, the first is first."""
    s = setup()
    part: Any = s.learner.auxiliary.parts[0]
    params = of_seat(s.param_sets, 0)
    # A model that knows nothing finds all legal actions equally likely.
    blank = jax.tree.map(lambda leaf: leaf.at[1].set(0.0), params.opponents)
    params = replace(params, opponents=blank)

    @jit
    def drawn() -> Any:
        samples = part.draw(part.rows(s.played), jnp.array([0]), jax.random.key(0), 64)
        said: Any = jax.vmap(jax.vmap(lambda model, one: model(one.view, one.goal), (None, 0)))
        logits = said(params.opponents, samples.samples)
        return samples, logits, part.score(params, samples, s.played)

    samples, logits, score = jax.device_get(drawn())
    action = samples.samples.joint[..., 0]
    counts = ~samples.left & (samples.samples.view.legal.sum(axis=-1) > 1)
    best = np.argsort(-logits, axis=-1, kind="stable")
    for name, few in (("count", 7), ("hit", 1), ("hit_top3", 3)):
        among = (best[..., :few] == action[..., None]).any(axis=-1) & counts
        expected = [
            np.bincount(one[held], minlength=7) for one, held in zip(action, among, strict=True)
        ]
        np.testing.assert_array_equal(score[name], expected)
    assert score["hit"].sum() < score["hit_top3"].sum() < score["count"].sum() == counts.sum()
    np.testing.assert_allclose(score["top3"], score["hit_top3"].sum() / counts.sum(), rtol=1e-6)


def test_only_what_earned_a_reward_is_learned_from() -> None:
    """`--opponent.data rewarded` over two updates, whose episodes go on from one to the next,
    beside what was played; what is measured stays all of it."""
    s = setup()
    part: Any = s.learner.auxiliary.parts[0]
    part = replace(part, config=replace(part.config, data="rewarded"))
    halves = [jax.tree.map(lambda leaf: leaf[rows], s.whole) for rows in (slice(8), slice(8, 16))]  # noqa: B023
    first, second = (
        transitions_of(half, s.learner.learning, s.learner.seats, s.learner.actor.context.size)
        for half in halves
    )

    @jit
    def kept(first: Any, second: Any) -> Any:
        buffer = empty_buffer(part.rows(first), 2 * REAL)
        # Numbers of updates after which the newest comes to lie first in the buffer.
        buffer = part.keep(part.keep(buffer, first, 3), second, 4)
        samples = part.draw(buffer, jnp.array([0]), jax.random.key(0), 256)
        fresh = part.draw(part.rows(second), jnp.array([0]), jax.random.key(0), 256)
        weigh = jax.vmap(jax.vmap(part.part.weight))
        found = buffer.earned, samples, weigh(samples.samples), fresh, weigh(fresh.samples)
        return *found, part.usable(buffer)

    earned, samples, weights, fresh, measured, usable = jax.device_get(kept(first, second))
    reward, done = np.asarray(s.whole.outcome.reward), np.asarray(s.whole.outcome.done)
    expected = np.zeros(reward.shape, bool)  # [16, B, N]
    for step in reversed(range(16)):
        later = expected[step + 1] & ~done[step][:, None] if step < 15 else False
        expected[step] = (reward[step] > 0) | later
    by_update = earned.reshape(2, 8, PPO.games, 3)[[1, 0]].reshape(expected.shape)
    np.testing.assert_array_equal(by_update, expected)
    known = np.flip(np.cumsum(np.flip(reward[:8] > 0, axis=0), axis=0), axis=0) > 0
    assert (expected[:8] & ~known).any()  # some of the first update by what came in the second
    present = np.asarray(s.whole.present)
    assert 0 < expected[present].mean() < 1
    # What counts as kept: steps at which the seat was there, and another that went on to earn.
    usable = usable.reshape(2, 8, PPO.games, 3)[[1, 0]].reshape(expected.shape)
    for seat, others in enumerate(([1, 2], [0, 2], [0, 1])):
        earner = (expected & present)[..., others].any(axis=-1)
        np.testing.assert_array_equal(usable[..., seat], present[..., seat] & earner)
    assert usable.sum() < present.sum()
    chosen = ~samples.left & (samples.samples.view.legal.sum(axis=-1) > 1)
    assert 0 < weights.sum() < chosen.sum()
    assert (weights <= chosen).all()
    chosen = ~fresh.left & (fresh.samples.view.legal.sum(axis=-1) > 1)
    np.testing.assert_array_equal(measured, chosen)


def test_a_buffer_is_emptied_after_a_fit() -> None:
    """Not before: the round learns the same as from a buffer with nothing older in it."""
    s = setup()
    part: Any = next(part for part in s.learner.auxiliary.parts if part.name == "opponent")

    @jit
    def learned() -> Any:
        def found(**changes: Any) -> Any:
            now = replace(part, config=replace(part.config, **changes))
            state = s.auxiliary_state.parts["opponent"]
            return now.learn(s.param_sets, state, s.played, 1, jax.random.key(0))

        return found(), found(after_fit="empty"), found(after_fit="empty", every=2)

    usual, empty, waiting = jax.device_get(learned())
    assert same(usual[0], empty[0])
    assert same(usual[2], empty[2])  # it is not empty when it is counted
    assert not (usual[1].buffer.joint == EMPTY).all()
    assert (empty[1].buffer.joint == EMPTY).all()
    assert same(waiting[1].buffer, usual[1].buffer)  # that is not fitted yet
