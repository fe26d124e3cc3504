"""Returns that run over a trial, and players that are told several things at once."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    CoinConfig,
    MemoryConfig,
    NetConfig,
    PPOConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.diagnosis.audit import target_audit
from hopplus.games import make_game
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learning, Lesson
from hopplus.play.rollout import rollout
from hopplus.players.context.context import Context, NoContext, goal_size
from hopplus.players.context.episodes import EpisodesContext
from hopplus.players.context.joined import JoinedContext
from hopplus.players.context.oracle import OracleContext
from hopplus.players.context.recurrent import RecurrentContext
from hopplus.players.context.registry import make_context
from hopplus.presets import PRESETS
from hopplus.types import Trajectory, View
from refusals import refused
from tiny_hop_plus import jit

PPO = PPOConfig(games=6, unroll=11, minibatches=2, epochs=1, trial_discount=0.5)
CONFIG = TrainConfig(
    game=CoinConfig(size=3, horizon=4),
    net=NetConfig(hidden=8),
    ppo=PPO,
    memory=MemoryConfig("trial", size=5),
    context="oracle+recurrent",
    trial=3,
    seats="learn,cooperator|grudger",
    steps=PPO.steps * 4,
)
EPISODE = replace(CONFIG, memory=MemoryConfig("episode", size=5))


def joined(config: TrainConfig = CONFIG) -> JoinedContext:
    context = make_context(make_game(config.game), config)
    assert isinstance(context, JoinedContext)
    return context


def a_view() -> View:
    game = make_game(CONFIG.game)
    return game.view(game.init(jax.random.key(3)), jnp.int32(0))


def test_it_is_told_what_each_of_them_says() -> None:
    context = joined()
    kinds = [type(one) for one in context.contexts]
    assert kinds == [OracleContext, RecurrentContext, EpisodesContext]
    assert context.size == 4 + 5 + 1
    params = context.init(jax.random.key(0))
    memory = context.meet(context.start(), jnp.array([1]))
    memory, said = context.infer(params, memory, a_view())
    assert said[:4].tolist() == [0, 1, 0, 0]  # the grudger, of two, and it has not acted
    alone = context.contexts[1]
    remembered = alone.infer(params[1], alone.start(), a_view())[1]
    np.testing.assert_allclose(said[4:9], remembered)
    assert np.abs(remembered).max() > 0
    assert said[9] == 0
    # Models of the others are told what is about each: who it is, and what it was after.
    assert goal_size(context) == 4
    assert context.about_others(said).tolist() == [[0, 1, 0, 0]]


def test_an_oracle_is_told_what_those_who_remember_the_trial_are_after() -> None:
    """A grudger's name does not say whether it has been wronged: its last act does."""
    ppo = replace(PPO, games=64)
    learner = make_learner(replace(CONFIG, seats="learn,grudger|cooperator", ppo=ppo), {})

    def play(key: jax.Array) -> Trajectory:
        first = learner.init(key)
        return rollout(learner.game, learner.seating, first.params, first.plays, 24)[1]

    found: Trajectory = jax.device_get(jit(play)(jax.random.key(0)))
    told = found.act.inferred[:, :, 0, 2:4]
    new = found.begins & (found.episode == 0)
    assert (told[new] == 0).all()
    np.testing.assert_array_equal(told[1:][~new[1:]], found.act.goal[:-1, :, 1][~new[1:]])
    # Both of its moods are seen, and the second outlasts an episode.
    later = found.begins & (found.episode > 0) & (found.choice[..., 1] == 0)
    assert np.unique(told[later], axis=0).tolist() == [[0, 0], [1, 0]]
    # Of players who remember nothing the name says all.
    plain = replace(
        CONFIG, seats="learn,cooperator|defector", context="oracle", memory=MemoryConfig()
    )
    assert make_context(make_game(plain.game), plain).size == 2 + 1


def test_who_tells_nothing_of_the_others_is_passed_over() -> None:
    first, oracle = EpisodesContext(1, 3), OracleContext(1, 2)
    context = JoinedContext((first, oracle))
    assert context.about_others(jnp.array([0.5, 1.0, 0.0])).tolist() == [[1, 0]]
    nobody: Context = JoinedContext((first, first))
    assert goal_size(nobody) == 0


