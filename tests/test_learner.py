"""The learner: every preset runs, nobody learns from another's play, and no seat is special."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hopplus.config import ConfigError, NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt, StagHuntState
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.ppo import (
    MOST_SHUFFLED,
    anneal_entropy,
    annealed,
    minibatch_rows,
    scattered,
    shuffled,
)
from hopplus.learning.returns import episode_metrics
from hopplus.play.lineup import Lineup
from hopplus.play.rollout import rollout
from hopplus.play.seating import Seating
from hopplus.presets import ABOUT, PRESETS
from hopplus.types import Act, Memory, Outcome, Params, Trajectory, View

SMALL: dict[str, Any] = {"games": 16, "unroll": 8, "minibatches": 2, "epochs": 2}
GAME = StagHuntConfig(size=3, seats=3, hares=2)


def small(config: TrainConfig, **ppo: Any) -> TrainConfig:
    return replace(
        config,
        game=GAME,
        net=replace(config.net, hidden=16),
        ppo=replace(config.ppo, **(SMALL | ppo)),
        goal=replace(config.goal, fits=2, batch=8),
        opponent=replace(config.opponent, fits=2, batch=8),
        steps=10_000,
    )


def two_updates(learner: Learner) -> tuple[Learning, Learning, dict[str, Any]]:
    before = jax.jit(learner.init)(jax.random.key(0))
    update = jax.jit(learner.update)
    after, _ = update(before)
    found: tuple[Learning, Learning, dict[str, Any]] = jax.device_get((before, *update(after)))
    return found


ELSEWHERE = (
    *("goal", "hop-plus", "hop-plus-memory", "hop-plus-trial"),
    *("inequity", "liam", "lola", "social-influence"),
)
BY_PPO = [n for n, c in PRESETS.items() if n not in ELSEWHERE and not c.search.simulations]


@pytest.mark.parametrize("name", BY_PPO)
def test_every_preset_learns(name: str) -> None:
    """All but those long to compile: test_resume_parts.py has six updates of `hop-plus`, and
    test_imitation.py two of each that learns from a search. What `goal` has is in `hop-plus`, and
    what `hop-plus-trial` has in that and in `goal-trial`, and together in test_switches.py.
    test_social_rewards.py has `inequity` and `social-influence`, test_liam.py
    `liam`, and test_lola.py `lola`."""
    for part, whole in (("goal", "hop-plus"), ("goal-trial", "hop-plus-trial")):
        assert PRESETS[part].goal == PRESETS[whole].goal
        assert PRESETS[part].opponent == PRESETS[whole].opponent
    assert set(ABOUT) == set(PRESETS)
    learner = make_learner(small(PRESETS[name]), {})
    before, after, metrics = two_updates(learner)
    for value in metrics.values():
        assert np.isfinite(value).all()
    changed = jax.tree.map(lambda a, b: bool((a != b).any()), before.params, after.params)
    assert all(jax.tree.leaves(changed))
    assert metrics["return_sum"].shape == (3,)
    alone = PRESETS[name].ppo.parameters == "shared" or PRESETS[name].train_against
    sets = 1 if alone else 3
    assert metrics["value_loss"].shape == (sets,)


@pytest.mark.parametrize(
    "change",
    [
        {"anneal": False, "entropy_end": 0.0, "gae_lambda": 1.0},
        {"prosociality": 0.5, "parameters": "shared", "minibatches": 1, "epochs": 1},
    ],
    ids=str,
)
def test_every_option_runs(change: dict[str, Any]) -> None:
    config = small(TrainConfig())
    learner = make_learner(replace(config, ppo=replace(config.ppo, **change)), {})
    _, _, metrics = two_updates(learner)
    for value in metrics.values():
        assert np.isfinite(value).all()


def test_only_learning_seats_learn_and_by_convolutions_too() -> None:
    conv = NetConfig(kind="conv", hidden=8, channels=4)
    config = replace(small(TrainConfig()), seats="stag,learn,learn", net=conv)
    learner = make_learner(config, {})
    assert learner.seats.tolist() == [1, 2]
    before, after, metrics = two_updates(learner)
    assert metrics["value_loss"].shape == (2,)
    assert np.isfinite(metrics["value_loss"]).all()
    changed = jax.tree.map(lambda a, b: bool((a != b).any()), before.params[1], after.params[1])
    assert all(jax.tree.leaves(changed))
    assert jax.tree.leaves(after.params[0]) == []


def test_no_seat_learns_from_another() -> None:
    """Other rewards for seat 2 change what seat 2 learns, and nothing of seats 0 and 1."""
    learner = make_learner(small(TrainConfig()), {})
    now = jax.jit(learner.init)(jax.random.key(0))

    @jax.jit
    def improved(bonus: jax.Array) -> Any:
        plays, played = rollout(learner.game, learner.seating, now.params, now.plays, 8)
        batch = learner.batch(now.params[0], plays, played)
        batch = replace(batch, returns=batch.returns + bonus[:, None] * batch.log_prob)
        policy = learner.improved(now.params[0])
        return learner.improve(policy, now.optimiser, batch, now.updates, jax.random.key(1))[0]

    plain, other = improved(jnp.zeros(3)), improved(jnp.array([0.0, 0.0, 1.0]))
    for one, two in zip(jax.tree.leaves(plain), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(one[:2], two[:2])
    assert any(
        (one[2] != two[2]).any()
        for one, two in zip(jax.tree.leaves(plain), jax.tree.leaves(other), strict=True)
    )


def test_each_seat_is_given_its_own_play() -> None:
    learner = make_learner(small(TrainConfig()), {})
    now = jax.jit(learner.init)(jax.random.key(0))

    @jax.jit
    def played() -> Any:
        plays, trajectory = rollout(learner.game, learner.seating, now.params, now.plays, 8)
        seen = jax.vmap(jax.vmap(lambda state: views(learner.game, state)))(trajectory.state)
        return learner.batch(now.params[0], plays, trajectory), trajectory, seen

    batch, trajectory, seen = jax.device_get(played())
    for seat in range(3):
        own = trajectory.act.action[:, :, seat].reshape(-1)
        np.testing.assert_array_equal(batch.action[seat], own)
        planes = seen.planes[:, :, seat].reshape(-1, *seen.planes.shape[3:])
        np.testing.assert_array_equal(batch.view.planes[seat], planes)
        np.testing.assert_array_equal(
            batch.present[seat], trajectory.present[:, :, seat].reshape(-1)
        )
        # What the networks say of these views is what was said when they were played.
        policy, view, told = jax.tree.map(
            lambda leaf: leaf[seat],  # noqa: B023
            (now.params[0].policy, batch.view, batch.inferred),
        )
        logits, value = jax.vmap(policy)(view, told)
        np.testing.assert_allclose(value, batch.value[seat], rtol=1e-4, atol=1e-5)
        chosen = np.take_along_axis(np.asarray(logits), batch.action[seat][:, None], 1)[:, 0]
        np.testing.assert_allclose(chosen, batch.log_prob[seat], rtol=1e-4, atol=1e-5)


def test_prosocial_returns_are_of_everyones_mean() -> None:
    """And go on after a seat has left, as do the values that it learns then."""
    learner = make_learner(small(PRESETS["ppo-prosocial"], unroll=40, gae_lambda=1.0), {})
    now = jax.jit(learner.init)(jax.random.key(0))

    @jax.jit
    def played() -> Any:
        plays, trajectory = rollout(learner.game, learner.seating, now.params, now.plays, 40)
        return learner.batch(now.params[0], plays, trajectory), trajectory

    batch, trajectory = jax.device_get(played())
    mean = trajectory.outcome.reward.mean(axis=-1)  # [T, B]
    returns = batch.returns.reshape(3, 40, 16)
    ended = np.argwhere(trajectory.outcome.done)
    assert len(ended) > 5
    for t, b in ended:  # from the last ending before it up to this one
        before = [s for s, game in ended if game == b and s < t]
        begun = max(before, default=-1) + 1
        for seat in range(3):
            expected = np.cumsum(mean[begun : t + 1, b][::-1])[::-1]
            np.testing.assert_allclose(returns[seat, begun : t + 1, b], expected, atol=1e-5)
    assert batch.valued.all()
    assert not batch.present.all()


def test_schedules() -> None:
    config = small(TrainConfig(), learning_rate=0.1, entropy=0.5, entropy_end=0.1)
    learner = make_learner(config, {})
    gradient_steps = learner.updates * 4
    assert annealed(learner.config, learner.updates)(0) == pytest.approx(0.1)
    assert annealed(learner.config, learner.updates)(gradient_steps // 2) == pytest.approx(0.05)
    assert annealed(learner.config, learner.updates)(gradient_steps) == 0.0
    entropy = [anneal_entropy(learner.config, jnp.int32(n), 40) for n in (0, 20, 40, 50)]
    np.testing.assert_allclose(entropy, [0.5, 0.3, 0.1, 0.1], rtol=1e-6)
    constant = make_learner(small(TrainConfig(), anneal=False, entropy_end=None), {})
    assert annealed(constant.config, constant.updates)(10**6) == pytest.approx(
        constant.config.learning_rate
    )
    assert anneal_entropy(constant.config, jnp.int32(50), 99) == pytest.approx(
        constant.config.entropy
    )
    huge = jax.tree.map(lambda leaf: 1e6 * jnp.ones_like(leaf), {"w": jnp.zeros(4)})
    change, _ = optax.clip_by_global_norm(config.ppo.gradient_norm).update(huge, optax.EmptyState())
    assert optax.tree.norm(change) == pytest.approx(config.ppo.gradient_norm)


def test_episode_metrics_by_hand() -> None:
    """Two games, three steps: returns carry over from before and into the next update."""
    done = jnp.array([[False, False], [True, False], [False, True]])
    reward = jnp.array([[[1.0], [10.0]], [[2.0], [20.0]], [[4.0], [40.0]]])
    nothing = jnp.zeros((3, 2, 1), bool)
    outcome = Outcome(reward, nothing, done, nothing, nothing, reward.astype(jnp.int32))
    acts: Any = None
    so_far = jnp.array([[100.0], [200.0]])
    played = Trajectory((), nothing, (), acts, outcome, *[nothing] * 4)
    returns, metrics = episode_metrics(so_far, played)
    assert metrics["episodes"] == 2
    assert metrics["return_sum"].tolist() == [103.0 + 270.0]
    assert metrics["taken_sum"].tolist() == [77]
    assert returns.tolist() == [[4.0], [0.0]]


def test_minibatches_hold_every_row_once() -> None:
    for whole in (False, True):
        rows = np.asarray(minibatch_rows(jax.random.key(0), 2 * 3 * 8, 4, 8, whole))
        assert rows.shape == (4, 12)
        assert sorted(rows.ravel()) == list(range(48))
        games = [set((part % 8).tolist()) for part in rows]
        if whole:  # two games each, all their steps, in order
            assert all(len(part) == 2 for part in games)
            for part in rows:
                for game in set((part % 8).tolist()):
                    assert part[part % 8 == game].tolist() == list(range(game, 48, 8))
        else:
            assert max(len(part) for part in games) > 2


@pytest.mark.parametrize("order", [shuffled, scattered])
def test_rows_are_shuffled_fairly(order: Callable[[jax.Array, int], jax.Array]) -> None:
    """Every row is in every part as often, whether or not there are bits to spare; another key is
    another order."""
    keys = jax.random.split(jax.random.key(0), 1000)
    for rows in (1, 2, 64) if order is scattered else (1, 7, 64):
        orders = np.asarray(jax.vmap(lambda key: order(key, rows))(keys))  # noqa: B023
        np.testing.assert_array_equal(np.sort(orders), np.tile(np.arange(rows), (1000, 1)))
    places = np.argsort(orders)  # [keys, rows]
    parts = np.stack([(places // 16 == part).mean(axis=0) for part in range(4)])  # [4, rows]
    assert np.abs(parts - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 1000)
    # Neighbours are in the same part as often as any two: 15 of 63 times.
    assert abs((places[:, 1:] // 16 == places[:, :-1] // 16).mean() - 15 / 63) < 0.01


def test_any_number_of_rows_is_shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many for bits to spare, and on a GPU."""
    key = jax.random.key(0)
    many = jax.eval_shape(lambda key: shuffled(key, MOST_SHUFFLED + 1), key)
    assert many.shape == (MOST_SHUFFLED + 1,)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for rows in (48, 2**15):
        assert sorted(shuffled(key, rows).tolist()) == list(range(rows))


