"""LOLA: the objective against games whose values are known in closed form, and in the learner."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from hopplus.config import GameConfig, LolaConfig, MemoryConfig, TrainConfig, make_config
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.lola import dice_objective, lola_gain, look_ahead
from hopplus.learning.ppo import ppo_loss
from hopplus.presets import PRESETS
from tiny_hop_plus import PPO, TINY, begun, jit

# The iterated prisoner's dilemma by policies [5]: the logit of cooperating at first, and after CC,
# CD, DC, DD, the own action first.
DISCOUNT, STEPS, GAMES = 0.96, 6, 20_000
REWARD = jnp.array([-1.0, -3.0, 0.0, -2.0])  # after CC, CD, DC, DD
AS_OTHER = jnp.array([0, 1, 3, 2, 4])  # the same, with the other's action first


def chances(own: jax.Array, other: jax.Array) -> jax.Array:
    """[5, 4] of CC, CD, DC, DD, at first and after each of them."""
    one, two = jax.nn.sigmoid(own)[:, None], jax.nn.sigmoid(other[AS_OTHER])[:, None]
    return jnp.concatenate([one * two, one * (1 - two), (1 - one) * two, (1 - one) * (1 - two)], 1)


def endless_value(own: jax.Array, other: jax.Array) -> jax.Array:
    """[] the discounted return of a game without end."""
    first, then = jnp.split(chances(own, other), [1])
    return jnp.linalg.solve(jnp.eye(4) - DISCOUNT * then.T, first[0]) @ REWARD


def values(own: jax.Array, other: jax.Array) -> jax.Array:
    """[STEPS, 5] discounted returns from each step on, at first and after CC, CD, DC, DD."""
    table = [jnp.zeros(5)]
    for _ in range(STEPS):
        table.insert(0, chances(own, other) @ (REWARD + DISCOUNT * table[0][1:]))
    return jnp.stack(table[:-1])


def value(own: jax.Array, other: jax.Array) -> jax.Array:
    return values(own, other)[0, 0]


def turned(gain: Any) -> Any:
    """The other's gain, as a function of own and other parameters."""
    return lambda own, other: gain(other, own)


