"""The learner: every preset runs, nobody learns from another's play, and no seat is special."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.games.stag_hunt import StagHunt, StagHuntState
from hopplus.learning.company import Company
from hopplus.learning.learner import Learner, Learning, minibatch_rows
from hopplus.learning.restore import make_learner
from hopplus.players.seating import Seating
from hopplus.presets import ABOUT, PRESETS
from hopplus.types import Act, Memory, Params, View

SMALL: dict[str, Any] = {"games": 16, "unroll": 8, "minibatches": 2, "epochs": 2}
GAME = StagHuntConfig(size=3, seats=3, hares=2)


def small(config: TrainConfig, **ppo: Any) -> TrainConfig:
    return replace(
        config,
        game=GAME,
        net=replace(config.net, hidden=16),
        ppo=replace(config.ppo, **SMALL, **ppo),
        steps=10_000,
    )


def two_updates(learner: Learner) -> tuple[Learning, Learning, dict[str, Any]]:
    before = jax.jit(learner.init)(jax.random.key(0))
    update = jax.jit(learner.update)
    after, _ = update(before)
    after, metrics = update(after)
    return before, after, jax.device_get(metrics)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_learns(name: str) -> None:
    assert set(ABOUT) == set(PRESETS)
    learner = make_learner(small(PRESETS[name]), {})
    before, after, metrics = two_updates(learner)
    for value in metrics.values():
        assert np.isfinite(value).all()
    changed = jax.tree.map(lambda a, b: bool((a != b).any()), before.params, after.params)
    assert all(jax.tree.leaves(changed))
    assert metrics["return_sum"].shape == (3,)
    sets = 1 if PRESETS[name].ppo.parameters == "shared" else 3
    assert metrics["value_loss"].shape == (sets,)


@pytest.mark.parametrize(
    "change",
    [
        {"anneal": False, "entropy_end": 0.0, "mix": 1.0},
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
    from hopplus.learning.rollout import rollout

    @jax.jit
    def improved(bonus: jax.Array) -> Any:
        plays, played = rollout(learner.game, learner.seating, now.params, now.plays, 8)
        batch = learner.batch(now.params[0], plays, played)
        batch = replace(batch, returns=batch.returns + bonus[:, None] * batch.log_prob)
        return learner.improve(now.params[0], now.optimiser, batch, now.updates, jax.random.key(1))[
            0
        ]

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
    from hopplus.games.game import views
    from hopplus.learning.rollout import rollout

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
        params = jax.tree.map(lambda leaf: leaf[seat], now.params[0])  # noqa: B023
        logits, value = jax.vmap(params)(jax.tree.map(lambda leaf: leaf[seat], batch.view))  # noqa: B023
        np.testing.assert_allclose(value, batch.value[seat], rtol=1e-4, atol=1e-5)
        chosen = np.take_along_axis(np.asarray(logits), batch.action[seat][:, None], 1)[:, 0]
        np.testing.assert_allclose(chosen, batch.log_prob[seat], rtol=1e-4, atol=1e-5)


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
    ) -> tuple[tuple[Memory, ...], Act]:
        return super().act(params, memory, views, keys[ORDER])


@dataclass(frozen=True)
class RenamedCompany(Company):
    """The same initial parameters, renamed."""

    def init(self, key: jax.Array) -> tuple[Params, ...]:
        renamed: tuple[Params, ...] = jax.tree.map(lambda leaf: leaf[ORDER], super().init(key))
        return renamed


def test_learning_commutes_with_renaming_the_seats() -> None:
    learner = make_learner(small(TrainConfig()), {})
    renamed = replace(
        learner,
        game=RenamedGame(GAME),
        company=RenamedCompany(RenamedSeating(learner.seating.players), {}),
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
        ({"minibatches": 3}, "divisor of ppo.games * ppo.unroll"),
        ({"mix": 1.5}, "ppo.mix is 1.5"),
        ({"learning_rate": float("nan")}, "ppo.learning_rate is nan"),
        ({"prosociality": -0.1}, "ppo.prosociality is -0.1"),
        ({"games": 0}, "ppo.games is 0"),
        ({"parameters": "some"}, "independent or shared"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], words: str) -> None:
    from hopplus.config import ConfigError

    with pytest.raises(ConfigError) as error:
        PPOConfig(**settings)
    assert words in str(error.value)
