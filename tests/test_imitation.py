"""Learning from search: the losses by hand, and what is learned from."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import DistilConfig
from hopplus.learning.auxiliary.world import WorldLearner
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner
from hopplus.learning.ppo import Batch
from hopplus.learning.search_distillation import distillation_loss, distilled, empty_replay
from hopplus.types import View
from tiny_hop_plus import PPO, jit, same
from tiny_search import begun_beside, mind_of, planner_of, preset, seen

NEVER = -np.inf

# The losses

LEGAL = np.array(
    [
        [True, True, False],
        [True, True, True],
        [True, True, True],
        [True, True, True],
        [False, True, False],
    ]
)
AIM = np.array(  # of the search; the fourth seat is gone, and the fifth had no choice
    [
        [0.25, 0.75, 0.0],
        [0.5, 0.5, 0.0],
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0],
    ]
)
PRESENT = np.array([True, True, True, False, True])
VALUED = np.array([True, True, False, False, True])
RETURNS = np.array([1.0, 3.0, 100.0, 100.0, 2.0])


def batch() -> Batch:
    steps = len(LEGAL)
    zeros = jnp.zeros(steps)
    view = View(
        planes=jnp.zeros((steps, 1, 1, 1)),
        legal=jnp.asarray(LEGAL),
        time=zeros,
        last_actions=jnp.zeros((steps, 2), jnp.int32),
    )
    with np.errstate(divide="ignore"):
        aim = jnp.asarray(np.log(AIM), jnp.float32)
    return Batch(
        view=view,
        inferred=jnp.zeros((steps, 0)),
        action=jnp.zeros(steps, jnp.int32),
        log_prob=zeros,
        value=zeros,
        reward=zeros,
        returns=jnp.asarray(RETURNS, jnp.float32),
        present=jnp.asarray(PRESENT),
        valued=jnp.asarray(VALUED),
        aim=aim,
    )


def policy_and_value(params: Any, view: View, inferred: jax.Array) -> tuple[jax.Array, jax.Array]:
    logits, value = params
    return jax.nn.log_softmax(jnp.where(view.legal, logits, NEVER)), value


PARAMS = (jnp.log(jnp.array([1.0, 2.0, 5.0])), jnp.float32(2.0))


def loss_of(params: Any, batch: Batch) -> Any:
    over_rows = jax.vmap(policy_and_value, in_axes=(None, 0, 0))
    logits, value = over_rows(params, batch.view, batch.inferred)
    return distillation_loss(logits, value, batch, value_weight=0.5)


def test_losses_by_hand() -> None:
    """Policies are 1/3, 2/3 among two and 1/8, 2/8, 5/8 among three; the value is 2."""
    loss, found = jax.jit(lambda: loss_of(PARAMS, batch()))()
    crosses = [
        -0.25 * np.log(1 / 3) - 0.75 * np.log(2 / 3),
        -0.5 * np.log(1 / 8) - 0.5 * np.log(2 / 8),
        -np.log(1 / 8),
    ]
    own = [-0.25 * np.log(0.25) - 0.75 * np.log(0.75), np.log(2), 0]
    np.testing.assert_allclose(found["policy_loss"], np.mean(crosses), rtol=1e-5)
    np.testing.assert_allclose(found["kl"], np.mean(crosses) - np.mean(own), rtol=1e-5)
    np.testing.assert_allclose(found["value_loss"], (1 + 1 + 0) / 3, rtol=1e-5)
    two = -(np.log(1 / 3) + 2 * np.log(2 / 3)) / 3
    three = -(np.log(1 / 8) + 2 * np.log(2 / 8) + 5 * np.log(5 / 8)) / 8
    np.testing.assert_allclose(found["entropy"], (two + 2 * three + 0) / 4, rtol=1e-5)
    np.testing.assert_allclose(loss, np.mean(crosses) + 0.5 * 2 / 3, rtol=1e-5)


def test_gradients_by_hand() -> None:
    """Finite, though some actions are illegal and some are never chosen: the policy's less the
    search's, on average over the three steps that count."""
    slope, value_slope = jax.jit(jax.grad(lambda params: loss_of(params, batch())[0]))(PARAMS)
    three = np.array([1, 2, 5]) / 8
    expected = (np.array([1 / 3, 2 / 3, 0]) - AIM[0] + three - AIM[1] + three - AIM[2]) / 3
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(value_slope, 0.5 * 2 * (1 - 1 + 0) / 3, atol=1e-6)


def test_steps_that_do_not_count() -> None:
    """Whatever the search said of a seat that is gone or has no choice, and whatever came of it."""

    @jax.jit
    def found(batch: Batch) -> Any:
        return jax.value_and_grad(loss_of, has_aux=True)(PARAMS, batch)

    plain = batch()
    assert plain.aim is not None
    other = replace(
        plain,
        aim=plain.aim.at[3:].set(jnp.log(jnp.array([0.6, 0.3, 0.1]))),
        returns=plain.returns.at[2:4].set(-7.0),
    )
    assert same(found(plain), found(other))
    nobody = replace(plain, present=jnp.zeros(5, bool), valued=jnp.zeros(5, bool))
    (loss, parts), slope = found(nobody)
    assert loss == 0
    assert not any(jnp.any(leaf) for leaf in jax.tree.leaves((parts, slope)))


