"""The goal prior and the opponent model: their equations, and what must never enter them."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import (
    ConfigError,
    FitConfig,
    GoalConfig,
    NetConfig,
    OpponentConfig,
    PretrainConfig,
    PretrainGoal,
    PretrainOpponent,
    PretrainWorld,
    StagHuntConfig,
    WorldConfig,
)
from hopplus.games import make_game
from hopplus.models.goal import GoalCode, GoalPart
from hopplus.models.part import fit_loss
from hopplus.recorded.dataset import Data, open_data
from hopplus.recorded.fit import Fitter
from hopplus.recorded.models import (
    Prior,
    Setting,
    class_weights_of,
    doubts,
    make_setting,
)
from hopplus.recorded.samples import seat_steps, source_of
from hopplus.types import Sample

GAME = StagHuntConfig(size=3, seats=3, hares=3, horizon=12)
SMALL = NetConfig(hidden=16)


@pytest.fixture(scope="module")
def data(recorded: Path) -> Data:
    return open_data(recorded)


def samples_of(setting: Setting, data: Data, count: int = 256) -> Sample:
    shard = data.shard(0)
    steps = seat_steps(shard, 1.0, measured=True)[:count]
    keys = jax.random.split(jax.random.key(1), count)
    make = jax.jit(jax.vmap(setting.sampler, in_axes=(None, 0, 0, None)))
    samples: Sample = make(source_of(shard, shard.size), steps, keys, setting.prior_params)
    return samples


GOALS = {
    "action-2": GoalConfig(size=2, net=SMALL),
    "reconstruction-64": GoalConfig(size=64, loss="reconstruction", net=SMALL),
    "joint-16": GoalConfig(loss="joint", net=SMALL),
    "discrete-action-8": GoalConfig("discrete", 8, ahead=0, net=SMALL),
}
PARTS: dict[str, PretrainConfig] = {
    **{name: PretrainGoal("", goal=goal) for name, goal in GOALS.items()},
    "opponent": PretrainOpponent("", opponent=OpponentConfig(net=SMALL)),
    "opponent-caught": PretrainOpponent(
        "", opponent=OpponentConfig("caught", net=NetConfig("centred", 16))
    ),
    "opponent-conv": PretrainOpponent(
        "", opponent=OpponentConfig(weighted=True, net=NetConfig("conv", 16, channels=4))
    ),
    "world": PretrainWorld("", world=WorldConfig(hidden=16)),
    "world-cells": PretrainWorld("", world=WorldConfig("cells", hidden=16)),
}


@pytest.mark.parametrize("name", list(PARTS))
def test_every_part_learns(name: str, data: Data) -> None:
    """Gradient steps on one batch make every part's loss smaller, and touch all it has."""
    config = PARTS[name]
    setting = make_setting(config, GAME, class_weights=class_weights_of(config, data))
    fitter = Fitter(setting.part, setting.sampler, setting.config.fit, 1000)
    shard = data.shard(0)
    steps = seat_steps(shard, 0.1, measured=False)[:256].reshape(1, 256, 2)
    source = source_of(shard, shard.size)
    before = jax.jit(fitter.init)(jax.random.key(0))
    batches = jnp.asarray(np.repeat(steps, 20, axis=0))
    improve = jax.jit(fitter.improve)
    fit, losses = before, []
    for _ in range(4):
        fit, sums = improve(fit, source, batches, 20, ())
        assert float(sums.pop("weight")) > 0
        losses.append(sum(float(value) for value in sums.values()))
    assert losses[3] < 0.8 * losses[0]
    for old, new in zip(jax.tree.leaves(before.params), jax.tree.leaves(fit.params), strict=True):
        assert (np.asarray(old) != np.asarray(new)).any()


def test_steps_of_players_who_are_gone_never_enter(data: Data) -> None:
    """Whatever is written at steps where a seat is gone, loss and gradient stay, bit for bit; the
    same changes where it is present do not."""
    setting = make_setting(PARTS["opponent"], GAME)
    params = jax.jit(setting.part.init)(jax.random.key(0))
    samples = samples_of(setting, data)
    keys = jax.random.split(jax.random.key(0), 256)
    gone = jnp.arange(256) % 3 == 0

    @jax.jit
    def loss(samples: Sample) -> Any:
        return jax.value_and_grad(
            lambda p: fit_loss(setting.part, p, samples, keys)[0], has_aux=False
        )(params)

    def with_absent(samples: Sample) -> Sample:
        present = samples.present.at[:, 0].set(samples.present[:, 0] & ~gone)
        return replace(samples, present=present)

    def poisoned(samples: Sample) -> Sample:
        """They see what cannot be, and do what they may not, so that their loss is infinite."""
        view = replace(
            samples.view,
            planes=jnp.where(gone[:, None, None, None], 7.0, samples.view.planes),
            legal=jnp.where(gone[:, None], jnp.arange(7) == 4, samples.view.legal),
        )
        joint = samples.joint.at[:, 0].set(jnp.where(gone, 0, samples.joint[:, 0]))
        return replace(samples, view=view, joint=joint)

    clean, dirty = loss(with_absent(samples)), loss(poisoned(with_absent(samples)))
    for one, two in zip(jax.tree.leaves(clean), jax.tree.leaves(dirty), strict=True):
        assert np.isfinite(np.asarray(one)).all()
        np.testing.assert_array_equal(one, two)
    stays = replace(samples, joint=samples.joint.at[:, 0].set(4))
    assert float(loss(stays)[0]) != float(loss(samples)[0])