def sample(key: jax.Array, own: jax.Array, other: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What GAMES pairs knew before each step and what came of it, [STEPS, GAMES] each."""

    def step(known: jax.Array, key: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        came = jax.random.categorical(key, jnp.log(chances(own, other))[known])
        return came + 1, (known, came)

    return jax.lax.scan(step, jnp.zeros(GAMES, int), jax.random.split(key, STEPS))[1]


def sampled(
    known: jax.Array, came: jax.Array, own: jax.Array, other: jax.Array, swapped: bool
) -> Any:
    """The gain of the first seat, or of the second, by what was played: a function of both
    policies."""
    policies = (other, own) if swapped else (own, other)
    table = jax.lax.stop_gradient(values(*policies))
    seen = AS_OTHER[known] if swapped else known
    reward = REWARD[(AS_OTHER[came + 1] - 1) if swapped else came]
    after = [jnp.zeros(GAMES)]
    for t in reversed(range(STEPS)):
        after.insert(0, reward[t] + DISCOUNT * after[0])
    baseline = jnp.take_along_axis(table, seen, axis=1)
    worth = DISCOUNT ** jnp.arange(STEPS)[:, None]
    advantage = worth * (jnp.stack(after[:-1]) - baseline) / GAMES
    begins = jnp.zeros(known.shape, bool).at[0].set(True)

    def gain(own: jax.Array, other: jax.Array) -> jax.Array:
        return dice_objective(jnp.log(chances(own, other))[known, came], advantage, begins)

    return gain


@pytest.fixture(scope="module")
def by_play() -> tuple[Any, ...]:
    """Two policies; gradients [20, 5] of 20 batches of play: of the gain with respect to own and
    other, and of what a step of the other brings."""
    own, other = jnp.array([0.5, 1.0, -0.5, 0.3, -1.0]), jnp.array([-0.2, 0.8, -1.0, 0.6, 0.1])

    @jit
    def slopes(key: jax.Array) -> tuple[jax.Array, ...]:
        played = sample(key, own, other)
        gain, other_gain = (sampled(*played, own, other, swapped) for swapped in (False, True))

        def ahead(policy: jax.Array) -> jax.Array:
            return look_ahead(gain, other_gain, policy, other)

        return *jax.grad(gain, argnums=(0, 1))(own, other), jax.grad(ahead)(own)

    found = [slopes(key) for key in jax.random.split(jax.random.key(0), 20)]
    return own, other, *(np.stack(slope) for slope in zip(*found, strict=True))


def agree(found: np.ndarray, exact: jax.Array) -> None:
    """The mean over batches is within four standard errors, and these are small."""
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - np.asarray(exact)), 4 * error + 1e-5)
    assert np.linalg.norm(error) < 0.1 * np.linalg.norm(exact)


def test_the_first_derivative_is_that_of_the_value(by_play: tuple[Any, ...]) -> None:
    own, other, by_own, by_other, _ = by_play
    exact = jax.grad(value, argnums=(0, 1))(own, other)
    agree(by_own, exact[0])
    agree(by_other, exact[1])


def test_what_a_step_of_the_other_brings(by_play: tuple[Any, ...]) -> None:
    """Against the closed form of Letcher et al. (2019): with the gain V_i and the step grad_j V_j,
    (d_i d_j V_i) grad_j V_j + (d_i d_j V_j) grad_j V_i."""
    own, other, *_, found = by_play
    other_value = turned(value)
    mixed, other_mixed = (
        jax.jacobian(jax.grad(one), argnums=1)(own, other) for one in (value, other_value)
    )
    slope, other_slope = (jax.grad(one, argnums=1)(own, other) for one in (value, other_value))
    exact = mixed @ other_slope + other_mixed @ slope
    agree(found, exact)
    # That is how a step of some size begins.
    small = 1e-2

    def stepped(policy: jax.Array, step: float) -> jax.Array:
        return value(policy, other + step * jax.grad(other_value, argnums=1)(policy, other))

    both = [jax.grad(stepped)(own, step) for step in (small, -small)]
    np.testing.assert_allclose((both[0] - both[1]) / (2 * small), exact, rtol=0.02, atol=0.01)


def test_episodes_begin_anew() -> None:
    """Two episodes behind each other in one game are as two games."""
    chance = np.random.default_rng(0)
    log_prob, advantage = (jnp.asarray(chance.normal(size=(6, 2))) for _ in range(2))
    apart = jnp.zeros((6, 2), bool).at[0].set(True)

    def slopes(shape: tuple[int, int], begins: jax.Array) -> list[np.ndarray]:
        def turn(leaf: jax.Array) -> jax.Array:
            return leaf.T.reshape(shape[1], shape[0]).T

        def gain(log_prob: jax.Array) -> jax.Array:
            return dice_objective(turn(log_prob), turn(advantage), begins)

        return [jax.grad(gain)(log_prob), jax.hessian(gain)(log_prob)]

    behind = jnp.zeros((12, 1), bool).at[jnp.array([0, 6])].set(True)
    for one, two in zip(slopes((6, 2), apart), slopes((12, 1), behind), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
        assert np.abs(one).max() > 0.1


@pytest.mark.parametrize(("step", "low", "high"), [(0.0, -2.01, -1.95), (1.0, -1.15, -0.9)])
def test_who_minds_the_other_cooperates(step: float, low: float, high: float) -> None:
    """Foerster et al. (2018) have -1.06 a step with LOLA, and -1.98 with naive learners."""
    minded = turned(endless_value)

    def learned(pair: jax.Array) -> tuple[jax.Array, jax.Array]:
        def gain(own: jax.Array, other: jax.Array) -> jax.Array:
            return endless_value(own, other) + step * look_ahead(endless_value, minded, own, other)

        def move(pair: jax.Array, _: None) -> tuple[jax.Array, None]:
            return pair + jax.vmap(jax.grad(gain))(pair, pair[::-1]), None

        pair, _ = jax.lax.scan(move, pair, None, length=200)
        return (1 - DISCOUNT) * jax.vmap(endless_value)(pair, pair[::-1]), jax.nn.sigmoid(pair)

    begin = jax.random.normal(jax.random.key(0), (50, 2, 5))
    reward, cooperates = jax.device_get(jit(jax.vmap(learned))(begin))
    assert low < reward.mean() < high
    _, both, betrayed, _, neither = cooperates.mean(axis=(0, 1))
    assert neither < 0.3
    if step:  # tit for tat: as the other did
        assert both > 0.9
        assert betrayed < 0.45


# An episode ends in every update; from Stag-Hunt seats also leave.
COIN = make_config("coin-v1", size=3, coins=1, horizon=4)
STAG_HUNT = make_config("stag-hunt-v1", size=3, seats=2, hares=5, horizon=5)


def tiny(name: str, game: GameConfig, **ppo: Any) -> TrainConfig:
    made = PRESETS[name]
    small = replace(made.ppo, games=PPO.games, unroll=8, minibatches=1, **ppo)
    return replace(made, game=game, net=TINY, ppo=small, steps=20 * small.steps)


def begun_by_two(learner: Learner) -> Learning:
    return replace(begun(learner), returns=jnp.zeros((PPO.games, 2)))


def updated(config: TrainConfig) -> tuple[Any, Any]:
    """The policies after two updates, and the metrics of the last."""
    learner = make_learner(config, {})
    now, update = begun_by_two(learner), jit(learner.update)
    for _ in range(2):
        now, metrics = update(now)
    found: tuple[Any, Any] = jax.device_get((now.params[0].policy, metrics))
    return found


def test_it_trains_two_seats() -> None:
    """Unlike policy gradient, and both of them; without the other's step it is policy gradient,
    number for number. test_presets_on_games.py has Snowdrift."""
    rate = PRESETS["pg"].ppo.learning_rate
    minding, metrics = updated(tiny("lola", COIN, learning_rate=rate))
    for label, found in metrics.items():
        assert np.isfinite(found).all(), label
    assert metrics["lola/gain"].shape == (2,)
    assert (metrics["lola/gain"] != 0).all()
    plain, plain_metrics = updated(tiny("pg", COIN))
    assert "lola/gain" not in plain_metrics
    pairs = list(zip(jax.tree.leaves(minding), jax.tree.leaves(plain), strict=True))
    for seat in range(2):
        assert max(np.abs(one[seat] - two[seat]).max() for one, two in pairs) > rate / 10
    off, _ = updated(tiny("lola", COIN, learning_rate=rate, lola=LolaConfig()))
    jax.tree.map(np.testing.assert_array_equal, off, plain)


def test_with_memories() -> None:
    """What the other's step brings goes through what both remember: it is not the same where its
    memory is taken as it was, and not as its parameters have it."""
    config = replace(tiny("lola", COIN), memory=MemoryConfig(kind="episode", size=5))
    learner = make_learner(config, {})

    @jit
    def gains(now: Learning) -> tuple[jax.Array, jax.Array]:
        plays, trajectory, _ = learner._play(now.params, now.plays)
        sets = learner.improved(now.params[0])
        batch, key = learner.batch(now.params[0], plays, trajectory), jax.random.key(3)
        found = learner.improve(sets, now.optimiser, batch, now.updates, key)[2]["lola/gain"]
        rows = learner.auxiliary.draw_minibatches(jax.random.split(key, 1)[0], config.ppo, True)[0]
        pairs = [
            jax.tree.map(lambda leaf: leaf[seat], (sets.policy, batch))  # noqa: B023
            for seat in range(2)
        ]
        own, other = (
            (policy, jax.tree.map(lambda leaf: leaf[rows], part)) for policy, part in pairs
        )
        frozen = lola_gain(lambda p, b: jax.vmap(p)(b.view, b.inferred), own, other, 8)
        return found[0], frozen

    found, frozen = gains(begun_by_two(learner))
    assert found != 0
    assert abs(found - frozen) > 0.01 * abs(found)


def plain_gain(part: Any, scores: list[np.ndarray], seat: int) -> np.ndarray:
    """[P] the gradient of what a step of the other brings, step by step, from the gradients [T, B,
    P] of what each seat did. With s_t and s'_t those of a step, S_t and S'_t their sums before it
    in the episode, and G the gradient of the one gain with respect to the other's parameters, the
    other gain adds A_t (s_t (S'_t + s'_t) G + S_t (s'_t G)). The two are of different halves."""
    present, begins = (np.asarray(leaf).reshape(2, 8, -1) for leaf in (part.present, part.begins))
    error = np.asarray(part.returns - part.value).reshape(present.shape)
    scaled = [
        (e - e[there].mean()) / e[there].std() for e, there in zip(error, present, strict=True)
    ]
    own, other = (scores[one] * present[one][..., None] for one in (seat, 1 - seat))
    found = np.zeros(own.shape[-1])
    for half in (0, 1):
        advantages = []
        for one, number in ((seat, half), (1 - seat, 1 - half)):
            counts = present[one] & (np.arange(present.shape[2]) % 2 == number)
            advantages.append(np.where(counts, scaled[one], 0.0) / counts.sum() / np.sqrt(2))
        of_own, of_other = (np.einsum("tb,tbp->p", one, other) for one in advantages)
        for game in range(own.shape[1]):
            for t in range(8):
                if t == 0 or begins[seat, t, game]:
                    before, other_before = np.zeros_like(found), np.zeros_like(found)
                for advantage, slope in zip(advantages, (of_other, of_own), strict=True):
                    by_both = own[t, game] * ((other_before + other[t, game]) @ slope)
                    found += advantage[t, game] * (by_both + before * (other[t, game] @ slope))
                before, other_before = before + own[t, game], other_before + other[t, game]
    return found


def test_what_the_learner_descends() -> None:
    """By its gradient's norm: that of PPO's loss less the step times the gradient of the gain, with
    seats that leave, and episodes that end, on the way."""
    config = tiny("lola", STAG_HUNT, lola=LolaConfig(step=30.0))
    learner = make_learner(config, {})
    now, key = begun_by_two(learner), jax.random.key(3)

    @jit
    def improved(now: Learning) -> tuple[Any, Any]:
        plays, trajectory, _ = learner._play(now.params, now.plays)
        batch = learner.batch(now.params[0], plays, trajectory)
        # Who has left does nothing, also where a game would let it choose.
        legal = batch.view.legal | ~batch.present[..., None]
        batch = replace(batch, view=replace(batch.view, legal=legal))
        sets = learner.improved(now.params[0])
        metrics = learner.improve(sets, now.optimiser, batch, now.updates, key)[2]
        rows = learner.auxiliary.draw_minibatches(jax.random.split(key, 1)[0], config.ppo, True)
        return jax.tree.map(lambda leaf: leaf[:, rows[0]], batch), metrics

    batch, metrics = improved(now)
    policies = now.params[0].policy
    assert 0.1 < batch.present.mean() < 0.95
    assert batch.begins.reshape(2, 8, -1)[:, 1:].any()
    flat = [ravel_pytree(jax.tree.map(lambda leaf: leaf[seat], policies)) for seat in range(2)]  # noqa: B023

    @jit
    def slopes(weights: jax.Array, part: Any) -> tuple[jax.Array, jax.Array]:
        def rows(weights: jax.Array) -> Any:
            return jax.vmap(flat[0][1](weights))(part.view, part.inferred)

        def log_prob(weights: jax.Array) -> jax.Array:
            return jnp.take_along_axis(rows(weights)[0], part.action[:, None], axis=1)[:, 0]

        def loss(weights: jax.Array) -> jax.Array:
            logits, value = rows(weights)
            return ppo_loss(logits, value, part, config.ppo, jnp.float32(config.ppo.entropy))[0]

        return jax.jacobian(log_prob)(weights).reshape(8, -1, len(weights)), jax.grad(loss)(weights)

    parts = [jax.tree.map(lambda leaf: leaf[seat], batch) for seat in range(2)]  # noqa: B023
    found = [slopes(weights, part) for (weights, _), part in zip(flat, parts, strict=True)]
    scores, plain = zip(*found, strict=True)
    for seat in range(2):
        ahead = plain_gain(batch, [np.asarray(score) for score in scores], seat)
        expected = np.linalg.norm(plain[seat] - 30.0 * ahead)
        without = np.linalg.norm(plain[seat])
        assert abs(expected - without) > 0.02 * without
        np.testing.assert_allclose(metrics["gradient_norm"][seat], expected, rtol=2e-3)
