"""Goals that foresee what the others do, and histories of each of them."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError, GoalLearnerConfig, TrainConfig
from hopplus.games.game import views
from hopplus.learning.auxiliary.goal import GoalLearner
from hopplus.learning.auxiliary.learner import FitState
from hopplus.models.history import Histories, recalled
from hopplus.models.nets import LASTING, Gru
from hopplus.models.opponent import OpponentModel
from hopplus.players.context.goals import GoalsContext
from hopplus.types import View
from test_hindsight import PRESENT, seen_of, segment
from tiny_hop_plus import GAME, GOAL, jit, of_seat, random_like, same, setup

OTHERS = GAME.seats - 1
STEPS = 5


def of_each() -> GoalsContext:
    context = setup().learner.actor.context
    assert isinstance(context, GoalsContext)
    return replace(context, goals=OTHERS, of_each=True)


@pytest.mark.parametrize("seat", [0, 2])
def test_each_history_is_read_from_its_own_place(seat: int) -> None:
    """From what the game shows the other, which nobody but that seat is given."""
    s, part = setup(), of_each()
    game = s.learner.game
    inference = random_like(jax.eval_shape(part.init, jax.random.key(0)), 3)
    history = inference.history
    assert isinstance(history, Histories)
    states = jax.tree.map(lambda leaf: leaf[:STEPS, 0], s.whole.state)
    seen = jit(jax.vmap(lambda state: views(game, state)))(states)  # [T, N, ...]

    @jit
    def read() -> Any:
        own: View = jax.tree.map(lambda leaf: leaf[:, seat], seen)
        return recalled(history, part.start(), own, jnp.zeros(STEPS, bool))[1]

    @jit
    def alone(place: jax.Array) -> Any:
        memory = jnp.zeros(part.hidden)
        for step in range(STEPS):
            theirs = jax.tree.map(lambda leaf, at=(step, place): leaf[at], seen)
            last = jax.nn.one_hot(theirs.last_actions, len(game.action_names)).reshape(-1)
            given = history.gru.given(history.body(theirs, last))
            memory = history.gru.advance(memory, given)
        return memory

    found = read()  # [T, others, hidden]
    for other in range(OTHERS):
        np.testing.assert_allclose(
            found[-1, other], alone((seat + 1 + other) % GAME.seats), rtol=1e-4, atol=1e-5
        )
    assert np.abs(found[-1, 0] - found[-1, 1]).max() > 0.05


def test_goals_of_each_come_from_their_own_histories() -> None:
    part = of_each()
    inference = random_like(jax.eval_shape(part.init, jax.random.key(0)), 3)
    memory = jax.random.normal(jax.random.key(1), part.start().shape)
    goals = part.codes(inference, memory).mean
    other = part.codes(inference, memory.at[1].add(1.0)).mean
    np.testing.assert_array_equal(goals[0], other[0])
    assert np.abs(goals[1] - other[1]).min() > 0.01
    swapped = part.codes(inference, memory[::-1]).mean  # one network for all of them
    np.testing.assert_allclose(swapped, goals[::-1], rtol=1e-5)


def online(**change: Any) -> GoalLearner:
    (part,) = (one for one in setup().learner.auxiliary.parts if isinstance(one, GoalLearner))
    return replace(part, config=replace(GOAL, **change))


@pytest.mark.parametrize("count", [1, OTHERS])
def test_foresight_by_hand(count: int) -> None:
    """The cross-entropy of what others did who were there and had a choice, each with its goal."""
    part, player_params = online(), of_seat(setup().param_sets, 1)
    seen = seen_of(segment(), 0, 0)
    legal = np.array(seen.others.legal)  # [T, others, A]
    did = legal.shape[2] - 1 - legal[..., ::-1].argmax(axis=2)  # the last that is legal
    legal[0, 1] = np.arange(legal.shape[2]) == did[0, 1]  # one without a choice
    joint = np.concatenate([np.zeros((len(did), 1), int), did], axis=1)
    others = replace(seen.others, legal=jnp.asarray(legal))
    seen = replace(seen, others=others, joint=jnp.asarray(joint))
    goals = jax.random.normal(jax.random.key(2), (len(did), count, GOAL.prior.size))
    found, acts = jit(part._foresight)(player_params, seen, goals)
    likely = jit(jax.vmap(OpponentModel.__call__, in_axes=(0, 0, 0)))
    total, number = 0.0, 0
    for step, present in enumerate(PRESENT):
        if not present[0]:
            continue
        theirs = jax.tree.map(lambda leaf, at=step: leaf[at], others)
        told = jnp.broadcast_to(goals[step], (OTHERS, GOAL.prior.size))
        logits = likely(player_params.opponents, theirs, told)
        for other in np.flatnonzero(present[1:] & (legal[step].sum(axis=1) > 1)):
            total -= float(logits[other, did[step, other]])
            number += 1
    assert acts == number == 7
    np.testing.assert_allclose(found, total, rtol=1e-4)


def test_goals_learn_to_foresee() -> None:
    """And nobody else learns by it."""
    s = setup()

    def after(foresight: float) -> tuple[Any, float]:
        part = online(foresight=foresight, kl=0.0, fits=40, learning_rate=1e-2)
        auxiliary = part.init(s.param_sets, s.played)
        buffer = part.keep(auxiliary.buffer, s.played, jnp.int32(0))
        start = FitState(auxiliary.optimiser, buffer)
        param_sets, _, losses = jit(part.fit)(s.param_sets, start, jax.random.key(0))
        last = replace(part, config=replace(part.config, foresight=1.0, fits=1))
        kept = FitState(auxiliary.optimiser, buffer)
        found = jit(last.fit)(param_sets, kept, jax.random.key(1))[2]
        assert ("loss/foresight" in losses) == (foresight > 0)
        return param_sets, float(found["loss/foresight"].mean())

    param_sets, with_it = after(100.0)
    _, without = after(0.0)
    assert with_it < without - 0.05
    assert same(param_sets.policy, s.param_sets.policy)
    assert same(param_sets.opponents, s.param_sets.opponents)


def test_a_memory_that_begins_by_keeping() -> None:
    gru = Gru(3, 2, jax.random.key(0), LASTING)
    gru = eqx.tree_at(lambda gru: gru.kept.weight, gru, jnp.zeros_like(gru.kept.weight))
    memory = jnp.array([1.0, -2.0])
    kept = gru.advance(memory, gru.given(jnp.zeros(3)))
    np.testing.assert_allclose(kept, memory / (1 + np.exp(-2.0)), rtol=1e-6)
    np.testing.assert_allclose(Gru(3, 2, jax.random.key(0)).kept.bias, 0)


def test_what_does_not_go_together() -> None:
    with pytest.raises(ConfigError, match=r"needs --goal\.about each"):
        GoalLearnerConfig(history="each")
    with pytest.raises(ConfigError, match=r"goal\.foresight"):
        TrainConfig(parts=("goal",), goal=GoalLearnerConfig(foresight=1.0))
    with pytest.raises(ConfigError, match=r"goal\.foresight"):
        GoalLearnerConfig(foresight=-1.0)
    with pytest.raises(ConfigError, match=r"goal\.history"):
        GoalLearnerConfig(history="mine")  # type: ignore[arg-type]