ORDER = np.array([1, 2, 0])  # seat i of the renamed game is seat ORDER[i] of the other


class RenamedGame(StagHunt):
    """The same game with its starts renamed."""

    def init(self, key: jax.Array) -> StagHuntState:
        state = super().init(key)
        return replace(
            state,
            seats=state.seats[ORDER],
            present=state.present[ORDER],
            last_actions=state.last_actions[ORDER],
        )


@dataclass(frozen=True)
class RenamedSeating(Seating):
    """The same players with the keys of the seats renamed."""

    def act(
        self,
        params: tuple[Params, ...],
        memory: tuple[Memory, ...],
        views: View,
        keys: jax.Array,
        choice: jax.Array,
    ) -> tuple[tuple[Memory, ...], Act]:
        return super().act(params, memory, views, keys[ORDER], choice)


@dataclass(frozen=True)
class RenamedCompany(Lineup):
    """The same initial parameters, renamed."""

    def init(self, key: jax.Array) -> tuple[Params, ...]:
        renamed: tuple[Params, ...] = jax.tree.map(lambda leaf: leaf[ORDER], super().init(key))
        return renamed


def test_learning_commutes_with_renaming_the_seats() -> None:
    """With policies that are given what everyone did last: that is named by seats too."""
    learner = make_learner(small(TrainConfig(last_actions=True)), {})
    renamed = replace(
        learner,
        game=RenamedGame(GAME),
        lineup=RenamedCompany(RenamedSeating(learner.seating.players), {}),
    )
    states, metrics = [], []
    for one in (learner, renamed):
        state = jax.jit(one.init)(jax.random.key(4))
        update = jax.jit(one.update)
        for _ in range(5):
            state, found = update(state)
        states.append(jax.device_get(state))
        metrics.append(jax.device_get(found))
    plain, turned = states
    assert metrics[0]["episodes"] > 0
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a[ORDER], b), plain.params, turned.params
    )
    np.testing.assert_array_equal(plain.returns[:, ORDER], turned.returns)
    for name in ("return_sum", "policy_loss", "value_loss", "entropy", "gradient_norm"):
        np.testing.assert_array_equal(metrics[0][name][ORDER], metrics[1][name])
    assert any((a != a[ORDER]).any() for a in jax.tree.leaves(plain.params))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"minibatches": 3}, "divisor of --ppo.games times --ppo.unroll"),
        ({"gae_lambda": 1.5}, "--ppo.gae-lambda is 1.5"),
        ({"learning_rate": float("nan")}, "--ppo.learning-rate is nan"),
        ({"prosociality": -0.1}, "ppo.prosociality is -0.1"),
        ({"games": 0}, "ppo.games is 0"),
        ({"parameters": "some"}, "independent or shared"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        PPOConfig(**settings)
    assert words in str(error.value)