@pytest.mark.parametrize("config", [CONFIG, EPISODE], ids=["trial", "episode"])
def test_each_carries_on_as_it_would_alone(config: TrainConfig) -> None:
    context = joined(config)
    params = context.init(jax.random.key(0))
    memory = context.meet(context.start(), jnp.array([1]))
    shares = []
    for _ in range(4):
        memory, said = context.infer(params, memory, a_view())
        shares.append(float(said[-1]))
        before, memory = memory, context.carry(memory, a_view())
        kept = before[1] if config.memory.kind == "trial" else jnp.zeros(5)
        np.testing.assert_array_equal(memory[1], kept)
        assert memory[0].tolist() == [0, 1, 0, 0]
    assert shares == [0, 0.5, 1, 1]  # a longer trial than it knows stays at its last episode


def first_update(config: TrainConfig) -> tuple[Learning, Lesson]:
    learner = make_learner(config, {})

    def updated(key: jax.Array) -> tuple[Learning, Lesson]:
        now = learner.update(learner.init(key))[0]
        return now, learner.update_shown(now)[2]

    now, lesson = jit(updated)(jax.random.key(0))
    return now, lesson


def test_learning_sees_what_play_saw_and_returns_run_over_the_trial() -> None:
    learner = make_learner(CONFIG, {})
    now, lesson = first_update(CONFIG)
    batch = lesson.batch
    # What is inferred anew with the parameters that played is what the policy was told.
    params = now.params[learner.learning]
    replay = partial(learner.auxiliary.replay, learner.actor.context)
    again = jit(jax.vmap(lambda own, part: replay(own, part, PPO)))(params.context, batch).inferred
    np.testing.assert_allclose(again, batch.inferred, atol=1e-5)
    numbers = np.unique(np.asarray(batch.inferred)[..., -1])
    assert numbers.tolist() == [0, 0.5, 1]
    # Returns, added up by other code.
    replicas = replace(now, params=jax.tree.map(lambda leaf: leaf[None], now.params))
    found = target_audit(learner, replicas, lesson, 0)
    assert max(found.returns) < 1e-4
    # The last step of an episode gains from the next one, unless the trial is over.
    trajectory, returns = lesson.trajectory, np.asarray(batch.returns).reshape(11, 6)
    done, episode = np.asarray(trajectory.outcome.done), np.asarray(trajectory.episode)
    reward = np.asarray(trajectory.outcome.reward)[..., 0]
    last = done & (episode == 2)
    np.testing.assert_allclose(returns[last], reward[last], atol=1e-6)
    ends = (done & (episode < 2))[:-1]
    value, later = np.asarray(trajectory.act.value)[1:, :, 0], returns[1:]
    ahead = (1 - PPO.gae_lambda) * value + PPO.gae_lambda * later
    np.testing.assert_allclose(returns[:-1][ends], (reward[:-1] + 0.5 * ahead)[ends], atol=1e-5)
    assert last.any()
    assert np.abs(ahead[ends]).max() > 0.01


def test_the_policy_improves_the_memory_and_not_what_it_is_told() -> None:
    learner = make_learner(CONFIG, {})
    before = jit(learner.init)(jax.random.key(0)).params[learner.learning].context
    after = first_update(CONFIG)[0].params[learner.learning].context
    np.testing.assert_array_equal(before[0], after[0])  # that it is an oracle
    assert any(
        np.any(a != b)
        for a, b in zip(jax.tree.leaves(before[1]), jax.tree.leaves(after[1]), strict=True)
    )


