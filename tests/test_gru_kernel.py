"""A memory over a sequence in one kernel: what a loop over its steps makes of it, and its slope."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tiny_hop_plus
from hopplus.config import (
    CoinConfig,
    GoalConfig,
    MemoryConfig,
    NetConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.learning.from_run import make_learner
from hopplus.models import gru_kernel, history
from hopplus.models.gru_kernel import GruKernel
from hopplus.models.nets import Gru
from hopplus.presets import PRESETS

HIDDEN, READS = 16, 5


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """What was found of this machine while it was taken for another is forgotten."""
    yield
    gru_kernel._fits.cache_clear()


def drawn(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng([seed, *shape]).normal(size=shape), jnp.float32)


def assert_near(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def one_step_at_a_time(
    weight: jax.Array, bias: jax.Array, memory: jax.Array, *steps: jax.Array
) -> jax.Array:
    like = Gru(READS, HIDDEN, jax.random.key(0))
    gru = eqx.tree_at(lambda one: (one.kept.weight, one.kept.bias), like, (weight, bias))

    def step(memory: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        given, fresh, known = now
        after = gru.advance(jnp.where(fresh, known, memory), given)
        return after, after

    return jax.lax.scan(step, memory, steps)[1]


def arrays(sets: int, rows: int, steps: int, fresh: float) -> tuple[jax.Array, ...]:
    """Weights of sets, and of each of their rows what a memory begins with and comes by."""
    flags = np.random.default_rng(1).random((sets, rows, steps)) < fresh
    return (
        drawn(sets, HIDDEN, 3 * HIDDEN) / 4,
        drawn(sets, 3 * HIDDEN),
        drawn(sets, rows, HIDDEN),
        drawn(sets, rows, steps, 3 * HIDDEN),
        jnp.asarray(flags),
        drawn(sets, rows, steps, HIDDEN),
    )


Way = Callable[..., jax.Array]
OVER_ROWS = (None, None, 0, 0, 0, 0)
CASES = {
    "some begin anew": (2, 5, 6, 0.3),
    "nobody does": (1, 3, 4, 0.0),
    "everybody does": (3, 2, 3, 1.0),
    "one step": (2, 3, 1, 0.5),
    "more rows than a program has": (2, 37, 3, 0.2),
}


@pytest.mark.parametrize("name", CASES)
def test_memories_and_slopes_are_those_of_a_loop(name: str) -> None:
    """By everything that numbers hang on: weights, where memories begin, what steps bring."""
    given = arrays(*CASES[name])
    weights = drawn(*given[5].shape[1:], seed=2)
    found = []
    for way in (one_step_at_a_time, GruKernel(HIDDEN, interpret=True)):

        def total(*own: jax.Array, way: Way = way) -> tuple[jax.Array, jax.Array]:
            after = jax.vmap(way, OVER_ROWS)(*own)
            return (after * weights).sum(), after

        slopes = jax.jit(jax.vmap(jax.value_and_grad(total, (0, 1, 2, 3, 5), has_aux=True)))
        found.append(slopes(*given))
    for one, other in zip(*map(jax.tree.leaves, found), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_sets_within_rows_are_kept_apart() -> None:
    """The other way round, with the same rows for all sets."""
    weight, bias, memory, *steps = arrays(3, 4, 5, 0.3)
    rows = [memory[0], *(one[0] for one in steps)]
    found = []
    for way in (one_step_at_a_time, GruKernel(HIDDEN, interpret=True)):
        over_sets = jax.vmap(way, (0, 0, *[None] * 4))
        found.append(jax.vmap(over_sets, (None, None, 0, 0, 0, 0))(weight, bias, *rows))
    assert found[1].shape == (4, 3, 5, HIDDEN)
    assert_near(*found)


def test_how_memories_change_forwards() -> None:
    weight, bias, *rows = arrays(1, 1, 6, 0.3)
    given = [weight[0], bias[0], *(one[0, 0] for one in rows)]
    changes = [drawn(*one.shape, seed=3) for one in given]
    moving = [n for n in range(6) if n != 4]

    def of(way: Way) -> Any:
        def moved(*own: jax.Array) -> jax.Array:
            return way(*own[:4], given[4], own[4])

        own = [given[n] for n in moving], [changes[n] for n in moving]
        return jax.jvp(moved, *own)[1]

    found = of(one_step_at_a_time), of(GruKernel(HIDDEN, interpret=True))
    assert_near(*found)


@pytest.mark.parametrize("which", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("begins", [True, False])
def test_each_slope_alone(which: int, begins: bool) -> None:
    """What is not asked for is left out: each way must stand by itself, also where the first step
    begins anew."""
    weight, bias, memory, given, fresh, known = arrays(1, 1, 5, 0.4)
    fresh = fresh.at[0, 0, 0].set(begins)
    own = [weight[0], bias[0], *(one[0, 0] for one in (memory, given, fresh, known))]
    found = []
    for way in (one_step_at_a_time, GruKernel(HIDDEN, interpret=True)):

        def total(one: jax.Array, way: Way = way) -> jax.Array:
            after = way(*own[:which], one, *own[which + 1 :])
            return (after * jnp.sin(jnp.arange(after.size)).reshape(after.shape)).sum()

        found.append(jax.grad(total)(own[which]))
    assert_near(*found)


@pytest.mark.parametrize("which", [0, 3])
def test_slopes_of_slopes(which: int) -> None:
    """Who learns by how another learns needs them."""
    weight, bias, *rows = arrays(1, 1, 4, 0.3)
    own = [weight[0], bias[0], *(one[0, 0] for one in rows)]
    along = drawn(*own[which].shape, seed=4)
    found = []
    for way in (one_step_at_a_time, GruKernel(HIDDEN, interpret=True)):

        def total(one: jax.Array, way: Way = way) -> jax.Array:
            return (way(*own[:which], one, *own[which + 1 :]) ** 2).sum()

        def steep(one: jax.Array, total: Any = total) -> jax.Array:
            return (jax.grad(total)(one) * along).sum()

        forwards = jax.jvp(jax.grad(total), (own[which],), (along,))[1]
        found.append((jax.grad(steep)(own[which]), forwards))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def small(preset: str, **changes: Any) -> TrainConfig:
    game = StagHuntConfig(size=3, seats=3, hares=2)
    config = replace(PRESETS[preset], game=game, net=NetConfig(hidden=16), **changes)
    ppo = replace(config.ppo, games=8, unroll=6, minibatches=2, epochs=2)
    return replace(config, ppo=ppo, steps=10_000)


def with_goals_about_each() -> TrainConfig:
    tiny, own = tiny_hop_plus.CONFIG, PRESETS["goal-trial"]
    goal = replace(own.goal, hidden=16, batch=2, fits=2, prior=replace(own.goal.prior, ahead=3))
    small_goal = replace(goal, prior=GoalConfig(size=4, net=NetConfig(hidden=16)))
    return replace(small("goal-trial"), goal=small_goal, opponent=replace(tiny.opponent, fits=1))


def minding_the_other() -> TrainConfig:
    """Half of what is learned by are slopes of slopes."""
    config = replace(PRESETS["lola"], memory=MemoryConfig(kind="episode", size=16))
    game = CoinConfig(size=3, horizon=6)
    ppo = replace(config.ppo, games=4, unroll=6)
    return replace(config, game=game, net=NetConfig(hidden=16), ppo=ppo, steps=10_000)


LEARNERS = {
    "LOLA with a memory": minding_the_other,
    "a policy's memory": lambda: small("ppo-memory", memory=MemoryConfig(kind="trial", size=16)),
    "of an episode": lambda: small("ppo-memory", memory=MemoryConfig(kind="episode", size=16)),
    "LIAM": lambda: small("liam", liam=replace(PRESETS["liam"].liam, hidden=16, batch=4)),
    "goals about each other": with_goals_about_each,
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_come_to_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, taken = make_learner(LEARNERS[name](), {}), []
    before = jax.jit(learner.init)(jax.random.key(0))
    plain, expected = jax.jit(learner.update)(before)

    def interpreted(hidden: int) -> GruKernel:
        taken.append(hidden)
        return GruKernel(hidden, interpret=True)

    monkeypatch.setattr(history, "kernel_for", interpreted)
    found, metrics = jax.jit(learner.update)(before)
    assert set(taken) == {16}
    assert set(metrics) == set(expected)
    for metric, value in expected.items():
        np.testing.assert_allclose(metrics[metric], value, atol=1e-5, rtol=1e-3, err_msg=metric)
    params = (one.params[learner.learning] for one in (before, found, plain))
    for begun, now, then in zip(*map(jax.tree.leaves, params), strict=True):
        moved = np.abs(np.asarray(then, np.float64) - begun).max()
        np.testing.assert_allclose(now, then, rtol=1e-4, atol=2e-3 * moved + 1e-9)


def lowered(function: Any, *shapes: Any) -> str:
    text: str = jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()
    return text


def test_a_gpu_is_given_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowered for one, which takes none to be there: a kernel for each way through the steps."""
    tried = []

    def has_room(function: Any, *shapes: Any) -> bool:
        tried.append(lowered(function, *shapes).count("xla.gpu.triton"))
        return True

    learner = make_learner(replace(LEARNERS["a policy's memory"](), net=NetConfig(hidden=8)), {})
    before = jax.eval_shape(learner.init, jax.random.key(0))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(gru_kernel, "has_room", has_room)
    assert not learner.policy_loss.fused  # or there were another kernel
    assert lowered(learner.update, before).count("xla.gpu.triton") >= 2
    assert tried == [2]