def test_a_player_without_a_choice_teaches_nothing(data: Data) -> None:
    setting = make_setting(PARTS["opponent"], GAME)
    samples = samples_of(setting, data, 4)
    legal = jnp.zeros((4, 7), bool).at[:, 4].set(True).at[2:, 0].set(True)
    forced = replace(samples, view=replace(samples.view, legal=legal))
    weights = jax.jit(jax.vmap(setting.part.weight))(forced)
    assert weights.tolist() == [0, 0, 1, 1]


def test_class_weights_by_hand(data: Data) -> None:
    """Every action that occurs weighs the same altogether, and 1 on average."""
    weights = np.array(class_weights_of(PARTS["opponent-conv"], data))
    shard = data.shard(0)
    row, seat = seat_steps(shard, 0.1, measured=False).T
    counts = np.bincount(np.asarray(shard.rows.joint)[row, seat], minlength=7)
    np.testing.assert_allclose((weights * counts)[counts > 0], counts.sum() / (counts > 0).sum())
    assert class_weights_of(PARTS["opponent"], data) == ()
    setting = make_setting(PARTS["opponent-conv"], GAME, class_weights=tuple(weights.tolist()))
    samples = samples_of(setting, data)
    found = jax.jit(jax.vmap(setting.part.weight))(samples)
    np.testing.assert_allclose(found, weights[np.asarray(samples.joint[:, 0])], rtol=1e-6)


def test_a_seed_that_has_stopped_keeps_its_best() -> None:
    """Losses 3, 2, then worse for `patience` epochs: what comes after counts no more."""
    setting = make_setting(replace(PARTS["opponent"], fit=FitConfig(patience=2)), GAME)
    fitter = Fitter(setting.part, setting.sampler, setting.config.fit, 1)
    fit = jax.jit(fitter.init)(jax.random.key(0))
    best = None
    for number, loss in enumerate([3.0, 2.0, 5.0, 4.0, 1.0]):
        moved = jax.tree.map(lambda leaf: leaf + 1, fit.params)
        fit = fitter.finish_epoch(replace(fit, params=moved), jnp.float32(loss))
        best = fit.params if number == 1 else best
    assert (int(fit.epoch), int(fit.best_epoch), float(fit.best_loss)) == (5, 2, 2.0)
    for kept, expected in zip(jax.tree.leaves(fit.best), jax.tree.leaves(best), strict=True):
        np.testing.assert_array_equal(kept, expected)


def test_an_opponent_is_only_given_legal_actions(data: Data) -> None:
    setting = make_setting(PARTS["opponent-caught"], GAME)
    samples = samples_of(setting, data)
    params: Any = jax.jit(setting.part.init)(jax.random.key(0))
    log_probs = np.asarray(jax.jit(jax.vmap(params))(samples.view, samples.goal))
    np.testing.assert_array_equal(np.isfinite(log_probs), np.asarray(samples.view.legal))
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(samples.goal.argmax(axis=1), samples.caught)
    assert samples.goal.shape == (256, 3)  # stag, hare, nothing


def test_goals_in_hindsight_are_those_of_the_later_view(data: Data) -> None:
    prior = make_setting(PARTS["action-2"], GAME)
    part = prior.part
    assert isinstance(part, GoalPart)
    params = jax.jit(part.init)(jax.random.key(3))
    config = PretrainOpponent(
        "", goal_run="somewhere", opponent=OpponentConfig("hindsight", net=SMALL)
    )
    setting = make_setting(config, GAME, Prior(part, params))
    samples = samples_of(setting, data)
    goals = jax.jit(jax.vmap(lambda view: part.goal(params, view)))(samples.later)
    np.testing.assert_allclose(samples.goal, goals, rtol=1e-5, atol=1e-6)
    assert np.abs(np.asarray(samples.goal)).max() > 0