@dataclass(frozen=True)
class Counting(NoContext):
    """One of somebody's own, with parameters that are no numbers to be improved."""

    @property
    def size(self) -> int:
        return 1

    def init(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.int32(3), jnp.float32(0.5)

    def infer(self, params: Any, memory: Any, view: View) -> tuple[Any, jax.Array]:
        return memory, (params[0] * params[1])[None]


def test_the_policy_teaches_those_alone_that_it_should() -> None:
    recurrent = joined().contexts[1]
    learner = make_learner(CONFIG, {}, context=JoinedContext((Counting(1), recurrent)))

    def updated(key: jax.Array) -> tuple[Learning, Learning]:
        first = learner.init(key)
        return first, learner.update(first)[0]

    first, after = (one.params[learner.learning] for one in jit(updated)(jax.random.key(0)))
    assert jax.tree.leaves(first.context[0]) == jax.tree.leaves(after.context[0])
    assert np.any(first.context[1].given.weight != after.context[1].given.weight)


def test_who_has_left_comes_back_in_the_next_episode() -> None:
    """So there is something to gain for it, wherever an unroll cuts the episode."""
    game = StagHuntConfig(size=3, seats=3, hares=2, horizon=9)
    config = TrainConfig(
        game=game, net=NetConfig(hidden=8), ppo=PPO, trial=3, train_against="all", steps=PPO.steps
    )
    learner = make_learner(config, {})

    def updated(key: jax.Array) -> Any:
        now = learner.update(learner.init(key))[0]
        params, lesson = now.params[learner.learning], learner.update_shown(now)[2]
        seen = jax.tree.map(lambda leaf: leaf[:, learner.seats], lesson.plays.view)
        after = learner.actor.values(params, lesson.plays.memory[learner.learning], seen)
        unfinished = learner.unfinished(lesson.plays, lesson.trajectory)
        return now, lesson, after[:, 0], unfinished[:, :, 0]

    now, lesson, after, unfinished = jit(updated)(jax.random.key(1))
    gone = ~np.asarray(jax.vmap(learner.game.present)(lesson.plays.state)[:, 0])
    assert gone.any()
    returns = np.asarray(lesson.batch.returns).reshape(PPO.unroll, PPO.games)
    reward = np.asarray(lesson.trajectory.outcome.reward)[-1, :, 0]
    np.testing.assert_allclose(returns[-1][gone], (reward + after)[gone], atol=1e-5)
    assert np.abs(np.asarray(after)[gone]).max() > 1e-3
    assert unfinished[-1][gone].all()
    replicas = replace(now, params=jax.tree.map(lambda leaf: leaf[None], now.params))
    assert max(target_audit(learner, replicas, lesson, 0).returns) < 1e-4


def test_parts_leave_their_contexts() -> None:
    config = TrainConfig(parts=("opponent", "belief"), context="belief+episodes", trial=5)
    assert config.without("belief").context_names == ("episodes",)
    assert PRESETS["social-influence"].without("opponent").ppo.influence.weight == 0


def test_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = (
        "--game coin-v1 --game.size 3 --game.horizon 4 --net.hidden 8 --ppo.games 4 --ppo.unroll 6"
        " --ppo.minibatches 2 --ppo.epochs 1 --steps 48 --ppo.trial-discount 0.9"
    )
    seats = "--trial 3 --seats learn,cooperator|grudger --name a"
    assert main(f"train ppo {small} {seats}".split()) == 0
    assert main(["evaluate", "runs/a", "--episodes", "8", "--games", "4"]) == 0
    assert main(["replay", "runs/a", "--json"]) == 0
    search = "evaluate runs/a --search.simulations 4 --episodes 8"
    refused(search, "a search ends with this one", capsys)
    online = "adapt runs/a --learning online --trials 1 --against grudger"
    refused(online, "cannot go on learning there", capsys)


def test_a_belief_is_joined_with_a_memory_and_a_record() -> None:
    """What each says stands in its place, and models of the others are told the belief."""
    parts, context = ("opponent", "belief"), "belief+recurrent+record"
    both = joined(replace(CONFIG, parts=parts, ppo=PPOConfig(games=6), context=context))
    belief, memory, record = both.contexts
    assert both.size == belief.size + memory.size + record.size
    assert both.learned_by_policy
    said = jnp.arange(both.size, dtype=jnp.float32)
    assert (both.about_others(said) == belief.about_others(said[: belief.size])).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("ppo --ppo.trial-discount 0.9", "0 without trials"),
        ("hop-plus-trial --ppo.trial-discount 0.9", "0 with a search or imagination"),
        ("hop --trial 3 --ppo.trial-discount 0.9", "0 with a search or imagination"),
        ("ppo --trial 3 --ppo.trial-discount 2", "ppo.trial-discount"),
        ("ppo --trial 3 --ppo.trial-discount 1 --ppo.episodes whole --ppo.unroll 64", "whole"),
        ("ppo --context episodes", "needs trials"),
        ("ppo --context oracle+recurrent --train-against all", "recurrent needs --memory.kind"),
        ("goal-trial --context goals+episodes", "goals is not joined"),
        ("goal --trial 3 --ppo.trial-discount 1", "give --goal.across"),
        ("ppo-memory --context oracle", "leave one out"),
        ("belief --trial 3 --memory.kind trial", "or join them by --context"),
        ("belief --trial 3 --memory.kind trial --context belief", "leave one out"),
        ("ppo --trial 2 --context episodes+nobody", "no context 'nobody'"),
    ],
)
def test_refusals(
    options: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(f"train {options}", words, capsys)
