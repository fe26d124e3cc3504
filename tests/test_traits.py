"""Traits of the others: worked by hand, held against exact integration, and learned in play."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError, TraitsConfig, TrainConfig
from hopplus.players.context.registry import make_context
from hopplus.players.context.traits import TraitsContext, TraitsMemory
from hopplus.types import View
from tiny_hop_plus import GAME, jit
from tiny_search import GAME_MADE

RIGHT, STAY = 3, 4
CONTEXT = TraitsContext(GAME, TraitsConfig(size=2, drift=0.0))
OTHERS = GAME.seats - 1


class Loadings(eqx.Module):
    """In the place of opponent models: log-odds that are linear in the traits."""

    weight: jax.Array  # [N - 1, D, A]


# The first trait makes an other go right rather than stay; the second means nothing.
WEIGHT = jnp.zeros((OTHERS, 2, 7)).at[:, 0, RIGHT].set(1.0)


@pytest.fixture(autouse=True)
def linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the others that read nothing but traits."""

    def logits(models: Loadings, view: View, legal: jax.Array, goals: jax.Array) -> jax.Array:
        scores = jnp.einsum("jd,jda->ja", goals, models.weight)
        return jax.nn.log_softmax(jnp.where(legal[1:], scores, -jnp.inf))

    monkeypatch.setattr("hopplus.players.context.traits.others_logits", logits)


def board() -> Any:
    """Nobody can hunt, and the first other is in the middle."""
    return GAME_MADE.parse(". 0 S\n. 1 h\nh 2 .")


def watch(context: TraitsContext, memory: TraitsMemory, acts: list[int]) -> TraitsMemory:
    """What is remembered after the first other was seen to do these, one after the other, each time
    on the same board; the second is seen to do nothing."""
    view = GAME_MADE.view(board(), 0)
    models: Any = Loadings(WEIGHT)
    memory, _ = context.infer(models, memory, view)
    for act in acts:
        last = jnp.array([STAY, act] + [-1] * (OTHERS - 1))
        memory, _ = context.infer(models, memory, replace(view, last_actions=last))
    return memory


def test_an_act_is_worked_by_hand() -> None:
    """Of A legal actions all are as likely: going right has the slope 1 - 1 / A."""
    legal = GAME_MADE.view(board(), 1).legal
    count = int(legal.sum())
    assert legal[RIGHT] and legal[STAY]
    memory = watch(CONTEXT, CONTEXT.start(), [RIGHT])
    slope = 1 - 1 / count
    np.testing.assert_allclose(memory.mean[0], [slope / (1 + slope**2), 0.0], rtol=1e-5)
    told = slope**2 / count + (count - 1) / count**3  # the other actions' slopes are -1 / A
    np.testing.assert_allclose(memory.variance[0], [1 / (1 + told), 1.0], rtol=1e-5)
    away = watch(CONTEXT, CONTEXT.start(), [STAY])
    step = -1 / count
    np.testing.assert_allclose(away.mean[0], [step / (1 + step**2), 0.0], rtol=1e-5)


def test_what_nobody_did_tells_nothing() -> None:
    memory = watch(CONTEXT, CONTEXT.start(), [RIGHT, RIGHT])
    np.testing.assert_array_equal(memory.mean[1:], 0.0)
    np.testing.assert_array_equal(memory.variance[1:], 1.0)


@pytest.mark.parametrize("rights", [2, 10, 18])
def test_it_comes_close_to_exact_integration(rights: int) -> None:
    """Twenty acts of one other, some of them to the right: the posterior of its trait by numbers."""
    acts = [RIGHT if (n * rights) % 20 < rights else STAY for n in range(20)]
    assert acts.count(RIGHT) == rights
    memory = watch(CONTEXT, CONTEXT.start(), acts)
    others = int(GAME_MADE.view(board(), 1).legal.sum()) - 1
    grid = np.linspace(-6, 6, 4001)
    log = -(grid**2) / 2 + rights * grid - 20 * np.log(np.exp(grid) + others)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = (weight * grid).sum()
    deviation = np.sqrt((weight * (grid - mean) ** 2).sum())
    assert abs(memory.mean[0, 0] - mean) < 0.5 * deviation
    np.testing.assert_allclose(np.sqrt(memory.variance[0, 0]), deviation, rtol=0.25)