# What is learned from

SETS, ROWS, GAMES = 2, 6, 3  # two steps of three games


def numbered(update: int) -> Batch:
    """[2, 6] steps whose returns tell update, set and row; values are those with a minus."""
    one = jax.tree.map(lambda leaf: jnp.zeros((SETS, ROWS, *leaf.shape[1:])), batch())
    told = 100.0 * update + 10 * jnp.arange(SETS)[:, None] + jnp.arange(ROWS)
    return replace(one, returns=told, value=-told)


def test_values_learn_what_the_search_hoped_for_where_it_is_trusted() -> None:
    given, plain = DistilConfig(value_target="search"), numbered(0)
    drawing = (jnp.int32(0), GAMES, jax.random.key(0))
    for trusts, expected in (
        (None, plain.value),
        (jnp.array([True, False]), jnp.stack([plain.value[0], plain.returns[1]])),
    ):
        found, kept = distilled(plain, None, given, trusts, *drawing)
        np.testing.assert_array_equal(found.returns, expected)
        assert kept is None
    found, _ = distilled(plain, None, DistilConfig(), None, *drawing)
    assert same(found, plain)
    # What was played without search is no target of a policy later, but values still learn from it.
    trusts = jnp.array([True, False])
    plain = replace(plain, present=jnp.ones_like(plain.present, bool))
    found, _ = distilled(plain, empty_replay(plain, 1), DistilConfig(), trusts, *drawing)
    np.testing.assert_array_equal(found.present, plain.present & trusts[:, None])
    np.testing.assert_array_equal(found.valued, plain.valued)


def test_errors_of_values_are_divided_by_the_deviation_of_what_is_kept() -> None:
    """Of all steps that values learn from; and by nothing while these are all alike."""
    asked, drawing = DistilConfig(normalise=True), (GAMES, jax.random.key(0))
    plain = replace(numbered(1), valued=jnp.ones((SETS, ROWS), bool).at[:, 0].set(False))
    found, _ = distilled(plain, None, asked, None, jnp.int32(0), *drawing)
    spread = np.arange(1, ROWS).std()  # a row that does not count is left out
    np.testing.assert_allclose(np.asarray(found.scale), np.full((SETS, ROWS), spread), rtol=1e-5)
    alike = replace(plain, returns=jnp.ones_like(plain.returns))
    found, _ = distilled(alike, None, asked, None, jnp.int32(0), *drawing)
    assert (np.asarray(found.scale) == 1).all()
    kept: Batch | None = empty_replay(plain, 3)  # of which one stays empty, and does not count
    for update in (0, 1):
        now = replace(plain, returns=numbered(update).returns)
        found, kept = distilled(now, kept, asked, None, jnp.int32(update), *drawing)
    both = np.concatenate([np.arange(1, ROWS), 100 + np.arange(1, ROWS)])
    np.testing.assert_allclose(
        np.asarray(found.scale), np.full((SETS, ROWS), both.std()), rtol=1e-5
    )
    scaled, raw = (
        loss_of(PARAMS, replace(batch(), scale=scale))[1]["value_loss"]
        for scale in (jnp.full(len(RETURNS), 4.0), None)
    )
    np.testing.assert_allclose(scaled, raw / 16, rtol=1e-6)


def test_old_steps_are_learned_from() -> None:
    """Of two updates kept; games come whole, each of either, and never one that holds nothing."""
    learn = jax.jit(
        lambda kept, batch, *drawing: distilled(batch, kept, DistilConfig(), None, *drawing),
        static_argnums=3,
    )
    kept = empty_replay(numbered(1), 2)
    for update in range(3):
        plain, origins = numbered(update + 1), set()
        for seed in range(20):
            found, after = learn(kept, plain, jnp.int32(update), GAMES, jax.random.key(seed))
            origin = np.asarray(found.returns) // 100
            own = 10 * np.arange(SETS)[:, None] + np.arange(ROWS)
            np.testing.assert_array_equal(found.returns - 100 * origin, own)
            by_game = origin.reshape(SETS, -1, GAMES)
            assert (by_game == by_game[:1, :1]).all()
            origins |= {tuple(row) for row in by_game[:, 0]}
        kept = after
        newest, before = update + 1, max(update, 1)
        assert {one for row in origins for one in row} == {before, newest}
        assert len(origins) == (1 if update == 0 else 8)  # each game of either


