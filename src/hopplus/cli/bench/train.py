"""`hopplus bench train`: environment steps per second of learning, and the share of the machine it
uses."""

import time
from dataclasses import asdict, dataclass, field
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import TrainConfig
from hopplus.games import make_game
from hopplus.games.game import board_size
from hopplus.learning.compilation import first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner
from hopplus.report.page import Page, Section
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line


@dataclass(frozen=True)
class BenchTrain:
    """Environment steps per second of PPO, with everything an update does."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)
    seconds: float = 10.0
    """How long to measure, after compilation."""
    json: bool = False
    """Print JSON instead of lines."""

    def run(self) -> int:
        check_options(seconds=self.seconds)
        with Watchdog():
            speed = measure_train(self.config, self.seconds)
        return show(_page(self.config, speed), as_json=self.json)


@dataclass(frozen=True)
class TrainSpeed:
    """Steps per second of whole updates: play, views, returns, gradients, new episodes."""

    first_update_seconds: float  # compilation included
    rate: float  # the median over updates, all seeds together
    best_rate: float
    flops: float  # per second, of the networks' matrix products alone
    peak_flops: float  # per second, of one large matrix product on this machine


def measure_train(config: TrainConfig, seconds: float) -> TrainSpeed:
    """Train for about `seconds` after compilation, writing nothing."""
    learner = make_learner(config, {})
    began = time.perf_counter()
    learning, update = first_and_next(learner, config)
    learning, _ = jax.block_until_ready(update(learning))
    first = time.perf_counter() - began
    rates: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(rates) < 5:
        began = time.perf_counter()
        learning, _ = jax.block_until_ready(update(learning))
        rates.append(config.ppo.steps * config.seeds / (time.perf_counter() - began))
    rate = float(np.median(rates))
    per_step = products_per_step(learner)
    return TrainSpeed(first, rate, max(rates), 2 * per_step * rate, peak_flops())


def products_per_step(learner: Learner) -> float:
    """Multiplications of matrix products per environment step, by the shapes of the weights.

    Playing takes one forward pass. Each epoch takes another, the slope of every weight, and the
    slope of every layer's input but the first.
    """
    params = jax.eval_shape(learner.actor.init, jax.random.key(0))
    cells = learner.actor.shape[0] * learner.actor.shape[1]
    # A convolution's kernel is applied at every cell.
    weights = [leaf for leaf in jax.tree.leaves(params) if leaf.ndim > 1]
    sizes = [leaf.size * (cells if leaf.ndim == 4 else 1) for leaf in weights]
    forward, first = sum(sizes), sizes[0]
    epochs = learner.config.epochs
    return float(len(learner.seats) * (forward + epochs * (3 * forward - first)))


def peak_flops() -> float:
    """Floating-point operations per second of large matrix products, 32-bit arrays as here.

    At JAX's default precision, as the networks use it. Several in one program, so that starting it
    does not count.
    """
    size, products = (2048, 4) if jax.default_backend() == "cpu" else (8192, 32)
    matrix = jnp.full((size, size), 1 / size)
    chain = jax.jit(lambda a: jax.lax.fori_loop(0, products, lambda _, x: x @ a, a))
    chain(matrix).block_until_ready()
    spent = []
    for _ in range(5):
        began = time.perf_counter()
        chain(matrix).block_until_ready()
        spent.append(time.perf_counter() - began)
    return float(2 * products * size**3 / min(spent))


def _page(c: TrainConfig, speed: TrainSpeed) -> Page:
    machine = device_line()
    title = (
        f"PPO, {c.game.name} {board_size(make_game(c.game))}, {c.game.seats} seats,"
        f" {c.ppo.games:,} games, {c.seeds} seeds, {machine}"
    )
    products = (
        f"{speed.flops / 1e9:,.1f} GFLOP/s, {speed.flops / speed.peak_flops:.1%} of the"
        f" {speed.peak_flops / 1e9:,.0f} that one large product reaches here"
    )
    rows = [
        ["first update", f"{speed.first_update_seconds:,.1f} s, compilation included"],
        ["then", f"{speed.rate:,.0f} steps/s (best {speed.best_rate:,.0f})"],
        ["matrix products", products],
    ]
    payload = {"machine": machine, **asdict(speed)}
    return Page(title, "", sections=[Section(title, rows=rows)], payload=payload)
