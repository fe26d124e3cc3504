"""Policies with a memory of their own, and trials against the same co-players."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    ConfigError,
    GoalConfig,
    GoalLearnerConfig,
    ImagineConfig,
    MemoryConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)
from hopplus.games import make_game
from hopplus.learning.auxiliary.hindsight import segments_of
from hopplus.learning.auxiliary.transitions import Transitions
from hopplus.learning.from_run import make_learner, seat_names
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.ppo import Batch
from hopplus.play.rollout import rollout
from hopplus.players.actor import make_actor
from tiny_hop_plus import begun, jit

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=4)
PPO = PPOConfig(games=6, unroll=11, minibatches=2, epochs=1)
CONFIG = TrainConfig(
    game=GAME,
    net=NetConfig(hidden=8),
    ppo=PPO,
    memory=MemoryConfig("trial", size=5),
    trial=3,
    train_against="all",
    steps=PPO.steps * 4,
)
SELF_PLAY = replace(CONFIG, train_against=None, memory=MemoryConfig("episode", size=5))
SHARED = replace(SELF_PLAY, ppo=replace(PPO, parameters="shared"))


def replayed(learner: Learner, context: Any, batch: Batch) -> Batch:
    """What it learns from with the contexts of those parameters."""
    return learner.auxiliary.replay(learner.actor.context, context, batch, learner.config)


def warm(learner: Learner) -> Learning:
    """After an update, so that nothing is at its beginning."""
    first: Learning = jit(learner.init)(jax.random.key(0))
    now: Learning = jit(learner.update)(first)[0]
    return now


@pytest.mark.parametrize("config", [CONFIG, SELF_PLAY, SHARED], ids=["trial", "episode", "shared"])
def test_what_is_recalled_is_what_was_remembered(config: TrainConfig) -> None:
    """With the parameters that played, learning sees just what the policy was told in play."""
    learner = make_learner(config, {})
    now = warm(learner)

    def both(now: Learning) -> tuple[jax.Array, jax.Array]:
        plays, trajectory, _ = learner._play(now.params, now.plays)
        param_sets = now.params[learner.learning]
        batch = learner.batch(param_sets, plays, trajectory)
        again = jax.vmap(partial(replayed, learner))(param_sets.context, batch)
        return again.inferred, batch.inferred

    again, told = jit(both)(now)
    np.testing.assert_allclose(again, told, atol=1e-6)
    assert np.abs(told).max() > 0.01


def test_trials_keep_company_and_memory_together() -> None:
    learner = make_learner(CONFIG, {})
    assert [player.name for player in learner.seating.players][1:] == ["stag|hare|random"] * 2
    first: Learning = jit(learner.init)(jax.random.key(1))
    steps = 60
    trajectory = jit(
        lambda now: rollout(learner.game, learner.seating, now.params, now.plays, steps)[1]
    )(first)
    memory = np.asarray(trajectory.memory[learner.learning])
    done = np.asarray(trajectory.outcome.done)
    number, choice = np.asarray(trajectory.episode), np.asarray(trajectory.choice)[:, :, 1:]
    np.testing.assert_array_equal(trajectory.begins[1:], done[:-1])
    for game in range(PPO.games):
        begins = np.flatnonzero(np.append(True, done[:-1, game]))  # first steps of episodes
        for count, step in enumerate(begins):
            assert number[step, game] == count % 3
            assert memory[step, game].any() == (count % 3 > 0)
        # From the first step of a trial to its end, the same ones sit there.
        for trial in range(len(begins) // 3):
            last = begins[3 * trial + 3] if 3 * trial + 3 < len(begins) else steps
            segment = choice[begins[3 * trial] : last, game]
            assert (segment == segment[0]).all()
    assert len(np.unique(choice)) == 3  # everyone comes


def test_a_history_of_goals_lasts_for_a_trial() -> None:
    """Carried on from episode to episode, and begun anew with the next trial; learned from so."""
    goal = GoalLearnerConfig(
        across=True, hidden=4, prior=GoalConfig(size=2, net=NetConfig(hidden=8))
    )
    config = replace(CONFIG, memory=MemoryConfig(), parts=("opponent", "goal"), goal=goal)
    actor = make_actor("learn", make_game(GAME), config)
    view: Any = None  # goals are read from what was seen before
    assert actor.carry(jnp.ones(4), view).tolist() == [1.0] * 4
    assert actor.carries
    short = replace(config, goal=replace(goal, across=False))
    assert not make_actor("learn", make_game(GAME), short).carries
    # Five steps of one game, of two seats: episodes end with the second and the fourth of them.
    done = jnp.array([False, True, False, True, False])[:, None]
    memory = jnp.arange(40.0).reshape(5, 1, 2, 4)
    played = Transitions(
        jnp.zeros((5, 1)),
        jnp.zeros((5, 1, 3)),
        done=done,
        memory=memory,
        begins=jnp.roll(done, 1, axis=0),
        episode=jnp.array([1, 1, 2, 2, 0])[:, None],
    )
    segment = segments_of(played, across=True)
    assert segment.fresh.tolist() == [[False] * 4 + [True]]
    assert segment.memory.tolist() == memory[0].tolist()
    whole = segments_of(played, across=False)
    assert whole.fresh.tolist() == [[False, False, True, False, True]]


def test_it_learns_through_time() -> None:
    """What was seen three steps ago changes what the policy is taught."""
    learner = make_learner(SELF_PLAY, {})
    now = warm(learner)
    plays, trajectory, _ = jit(learner._play)(now.params, now.plays)
    param_sets = now.params[learner.learning]
    batch = jit(learner.batch)(param_sets, plays, trajectory)
    one = jax.tree.map(lambda leaf: leaf[0], batch)
    context = jax.tree.map(lambda leaf: leaf[0], param_sets.context)
    games = PPO.games

    def told(planes: jax.Array) -> jax.Array:
        view = replace(one.view, planes=planes)
        again = replayed(learner, context, replace(one, view=view))
        return again.inferred[3 * games].sum()

    slope = np.asarray(jit(jax.grad(told))(one.view.planes)).reshape(PPO.unroll, games, -1)
    fresh = np.asarray(one.begins).reshape(PPO.unroll, games)[1:4, 0]
    since = 0 if not fresh.any() else 1 + int(np.flatnonzero(fresh)[-1])
    assert np.abs(slope[since, 0]).max() > 0  # back to where the episode began
    assert not slope[:since, 0].any()  # and no further
    assert not slope[4:].any()  # nothing of what comes later, or of other games
    assert not slope[:, 1:].any()


def test_without_a_memory_nothing_is_recalled() -> None:
    learner = make_learner(replace(SELF_PLAY, memory=MemoryConfig()), {})
    assert not learner.actor.context.learned_by_policy
    shapes: Any = jax.eval_shape(learner.init, jax.random.key(0))
    assert shapes.params[learner.learning].context == ()


def test_company() -> None:
    assert seat_names(CONFIG) == ["learn", "stag|hare|random", "stag|hare|random"]
    with pytest.raises(ConfigError, match="both say who sits there"):
        replace(CONFIG, seats="learn,stag,stag")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--trial", "1"], "needs trials"),
        (["--trial", "0"], "--trial is 0 but must be from 1 to 1073741824"),
        (["--parts", "goal"], "--memory.kind trial and --parts goal each say what a player makes"),
        (["--ppo.games", "2", "--ppo.minibatches", "4"], "at most --ppo.games"),
        (["--memory.kind", "ever"], "ever"),
        (["--memory.size", "0"], "from 1 to 8192"),
        (["--train-against", "some"], "some"),
    ],
)
def test_clear_errors(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "ppo-memory", *options]) == 2
    assert said in capsys.readouterr().err


TINY: dict[str, Any] = {
    "opponent": OpponentLearnerConfig(net=NetConfig(hidden=8), fits=1, batch=8, buffer=60),
    "world": WorldLearnerConfig(model=WorldConfig(hidden=8), fits=1, batch=8, buffer=60),
    "imagine": ImagineConfig(horizon=3, warm_up=0, gate=1.0, buffer=60),
    "ppo": replace(PPO, games=16, minibatches=1),  # as many as have `begun`
}
TOGETHER: dict[str, Any] = {
    "memory imagines": {"parts": ("opponent", "world", "imagination")},
    "memory searches": {"parts": ("opponent",), "search": SearchConfig(simulations=2)},
    "belief imagines": {
        "parts": ("opponent", "belief", "world", "imagination"),
        "memory": MemoryConfig(),
    },
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_contexts_go_with_imagination_and_search(kind: str) -> None:
    """The policy learns from what was given in play and in imagination, step by step."""
    learner = make_learner(replace(CONFIG, **TINY, **TOGETHER[kind]), {})
    now = begun(learner)

    @jit
    def updated(now: Learning) -> Any:
        after, metrics, lesson = learner.update_shown(now)
        found = lesson.batch
        if learner.actor.context.learned_by_policy:
            # With the parameters that played: models learn beside them before anything is imagined.
            contexts = now.params[learner.learning].context
            found = jax.vmap(partial(replayed, learner))(contexts, found)
        return after, metrics, lesson.batch, found.inferred

    after, metrics, batch, again = updated(now)
    assert all(np.isfinite(value).all() for value in metrics.values())
    np.testing.assert_allclose(again, batch.inferred, atol=1e-5)
    real = learner.config.steps
    assert np.abs(batch.inferred[:, :real]).max() > 0.01
    if learner.auxiliary.imagined_rollouts:
        assert batch.inferred.shape[1] == real + learner.auxiliary.imagined_rollouts.rows
        assert np.abs(batch.inferred[:, real:]).max() > 0.01
    first, last = (one.params[learner.learning] for one in (now, after))
    for part in ("policy", "context"):  # whatever the policy's loss improves
        leaves = (jax.tree.leaves(getattr(one, part)) for one in (first, last))
        assert all((a != b).any() for a, b in zip(*leaves, strict=True))
