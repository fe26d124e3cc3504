"""What was learned plays only while it has shown to be better."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.evaluation.fine_tuning import FineTuning
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learning
from hopplus.learning.ppo import Batch
from hopplus.learning.safeguard import LEAST, Evidence, Safeguard, expected_gain, with_room
from hopplus.presets import PRESETS
from hopplus.types import View

CONFIG = TrainConfig(
    game=StagHuntConfig(size=3, seats=3, hares=2, horizon=12),
    net=NetConfig(hidden=8),
    ppo=PPOConfig(games=1, unroll=6, minibatches=1, learning_rate=0.1),
    seats="learn,learn,hare",
    trial=2**30,
)
KEPT = 4  # updates


def batch_of(
    probability: list[float], returns: list[float], present: list[bool], imagined: list[bool] | None
) -> Batch:
    rows = len(returns)
    none = jnp.zeros(rows)
    return Batch(
        view=View(*[none] * len(View.__dataclass_fields__)),
        inferred=jnp.zeros((rows, 0)),
        action=jnp.zeros(rows, jnp.int32),
        log_prob=jnp.log(jnp.asarray(probability)),
        value=none,
        reward=none,
        returns=jnp.asarray(returns),
        present=jnp.asarray(present),
        valued=jnp.asarray(present),
        imagined=None if imagined is None else jnp.asarray(imagined),
    )


def test_expected_gain_by_hand() -> None:
    """Of three steps that count, whose advantages are centred: 4, 1, 1 become 2, -1, -1."""
    present = [True, True, True, False, True]
    imagined = [False, False, False, False, True]
    batch = batch_of([0.5, 0.5, 0.1, 0.5, 0.5], [4.0, 1.0, 1.0, 100.0, 100.0], present, imagined)
    trained = jnp.log(jnp.array([0.5, 0.5, 0.1, 0.5, 0.5]))
    learned = jnp.log(jnp.array([0.6, 0.4, 0.9, 0.9, 0.9]))
    # Ratios differ by 0.2, -0.2, and 8, of which 1 counts.
    assert float(expected_gain(learned, trained, batch)) == pytest.approx(0.4 + 0.2 - 1, abs=1e-5)
    assert float(expected_gain(trained, trained, batch)) == 0
    real = replace(batch, imagined=None, present=batch.present & ~jnp.asarray(imagined))
    assert float(expected_gain(learned, trained, real)) == pytest.approx(-0.4, abs=1e-5)


def test_evidence_by_hand() -> None:
    gains = np.array([0.0, 2.0, 1.0, -1.0, 3.0, 1.0])
    zero = jnp.zeros(1)
    known = Evidence(None, zero, zero, zero)  # type: ignore[arg-type]
    for number, gain in enumerate(gains, 1):
        known = known.with_gain(jnp.array([gain]))
        low, high = known.bounds(2.0)
        if number < LEAST:
            assert (float(low[0]), float(high[0])) == (-np.inf, np.inf)
            continue
        seen = gains[:number]
        error = seen.std(ddof=1) / np.sqrt(number)
        np.testing.assert_allclose(low, [seen.mean() - 2 * error], rtol=1e-5)
        np.testing.assert_allclose(high, [seen.mean() + 2 * error], rtol=1e-5)


def test_what_goes_on_learning_online() -> None:
    """Of the models those that imagination needs, unless there is no safeguard."""
    goal, plus, hop = (FineTuning(PRESETS[name]) for name in ("goal", "hop-plus", "hop"))
    assert (goal.fitted, plus.fitted) == ([], ["opponent", "world"])
    assert set(replace(plus, caution=0.0).fitted) == {"opponent", "goal", "world"}
    assert not hop.guarded  # acts by a search
    assert hop.fitted == ["opponent"]
    assert hop.learns == "online, from its search; opponent"


def test_safeguard_plays_the_better_and_gives_up_the_worse() -> None:
    """Two seats that learn, of which one has shown to be better and the other to be worse."""
    learner = with_room(make_learner(CONFIG, {}), KEPT * CONFIG.ppo.steps)
    guard = Safeguard(learner, 1.0)
    update = jax.jit(guard.update)
    begun, nothing = jax.jit(lambda key: guard.begin(learner.init(key)))(jax.random.key(0))

    def policies(now: Learning) -> list[np.ndarray]:  # by leaf, [sets, ...]
        return jax.tree.leaves(learner.improved(now.params[learner.learning]))

    def same(one: list[np.ndarray], two: list[np.ndarray]) -> np.ndarray:
        """[sets] bool"""
        equal = [(a == b).reshape(2, -1).all(axis=1) for a, b in zip(one, two, strict=True)]
        return np.all(np.stack(equal), axis=0)

    now, known, lesson = update(begun, nothing)
    assert known.count.tolist() == [1, 1]
    assert known.mean.tolist() == [0, 0]  # it was the trained one
    assert not same(policies(now), policies(begun)).any()  # learns, whoever plays
    trained = learner.improved(guard.acting(now.params[learner.learning], known))
    assert same(jax.tree.leaves(trained), policies(begun)).all()

    # What is learned from is all that was played, each update's as a game of its own.
    later, _, second = update(now, known)
    kept = later.replay
    assert kept is not None
    assert kept.action.shape == (2, KEPT, CONFIG.ppo.steps)
    np.testing.assert_array_equal(kept.action[:, 0], lesson.batch.action)
    np.testing.assert_array_equal(kept.action[:, 1], second.batch.action)
    assert not kept.present[:, 2:].any()
    assert second.drawn is not None
    rows = second.drawn.action.reshape(2, CONFIG.ppo.steps, KEPT)
    np.testing.assert_array_equal(rows[..., 1], second.batch.action)

    sure = replace(known, count=jnp.full(2, 99.0), mean=jnp.array([5.0, -5.0]))
    acting = jax.tree.leaves(learner.improved(guard.acting(now.params[learner.learning], sure)))
    assert same(acting, policies(now)).tolist() == [True, False]
    assert same(acting, policies(begun)).tolist() == [False, True]
    after, left, _ = update(now, sure)
    assert left.count.tolist() == [100, 0]
    assert same(policies(after), policies(begun)).tolist() == [False, True]
    moments = jax.tree.leaves(after.optimiser)
    assert all((np.asarray(leaf)[1] == 0).all() for leaf in moments)
    assert any((np.asarray(leaf)[0] != 0).any() for leaf in moments)
