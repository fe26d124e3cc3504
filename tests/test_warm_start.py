"""Models that a run begins with: a model of the others comes with the goals that it was told."""

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
    TrainConfig,
)
from hopplus.learning.auxiliary.opponent import fitted_settings
from hopplus.learning.from_run import learner_from_run, new_run
from hopplus.recorded.dataset import open_data
from hopplus.recorded.models import load_parts
from hopplus.recorded.pretrain import new_pretrain, open_session, pretrain
from hopplus.recorded.samples import seat_steps, source_of
from hopplus.runs.folder import open_run
from tiny_hop_plus import CONFIG, TINY

FIT = FitConfig(epochs=1, batch=64)


@pytest.fixture(scope="module")
def fitted(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs: two goal priors, and models of players that were told the first's goals, or nothing."""
    here, data = tmp_path_factory.mktemp("fitted"), str(recorded)

    def fit(name: str, config: PretrainConfig) -> None:
        run = new_pretrain(here / name, config)
        pretrain(run, open_session(run))

    goal = GoalConfig(size=3, ahead=2, net=TINY)
    fit("goal", PretrainGoal(data, goal=goal, fit=FIT))
    fit("other-goal", PretrainGoal(data, seed=1, goal=goal, fit=FIT))
    told: dict[Any, Any] = {"hindsight": str(here / "goal"), "none": None}
    for name, goals in told.items():
        # A net unlike that of training, and goals of another size, so that both have to be taken.
        settings = OpponentConfig(goal=name, net=NetConfig(kind="centred", hidden=12))
        fit(name, PretrainOpponent(data, goal_run=goals, opponent=settings, fit=FIT))
    return here


def begins_with(fitted: Path, **runs: str) -> TrainConfig:
    """Small HOP+ with models from those runs."""
    given: dict[str, Any] = {
        part: replace(getattr(CONFIG, part), from_run=str(fitted / run))
        for part, run in runs.items()
    }
    return replace(CONFIG, **given)


def test_predictions_are_those_of_the_fitted_model(
    fitted: Path, recorded: Path, tmp_path: Path
) -> None:
    """With the prior that came along, of the view some steps later, and from the run's own folder
    alone: on recorded samples every seat's models of all others say what the fitted model says."""
    run = new_run(tmp_path / "run", begins_with(fitted, opponent="hindsight"))
    assert run.config().goal.from_run == "parts/goal.safetensors"  # so that it stays as it is
    assert run.config().goal.prior.size == 3
    learner = learner_from_run(run)
    fresh = jax.eval_shape(learner.init, jax.random.key(0)).params[0]
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), fresh)
    player = jax.tree.map(lambda leaf: leaf[1], learner.auxiliary.known(zeros))  # of seat 1

    setting, params = load_parts(open_run(fitted / "hindsight"))
    # With an axis of others, too: products of another shape may round otherwise.
    models = jax.tree.map(lambda leaf: jnp.stack([leaf[0]] * 2), params)
    data = open_data(recorded)
    shard = data.shard(0)
    steps = seat_steps(shard, 0.1, measured=True)[:64]
    source, prior = source_of(shard, data.most_rows), learner.actor.parts.prior
    assert prior is not None

    @jax.jit
    def both(step: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        sample = setting.sampler(source, step, key, setting.prior_params)
        goal = prior.goal(player.prior, sample.later)
        own = jax.vmap(lambda one: one(sample.view, goal))(player.opponents)
        return own, jax.vmap(lambda one: one(sample.view, sample.goal))(models)

    loaded, expected = jax.vmap(both)(steps, jax.random.split(jax.random.key(0), len(steps)))
    assert loaded.shape[1] == 2
    for other in range(2):
        np.testing.assert_array_equal(loaded[:, other], expected[:, other])
    assert np.ptp(np.exp(expected), axis=0).max() > 0.01  # it says different things


def test_a_model_that_was_told_nothing_does_not_care_for_goals(
    fitted: Path, tmp_path: Path
) -> None:
    run = new_run(tmp_path / "run", begins_with(fitted, opponent="none"))
    assert run.config().goal.from_run is None
    model = learner_from_run(run).auxiliary.warm_start["opponent"]
    weight = model.body.dense.dense.layers[0].weight
    assert not weight[-CONFIG.goal.prior.size :].any()
    assert weight[: -CONFIG.goal.prior.size].all()


def test_the_same_prior_may_be_named_too(fitted: Path, tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", begins_with(fitted, opponent="hindsight", goal="goal"))
    assert run.config().goal.from_run == "parts/goal.safetensors"


@pytest.mark.parametrize(
    ("runs", "parts", "words"),
    [
        (
            {"opponent": "hindsight", "goal": "other-goal"},
            CONFIG.parts,
            "--opponent.from and --goal.from bring different goal models: leave out --goal.from",
        ),
        ({"opponent": "hindsight"}, ("opponent",), "with a goal model but --parts has no goal"),
    ],
)
def test_what_does_not_go_together_is_refused(
    runs: dict[str, str], parts: Any, words: str, fitted: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=words):
        new_run(tmp_path / "run", replace(begins_with(fitted, **runs), parts=parts))
    assert not (tmp_path / "run").exists()


def test_what_nobody_knows_in_play_is_refused() -> None:
    with pytest.raises(ConfigError, match="which nobody knows in play"):
        fitted_settings(PretrainOpponent("", opponent=OpponentConfig(goal="caught")))