@pytest.mark.parametrize("loss", ["action", "joint"])
def test_what_a_goal_is_of_and_who_is_told_it(loss: Any, data: Data) -> None:
    """With `joint` it is of the view at the action; with `action` of the later one. The head sees
    view, time and goal: with the same goal it says something else of another view or time."""
    setting = make_setting(PretrainGoal("", goal=GoalConfig(loss=loss, net=SMALL)), GAME)
    part: Any = setting.part
    params = jax.jit(part.init)(jax.random.key(0))
    samples = samples_of(setting, data, 8)
    turned = jax.tree.map(lambda leaf: jnp.roll(leaf, 1, axis=0), samples.later)
    key = jax.random.key(0)

    @jax.jit
    def found(samples: Sample) -> Any:
        return jax.vmap(lambda one: part.losses(params, one, key))(samples)

    own, other = found(samples), found(replace(samples, later=turned))
    for name in ("action", "kl"):
        assert (own[name] == other[name]).all() == (loss == "joint")
    assert set(own) == {"action", "kl"}
    goal, view = jnp.ones(16), jax.tree.map(lambda leaf: leaf[0], samples.view)
    everything = replace(view, legal=jnp.ones(7, bool))
    said = part.policy(params, everything, goal)
    for another in (
        part.policy(params, replace(everything, planes=1 - view.planes), goal),
        part.policy(params, replace(everything, time=view.time + 1), goal),
        part.policy(params, everything, -goal),
    ):
        assert float(jnp.abs(said - another).max()) > 1e-4


def test_divergence_by_hand() -> None:
    gaussian = GoalPart((3, 3, 5), 7, GoalConfig())
    code = GoalCode(jnp.array([0.0, 1.0, 0.0]), jnp.log(jnp.array([1.0, 1.0, 2.0])))
    np.testing.assert_allclose(
        gaussian.divergence(code), [0, 0.5, 1.5 - math.log(2)], rtol=1e-6, atol=1e-7
    )
    discrete = GoalPart((3, 3, 5), 7, GoalConfig("discrete", 4))
    for chance, expected in (([0.25] * 4, 0.0), ([0.5, 0.5, 1e-30, 1e-30], math.log(2))):
        code = GoalCode(jnp.array(chance), jnp.log(jnp.array(chance)))
        assert float(discrete.divergence(code).sum()) == pytest.approx(expected, abs=1e-6)


def test_drawn_goals() -> None:
    """Gaussian ones have the code's mean and spread; discrete ones are categories, as likely as
    they should be, and let gradients through."""
    gaussian = GoalPart((3, 3, 5), 7, GoalConfig(size=2))
    code = GoalCode(jnp.array([1.0, -2.0]), jnp.log(jnp.array([0.5, 2.0])))
    keys = jax.random.split(jax.random.key(0), 20_000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: gaussian.drawn(code, key)))(keys))
    np.testing.assert_allclose(drawn.mean(axis=0), [1, -2], atol=0.05)
    np.testing.assert_allclose(drawn.std(axis=0), [0.5, 2], rtol=0.03)
    discrete = GoalPart((3, 3, 5), 7, GoalConfig("discrete", 3))
    chance = jnp.array([0.5, 0.3, 0.2])
    code = GoalCode(chance, jnp.log(chance))
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: discrete.drawn(code, key)))(keys))
    np.testing.assert_allclose(np.sort(drawn, axis=1), [[0, 0, 1]] * 20_000, atol=1e-6)
    np.testing.assert_allclose(drawn.mean(axis=0), chance, atol=0.02)

    def first(logits: jax.Array) -> jax.Array:
        code = GoalCode(jax.nn.softmax(logits), jax.nn.log_softmax(logits))
        return discrete.drawn(code, keys[0])[0]

    gradient = np.asarray(jax.jit(jax.grad(first))(jnp.zeros(3)))
    assert gradient[0] > 0
    assert gradient.sum() == pytest.approx(0, abs=1e-6)


def test_what_no_world_model_can_know_is_said() -> None:
    world, goal = PretrainWorld(""), PretrainGoal("")
    assert doubts(world, make_game(GAME)) == []
    unequal = make_game(replace(GAME, strength=(1.0, 1.0, 2.0), grace=3))
    (said,) = doubts(world, unequal)
    assert "game.strength" in said
    assert "game.grace" in said
    assert doubts(goal, unequal) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GoalConfig(size=1), "goal.prior.size is 1 but must be from 2 to 64"),
        (lambda: GoalConfig(size=65), "goal.prior.size is 65"),
        (lambda: GoalConfig(loss="words"), "goal.prior.loss is 'words'"),  # type: ignore[arg-type]
        (lambda: GoalConfig(kl=-1), "goal.prior.kl is -1"),
        (lambda: FitConfig(held_out=1.0), "fit.held-out is 1.0"),
        (lambda: PretrainOpponent("", goal_run="x"), "belong together"),
        (lambda: PretrainWorld("", seeds=0), "--seeds is 0"),
        (
            lambda: make_setting(PretrainWorld(""), StagHuntConfig(sight=1)),
            "--world.head cells",
        ),
        (
            lambda: make_setting(
                PretrainWorld("", world=WorldConfig(channel_weights=(1.0, 2.0))), GAME
            ),
            "2 numbers but views have 6 planes",
        ),
    ],
)
def test_wrong_settings(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        make()