def test_a_seat_that_does_not_trust_its_world_plays_its_policy() -> None:
    """And one that does, or searches by the true rules, plays as it does unasked."""
    view = jax.tree.map(lambda leaf: leaf[0], seen("0 1S .\n. . 2h\nh . .\n"))

    def logits_of(world: str, trusts: bool | None) -> Any:
        planner = planner_of("opponent", "world", world=world, simulations=12, trees=1)
        planner = replace(planner, shows_own=True)
        params = mind_of(planner)
        given = replace(params, trusts=None if trusts is None else jnp.bool_(trusts))
        act = jit(planner.act)(given, planner.start(), view, jax.random.key(0))[1]
        own = planner.actor.policy_and_value(params.policy, view, jnp.zeros(0))
        return (*act.logits, act.value), (*own[0], own[1])  # what is chosen by, and the value

    unasked, policy = logits_of("learned", None)
    assert not np.array_equal(unasked[:-1], policy[:-1])
    assert abs(unasked[-1] - policy[-1]) > 1e-3
    np.testing.assert_array_equal(logits_of("learned", True)[0], unasked)
    np.testing.assert_allclose(logits_of("learned", False)[0], policy, rtol=1e-5)
    by_rules = [logits_of("true", trusts)[0] for trusts in (None, False)]
    np.testing.assert_array_equal(*by_rules)


@pytest.mark.parametrize("own", [False, True])
def test_a_planner_shows_the_value_that_it_is_asked_for(own: bool) -> None:
    """The network's, or the mean of its trees'."""
    view = jax.tree.map(lambda leaf: leaf[0], seen("0 1S .\n. . 2h\nh . .\n"))
    planner = replace(planner_of(simulations=6, trees=2), shows_own=own)
    params = mind_of(planner)
    _, act, grown = jit(planner.decide)(params, planner.start(), view, jax.random.key(0))
    network = planner.actor.policy_and_value(params.policy, view, jnp.zeros(0))[1]
    assert abs(network - grown.value.mean()) > 1e-3
    np.testing.assert_allclose(act.value, grown.value.mean() if own else network, rtol=1e-4)
    config = replace(preset("hop-plus-mcts"), parts=())
    for target in ("returns", "search"):
        learner = make_learner(replace(config, distil=DistilConfig(value_target=target)), {})
        player: Any = learner.seating.players[0]
        assert player.shows_own == (target == "search")


class Measured(WorldLearner):
    """A world model whose errors are given."""

    def measure(self, *_: Any) -> dict[str, jax.Array]:
        return {"error": jnp.array([0.1, 0.3, 0.5])}


class Telling(Learner):
    """A learner that logs what its values are to learn."""

    def improve(self, sets: Any, optimiser: Any, batch: Batch, *rest: Any) -> Any:
        improved, optimiser, losses = super().improve(sets, optimiser, batch, *rest)
        return improved, optimiser, losses | {"targets": batch.returns}


def test_all_that_differed_in_the_notes_together() -> None:
    """A search in a learned world of old steps, whose own value, normalised, is learned; and its
    gate."""
    config = preset("hop-plus-mcts")
    config = replace(
        config,
        parts=("opponent", "goal", "world"),
        search=replace(config.search, world="learned", simulations=3, trees=1),
        distil=DistilConfig(2 * PPO.steps, "search", normalise=True, gate=0.3),
    )
    learner = make_learner(config, {})
    parts = tuple(
        Measured(**vars(part)) if isinstance(part, WorldLearner) else part
        for part in learner.auxiliary.parts
    )
    learner = Telling(**vars(learner) | {"auxiliary": replace(learner.auxiliary, parts=parts)})
    now, opened, divergences = begun_beside(learner), [], []
    update = jit(learner.update_shown)
    for _ in range(3):
        before = now
        now, metrics, lesson = update(now)
        opened.append(metrics["search/open"].tolist())
        divergences.append(metrics["kl"])
        for label, value in jax.device_get(metrics).items():
            assert np.isfinite(value).all(), label
        assert now.params[0].trusts.tolist() == [True, True, False]
    assert opened == [[0, 0, 0], [1, 1, 0], [1, 1, 0]]
    # At first nobody searches, and policies are where their targets are but for the steps between.
    assert (np.abs(divergences[0]) < 0.1 * np.abs(divergences[1][:2]).min()).all()
    # The lesson is what was played, for audits; what is kept has the targets.
    assert now.replay is not None
    assert before.replay is not None
    slot = jax.tree.map(lambda leaf: leaf[:, 0], now.replay)
    np.testing.assert_array_equal(slot.returns[:2], lesson.batch.value[:2])
    np.testing.assert_array_equal(slot.returns[2], lesson.batch.returns[2])
    assert same(before.replay.action[:, 1], now.replay.action[:, 1])
    for number, targets in enumerate(metrics["targets"]):
        assert np.isin(targets, now.replay.returns[number]).all()
        assert not np.isin(targets, now.replay.returns[number, 0]).all()
    assert not same(before.replay.action[:, 0], now.replay.action[:, 0])
