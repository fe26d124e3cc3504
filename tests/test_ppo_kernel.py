"""The slope of PPO's loss in one kernel: what XLA makes of the same loss, whatever the network."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tiny_hop_plus
from hopplus.config import ConfigError, NetConfig, StagHuntConfig, TrainConfig
from hopplus.games.grid import STAY
from hopplus.learning import ppo_kernel
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.ppo import Batch
from hopplus.learning.ppo_kernel import WIDEST
from hopplus.models import history, nets
from hopplus.models.nets import weighed
from hopplus.models.part import Metrics
from hopplus.presets import PRESETS

NET = NetConfig(hidden=16)
SMALL: dict[str, Any] = {"games": 16, "unroll": 8, "minibatches": 2, "epochs": 2}


def small(preset: str, **changes: Any) -> TrainConfig:
    config = replace(PRESETS[preset], game=StagHuntConfig(size=3, seats=2, hares=2), net=NET)
    ppo = replace(config.ppo, **SMALL)
    return replace(config, ppo=ppo, steps=10_000, **changes)


def with_gradient(config: TrainConfig, gradient: Any) -> TrainConfig:
    return replace(config, ppo=replace(config.ppo, gradient=gradient))


def updated(config: TrainConfig, gradient: Any) -> tuple[Learning, Learning, Metrics]:
    """Before an update, after it, and its metrics."""
    learner = make_learner(with_gradient(config, gradient), {})
    assert learner.policy_loss.fused == (gradient == "fused")
    before = jax.jit(learner.init)(jax.random.key(0))
    return before, *jax.jit(learner.update)(before)


HOP_PLUS = replace(
    tiny_hop_plus.CONFIG,
    net=NET,
    # So many steps ahead that rows come in sixteens, which a GPU's products take.
    imagine=replace(tiny_hop_plus.CONFIG.imagine, warm_up=0, gate=1.0, horizon=8),
)
CASES = {
    "all inside": small("ppo"),
    "one set, three layers": small("ppo-shared", net=replace(NET, layers=3)),
    "one layer": small("ppo", net=replace(NET, layers=1)),
    "more hidden than heads": small("ppo", net=replace(NET, hidden=32)),
    "too many inputs": small("ppo", game=StagHuntConfig(size=5, seats=2)),
    "not flat": small("ppo", net=replace(NET, kind="centred")),
    "a kernel before it": small("ppo", net=replace(NET, kind="conv", channels=2)),
    "a memory": small("ppo-memory"),
}


@pytest.mark.parametrize("name", CASES)
def test_it_comes_to_what_xla_makes_of_the_loss(name: str) -> None:
    """After an update of four steps or more, each from where the last one led."""
    (before, fused, metrics), (_, plain, expected) = (
        updated(CASES[name], gradient) for gradient in ("fused", "plain")
    )
    assert_alike(*((one.params, one.optimiser) for one in (before, fused, plain)))
    assert_alike_metrics(metrics, expected)


def assert_alike(before: Any, one: Any, other: Any) -> None:
    """Held to how far they have moved: what has hardly moved must not pass for the same."""
    assert str(jax.tree.structure(one)) == str(jax.tree.structure(other))
    for begun, now, then in zip(*map(jax.tree.leaves, (before, one, other)), strict=True):
        moved = np.abs(np.asarray(then, np.float64) - begun).max()
        np.testing.assert_allclose(now, then, rtol=1e-4, atol=1e-3 * moved + 1e-9)


def assert_alike_metrics(metrics: Metrics, expected: Metrics) -> None:
    assert set(metrics) == set(expected)
    for metric, value in expected.items():
        np.testing.assert_allclose(metrics[metric], value, atol=1e-5, rtol=1e-3, err_msg=metric)


def rows_of(learner: Learner) -> tuple[Learning, Batch]:
    """A beginning, and rows as it learns from, drawn at random."""
    shapes = jax.eval_shape(learner.update_shown, jax.eval_shape(learner.init, jax.random.key(0)))
    numbers = np.random.default_rng(0)

    def drawn(leaf: Any) -> jax.Array:
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.asarray(numbers.normal(size=leaf.shape), leaf.dtype)
        return jnp.asarray(numbers.integers(0, 2, leaf.shape), leaf.dtype)

    batch: Batch = jax.tree.map(drawn, shapes[2].batch)
    legal = batch.view.legal.at[..., STAY].set(True)
    view = replace(batch.view, legal=legal)
    action = jnp.argmax(legal, axis=-1).astype(jnp.int32)
    batch = replace(batch, view=view, action=action, log_prob=-1 - 0.1 * batch.log_prob**2)
    return jax.jit(learner.init)(jax.random.key(0)), batch


def test_imagined_rows_and_goals() -> None:
    """Rows of both kinds, in an update's steps: each kind with advantages and means of its own."""
    found = []
    for gradient in ("fused", "plain"):
        learner = make_learner(with_gradient(HOP_PLUS, gradient), {})
        now, batch = rows_of(learner)
        assert batch.imagined is not None
        assert 0 < batch.imagined.sum() < batch.imagined.size
        sets = learner.improved(now.params[learner.learning])
        given = (sets, now.optimiser, batch, jnp.int32(3), jax.random.key(1))
        found.append((sets, jax.jit(learner.improve)(*given)))
    (before, fused), (_, plain) = found
    assert_alike(before, fused[0], plain[0])
    assert "imagined/clipped" in plain[2]
    assert_alike_metrics(fused[2], plain[2])