def test_equations_of_ones_own_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory that advances otherwise has no kernel."""

    class Halved(Gru):
        def advance(self, memory: jax.Array, given: jax.Array) -> jax.Array:
            return super().advance(memory, given) / 2

    monkeypatch.setattr(history, "kernel_for", GruKernel)
    brought = jnp.zeros((3, 48))
    kinds: list[tuple[Any, bool]] = [(Gru, True), (Halved, False)]
    for kind, taken in kinds:
        gru = kind(READS, HIDDEN, jax.random.key(0))
        assert (history._kernel(gru, brought) is not None) == taken
        assert history._kernel(gru, brought.astype(jnp.bfloat16)) is None


@pytest.mark.parametrize("why", ["a CPU", "no room", "too wide", "an odd size", "spread"])
def test_what_is_left_to_xla(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"too wide": 128, "an odd size": 48}
    if why != "a CPU":
        monkeypatch.setattr(gru_kernel, "on_gpu", lambda: True)
        monkeypatch.setattr(gru_kernel, "has_room", lambda *_: why != "no room")
        assert (gru_kernel.kernel_for(32) is None) == (why == "no room")
    monkeypatch.setattr(gru_kernel, "spread_by_xla", lambda: why == "spread")
    assert gru_kernel.kernel_for(sizes.get(why, 16)) is None
