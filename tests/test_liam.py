"""LIAM: what its encoder learns by, what it does not, and how long it remembers."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fake_runs import saved_arrays
from hopplus.cli import main
from hopplus.config import (
    PARTS,
    ImagineConfig,
    LiamConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)
from hopplus.games.game import views
from hopplus.learning.auxiliary.liam import Drawn, LiamLearner
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.train import train
from hopplus.players.actor import make_actor
from hopplus.runs.folder import open_run
from tiny_hop_plus import begun, jit, of_seat

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=4, sight=1)
PPO = PPOConfig(games=16, unroll=10, minibatches=2, epochs=1)
LIAM = LiamConfig(buffer=160, fits=2, batch=8, hidden=6, size=4, across=True)
CONFIG = TrainConfig(
    game=GAME,
    net=NetConfig(hidden=8),
    ppo=PPO,
    parts=("liam",),
    liam=LIAM,
    seats="learn,random|hare,random|hare",
    trial=2,
    steps=PPO.steps * 4,
)


@pytest.fixture(scope="module")
def learner() -> Learner:
    return make_learner(CONFIG, {})


@pytest.fixture(scope="module")
def now(learner: Learner) -> Learning:
    return begun(learner)


@pytest.fixture(scope="module")
def played(learner: Learner, now: Learning) -> Any:
    return jit(learner._play)(now.params, now.plays)


def part_of(learner: Learner) -> LiamLearner:
    (part,) = learner.auxiliary.parts
    assert isinstance(part, LiamLearner)
    return part


def test_it_is_a_row_of_the_tables() -> None:
    assert PARTS["liam"].settings == "liam"
    assert AUXILIARY_MODELS["liam"].learner is LiamLearner
    assert CONFIG.context_names == ("liam",)
    assert CONFIG.without("liam").context_names == ("none",)


def test_losses_by_hand(learner: Learner, now: Learning, played: Any) -> None:
    """Step by step: the memory as the seat had it, what each other really saw, though this seat did
    not, and what it did, where it was there and had a choice."""
    _, trajectory, transitions = jax.device_get(played)
    part, params = part_of(learner), jax.tree.map(lambda leaf: leaf[0], now.params[0].context)
    context = part.part
    infer, told = jit(context.infer), jit(context.decode)
    shown = jit(lambda state: views(learner.game, state))
    totals, counts, memory = np.zeros(2), np.zeros(2), np.zeros(6)
    for t in range(10):
        if trajectory.begins[t, 0] and trajectory.episode[t, 0] == 0:
            memory = np.zeros(6)
        seen = shown(jax.tree.map(lambda leaf: leaf[t, 0], trajectory.state))  # noqa: B023
        memory, embedding = infer(params, memory, of_seat(seen, 0))
        np.testing.assert_allclose(
            embedding, trajectory.act.inferred[t, 0, 0], rtol=1e-4, atol=1e-5
        )
        planes, acts = map(np.asarray, told(params, embedding))
        for place in range(2):
            view = jax.device_get(of_seat(seen, 1 + place))
            if not trajectory.present[t, 0, [0, 1 + place]].all():
                continue
            chances = 1 / (1 + np.exp(-planes[place]))
            truth = view.planes.reshape(-1)
            totals[0] -= np.log(np.where(truth > 0, chances, 1 - chances)).sum()
            counts[0] += 1
            if view.legal.sum() > 1:
                weights = np.exp(acts[place]) * view.legal
                chosen = trajectory.act.action[t, 0, 1 + place]
                totals[1] -= np.log(weights[chosen] / weights.sum())
                counts[1] += 1
    assert counts[0] > counts[1] / 2 > 0
    segment = jax.tree.map(lambda leaf: leaf[0], part.rows(transitions))
    drawn = jax.tree.map(lambda leaf: leaf[None], (segment, jnp.int32(0), jnp.int32(0)))
    loss, found = jit(lambda own: part.loss(own, Drawn(*drawn), now.params[0]))(params)
    expected = totals / counts
    np.testing.assert_allclose(found["observation"], expected[0], rtol=1e-3)
    np.testing.assert_allclose(found["action"], expected[1], rtol=1e-3)
    np.testing.assert_allclose(loss, 0.1 * expected[0] + expected[1], rtol=1e-3)


def test_what_reaches_the_encoder(learner: Learner, now: Learning, played: Any) -> None:
    """The decoder's loss does, through the memory; the policy's has no parameter of it."""
    part, params = part_of(learner), jax.tree.map(lambda leaf: leaf[0], now.params[0].context)
    rows = part.rows(played[2])
    drawn = part.draw(rows, jnp.array([0]), jax.random.key(0), 8)
    slope = jit(jax.grad(lambda own: part.loss(own, drawn, now.params[0])[0]))(params)
    for leaf in jax.tree.leaves(slope):
        assert np.abs(leaf).max() > 1e-6
    assert learner.improved(now.params[0]).context is None
    batch = jit(learner.batch)(now.params[0], played[0], played[1])
    given = (now.optimiser, batch, jnp.int32(0), jax.random.key(0))
    improved = jit(learner.improve)(learner.improved(now.params[0]), *given)[0]
    assert improved.context is None
    weights = [net.body.dense.layers[0].weight for net in (improved.policy, now.params[0].policy)]
    assert (weights[0] != weights[1])[:, -4:].any()  # it learns what to make of the embedding


def test_memory_lasts_for_the_trial(learner: Learner, played: Any) -> None:
    trajectory = jax.device_get(played[1])
    memory, begins, episode = trajectory.memory[0], trajectory.begins, trajectory.episode
    assert not memory[begins & (episode == 0)].any()
    assert memory[begins & (episode == 1)].any()
    brief = make_actor("learn", learner.game, replace(CONFIG, liam=replace(LIAM, across=False)))
    assert not brief.carries


def test_with_imagination_and_search(learner: Learner) -> None:
    """Nothing of these asks which context there is."""
    tiny = NetConfig(hidden=8)
    more = replace(
        CONFIG,
        game=replace(GAME, sight=None),
        parts=("opponent", "liam", "world", "imagination"),
        opponent=OpponentLearnerConfig(buffer=160, fits=1, batch=8, net=tiny),
        world=WorldLearnerConfig(buffer=160, fits=1, batch=8, model=WorldConfig(hidden=8)),
        imagine=ImagineConfig(buffer=160, horizon=3, warm_up=0, gate=1.0),
    )
    searching = replace(
        more, parts=("opponent", "liam"), search=SearchConfig(simulations=2, trees=1)
    )
    for config in (more, searching):
        made = make_learner(config, {})
        shapes = jax.eval_shape(made.init, jax.random.key(0))  # which plays, with a search or not
        read = shapes.params[0].opponents.body.dense.layers[0].weight.shape[-2]
        assert read == 9 * 6 + 1 + 3 * 7 + 4
        if made.auxiliary.imagined_rollouts:
            lesson = jax.eval_shape(made.update_shown, shapes)[2]
            assert lesson.batch.inferred.shape[-1] == 4


@pytest.mark.usefixtures("shared_programs")
def test_it_goes_on_bit_for_bit(tmp_path: Path) -> None:
    words = "--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 4 --net.hidden 8"
    words += " --liam.hidden 6 --liam.size 4 --liam.fits 1 --liam.batch 8 --trial 2 --steps 512"
    words += " --ppo.games 16 --ppo.unroll 8 --ppo.minibatches 1 --ppo.epochs 1"
    command = ["train", "liam", *words.split(), "--checkpoint-every", "2", "--runs", str(tmp_path)]
    assert main([*command, "--name", "a"]) == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "b/checkpoints/4")
    (tmp_path / "b/result.json").unlink()
    train(open_run(tmp_path / "b"))
    one, two = (saved_arrays(tmp_path / name / "checkpoints/4") for name in "ab")
    assert any(".auxiliary_state.parts['liam']" in name for name in one)
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