def test_rows_that_do_not_count_leave_no_trace() -> None:
    """Half of them have left, and nothing is legal for them: whatever else they hold, what is
    learned is the same, and the same as by XLA."""
    found = []
    for gradient, kept in (("fused", 0.0), ("fused", 7.0), ("plain", 0.0)):
        learner = make_learner(with_gradient(CASES["all inside"], gradient), {})
        now, batch = rows_of(learner)
        counts = (jnp.arange(batch.present.size) % 2 == 0).reshape(batch.present.shape)
        batch = replace(
            batch,
            present=batch.present & counts,
            valued=batch.valued & counts,
            view=replace(batch.view, legal=batch.view.legal & counts[..., None]),
            returns=jnp.where(counts, batch.returns, kept),
            value=jnp.where(counts, batch.value, 1 - kept),
            log_prob=jnp.where(counts, batch.log_prob, -kept),
        )
        assert 0 < batch.present.sum() < batch.present.size
        sets = learner.improved(now.params[learner.learning])
        given = (sets, now.optimiser, batch, jnp.int32(3), jax.random.key(1))
        found.append((sets, jax.jit(learner.improve)(*given)))
    (before, fused), (_, other), (_, plain) = found
    assert_alike(before, fused[0], plain[0])
    assert_alike_metrics(fused[2], plain[2])
    for one, same in zip(*map(jax.tree.leaves, (fused, other)), strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"net": replace(NET, hidden=24)}, f"power of two from 16 to {WIDEST}"),
        ({"net": replace(NET, hidden=128)}, f"power of two from 16 to {WIDEST}"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is_asked_for(
    change: dict[str, Any], words: str
) -> None:
    config = replace(small("ppo"), **change)
    assert make_learner(config, {}).policy_loss.lacking
    with pytest.raises(ConfigError, match=f"--ppo.gradient fused needs .*{words}"):
        make_learner(with_gradient(config, "fused"), {})


def test_parts_have_one_product() -> None:
    """Whether one array is made of them first or not."""
    weight = jax.random.normal(jax.random.key(0), (9, 4))
    for more in (1, 3):
        inputs = (jnp.arange(9.0 - more), jnp.full(more, 7.0))
        whole = weighed(inputs, weight, apart=False)
        np.testing.assert_allclose(whole, np.append(*inputs) @ weight, rtol=1e-5)
        np.testing.assert_allclose(weighed(inputs, weight, apart=True), whole, rtol=1e-5)


def test_a_gpu_is_given_inputs_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without making one array of them first; a CPU is given one."""
    asked: list[bool] = []

    def noted(inputs: nets.Inputs, weight: jax.Array, *, apart: bool) -> jax.Array:
        asked.append(apart)
        return weighed(inputs, weight, apart=apart)

    monkeypatch.setattr(nets, "weighed", noted)
    body = nets.make_body((2, 2, 3), NetConfig(hidden=8), jax.random.key(0))
    for backend in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda: backend)  # noqa: B023
        nets.features_of(body, (jnp.zeros(12), jnp.zeros(1)))
    assert asked == [False, True]


@pytest.mark.parametrize("name", ["all inside", "too many inputs", "a memory"])
def test_a_gpu_is_given_the_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowered for one, which takes none to be there: nothing in it is unknown to its compiler."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(ppo_kernel, "has_room", lambda *_: True)
    monkeypatch.setattr(history, "kernel_for", lambda _: None)  # a memory has one of its own
    learner = make_learner(CASES[name], {})
    assert learner.policy_loss.fused
    traced = jax.jit(learner.update).trace(jax.eval_shape(learner.init, jax.random.key(0)))
    assert "xla.gpu.triton" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_where_there_is_no_room_xla_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(ppo_kernel, "has_room", lambda *_: False)
    config = CASES["all inside"]
    learner = make_learner(config, {})
    before = jax.eval_shape(learner.init, jax.random.key(0))
    text = jax.jit(learner.update).trace(before).lower(lowering_platforms=("cuda",)).as_text()
    assert "xla.gpu.triton" not in text
    learner = make_learner(with_gradient(config, "fused"), {})
    with pytest.raises(ConfigError, match="no room"):
        jax.eval_shape(learner.update, before)


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """What was found of this machine while it was taken for another is forgotten."""
    yield
    ppo_kernel._fits.cache_clear()


def test_rows_in_other_numbers_are_left_to_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in sixteens, or in a prime number of blocks, which one program would have alone."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(ppo_kernel, "has_room", lambda *_: True)
    kernel = make_learner(CASES["all inside"], {}).policy_loss.kernel
    assert kernel.block(4096) == 128  # in 32 programs
    assert kernel.block(560) == 16
    assert kernel.block(16 * 131) is None
    assert kernel.block(16 * 131 * 4) is None
    assert kernel.block(1000) is None
    config = CASES["all inside"]
    config = with_gradient(
        replace(config, ppo=replace(config.ppo, games=9, minibatches=1)), "fused"
    )
    learner = make_learner(config, {})
    with pytest.raises(ConfigError, match="cannot share 72 rows"):
        jax.eval_shape(learner.update, jax.eval_shape(learner.init, jax.random.key(0)))


def test_a_kernel_is_not_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are scattered over devices are computed by what XLA can spread."""
    learner = make_learner(with_gradient(CASES["all inside"], "fused"), {})
    monkeypatch.setattr("hopplus.learning.policy_loss.spread_by_xla", lambda: True)
    with pytest.raises(ConfigError, match="a seed on one device"):
        jax.eval_shape(learner.update, jax.eval_shape(learner.init, jax.random.key(0)))