def test_a_stranger_is_never_decided_by_one_act() -> None:
    """However steep the models are, an act moves the traits by half of their spread at most."""
    view, models = GAME_MADE.view(board(), 0), Loadings(1000 * WEIGHT)
    memory, _ = CONTEXT.infer(models, CONTEXT.start(), view)  # type: ignore[arg-type]
    last = replace(view, last_actions=jnp.array([STAY, RIGHT] + [-1] * (OTHERS - 1)))
    memory, told = CONTEXT.infer(models, memory, last)  # type: ignore[arg-type]
    assert 0 < abs(memory.mean[0, 0]) <= 0.5
    assert np.isfinite(told).all()
    assert np.isfinite(memory.slopes).all()


def test_what_is_known_lasts_and_fades() -> None:
    """From episode to episode of a trial, but nothing is expected before a view; and what is told
    of somebody who has drifted is less."""
    memory = watch(CONTEXT, CONTEXT.start(), [RIGHT] * 5)
    view = GAME_MADE.view(board(), 0)
    assert memory.mean[0, 0] > 0.5
    after = CONTEXT.carry(memory, view)
    np.testing.assert_array_equal(after.mean, memory.mean)
    np.testing.assert_array_equal(after.slopes, 0.0)
    seen = replace(view, last_actions=jnp.full(GAME.seats, RIGHT))
    same, _ = CONTEXT.infer(Loadings(WEIGHT), after, seen)  # type: ignore[arg-type]
    np.testing.assert_array_equal(same.mean, memory.mean)
    within = TraitsContext(GAME, TraitsConfig(size=2, drift=0.0, across=False))
    np.testing.assert_array_equal(within.carry(memory, view).mean, 0.0)
    assert CONTEXT.carries
    assert not within.carries
    drifting = TraitsContext(GAME, TraitsConfig(size=2, drift=0.2))
    lost = watch(drifting, drifting.start(), [RIGHT] * 5)
    assert lost.variance[0, 0] > memory.variance[0, 0]
    np.testing.assert_allclose(lost.variance[0, 1], 1.0, rtol=1e-6)  # as wide as at first, not more


def test_wider_traits_are_told_by_their_own_measure() -> None:
    wide = TraitsContext(GAME, TraitsConfig(size=2, drift=0.0, spread=3.0))
    memory, told = wide.infer(
        Loadings(WEIGHT),  # type: ignore[arg-type]
        wide.start(),
        GAME_MADE.view(board(), 0),
    )
    assert told.shape == (wide.size,)
    np.testing.assert_allclose(told.reshape(OTHERS, 4), [[0, 0, 1, 1]] * OTHERS)
    memory = watch(wide, wide.start(), [RIGHT] * 5)
    context = jnp.concatenate([memory.mean / 3, memory.variance / 9], axis=1).reshape(-1)
    np.testing.assert_allclose(wide.about_others(context), memory.mean, rtol=1e-6)
    narrow = watch(CONTEXT, CONTEXT.start(), [RIGHT] * 5)
    assert memory.mean[0, 0] > narrow.mean[0, 0]


def test_models_are_told_one_thing() -> None:
    for parts in (("opponent", "goal", "traits"), ("opponent", "belief", "traits")):
        with pytest.raises(ConfigError, match="only one"):
            TrainConfig(game=GAME, parts=parts)
    with pytest.raises(ConfigError, match="needs opponent"):
        TrainConfig(game=GAME, parts=("traits",))
    config = TrainConfig(game=GAME, parts=("opponent", "traits"))
    assert isinstance(make_context(GAME_MADE, config), TraitsContext)
