"""`hopplus bench train` and `hopplus bench update`: environment steps per second of learning, and
the share of the machine it uses; what an update of HOP+ costs relative to PPO on as much play."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from hopplus.cli.paged import show
from hopplus.cli.reading.devices import TrainedOn
from hopplus.cli.reading.options import check_options
from hopplus.config import GameConfig, TrainConfig, default_game
from hopplus.games import make_game
from hopplus.games.game import board_size
from hopplus.learning.compilation import Pacing, first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner
from hopplus.presets import PRESETS
from hopplus.report.page import Column, Page, Section, make_table
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line

Pair = tuple[TrainConfig, TrainConfig]


@dataclass(frozen=True)
class BenchTrain:
    """Environment steps per second of PPO, with everything an update does."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)
    seconds: float = 10.0
    """How long to measure, after compilation."""
    on: Annotated[TrainedOn, tyro.conf.arg(name="")] = field(default_factory=TrainedOn)
    json: bool = False
    """Print JSON instead of lines."""

    def run(self) -> int:
        check_options(seconds=self.seconds)
        with self.on.used(self.config), Watchdog():
            speed = measure_train(self.config, self.seconds)
        return show(_speed_page(self.config, speed), as_json=self.json)


@dataclass(frozen=True)
class TrainSpeed:
    """Steps per second of whole updates: play, views, returns, gradients, new episodes."""

    first_update_seconds: float  # compilation included
    rate: float  # the median over dispatches, all seeds together
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
    pacing, until = Pacing(), time.perf_counter() + seconds
    while time.perf_counter() < until or len(rates) < 5:
        began = time.perf_counter()
        count = pacing.count
        learning, _ = jax.block_until_ready(update.several(learning, count))
        spent = time.perf_counter() - began
        pacing.took(count, spent)
        rates.append(count * config.ppo.steps * config.seeds / spent)
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


def _speed_page(c: TrainConfig, speed: TrainSpeed) -> Page:
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


@dataclass(frozen=True)
class BenchUpdate:
    """What an update of HOP+ costs relative to one of PPO on as much play, and how both grow."""

    game: GameConfig = field(default_factory=default_game)
    rounds: int = 7
    """Rounds of four updates each; the median counts."""
    curve: bool = False
    """Also vary the games, the seats and the imagined steps."""
    on: Annotated[TrainedOn, tyro.conf.arg(name="")] = field(default_factory=TrainedOn)
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(rounds=self.rounds)
        ppo, hop_plus = (replace(PRESETS[name], game=self.game) for name in ("ppo", "hop-plus"))
        wanted = [("defaults", ppo.ppo.steps, (ppo, hop_plus))]
        wanted += variations(ppo, hop_plus) if self.curve else ()
        costs = []
        pairs = [config for _, _, pair in wanted for config in pair]
        with (
            self.on.used(*pairs),
            Progress("measuring", len(wanted), "pairs", first="busy with the first") as progress,
        ):
            for what, size, pair in wanted:
                costs.append(measure_update(what, size, *pair, self.rounds))
                progress.advance(1, f"{what} {size:,}: ratio {costs[-1].ratio:.2f}")
        return show(_cost_page(costs), as_json=self.json)


@dataclass(frozen=True)
class UpdateCost:
    """Mean seconds of an update, both measured in turn."""

    what: str  # what is varied
    size: int
    ppo: float
    other: float
    ratio: float  # of the two


class Updating:
    """A learner that goes on, update by update, once nothing is too early any more."""

    def __init__(self, config: TrainConfig) -> None:
        config = replace(config, imagine=replace(config.imagine, warm_up=0))
        learner = make_learner(config, {})
        self._learning, self._update = first_and_next(learner, config)
        self.advance(2)

    def advance(self, updates: int) -> float:
        """Seconds of so many updates, in one dispatch."""
        began = time.perf_counter()
        found = self._update.several(self._learning, updates)
        self._learning, _ = jax.block_until_ready(found)
        return time.perf_counter() - began


def measure_update(
    what: str, size: int, ppo: TrainConfig, other: TrainConfig, rounds: int, updates: int = 4
) -> UpdateCost:
    """Rounds of a few updates of one and then the other, so that a machine's moods hit both alike;
    the medians over rounds."""
    runs = [Updating(ppo), Updating(other)]
    spent = np.array([[run.advance(updates) for run in runs] for _ in range(rounds)])
    one, two = (float(mean) for mean in np.median(spent, axis=0) / updates)
    return UpdateCost(what, size, one, two, two / one)


def variations(ppo: TrainConfig, other: TrainConfig) -> Iterator[tuple[str, int, Pair]]:
    """What is varied, how much of it there is, and both: more games, seats, imagined steps."""
    for games in (64, 128, 256, 512):
        one, two = (replace(c, ppo=replace(c.ppo, games=games)) for c in (ppo, other))
        yield "games", games, (one, two)
    for seats in (2, 4, 6, 8):
        game: Any = ppo.game
        one, two = (replace(c, game=replace(game, seats=seats, size=5)) for c in (ppo, other))
        yield "seats", seats, (one, two)
    for steps in (1, 2, 4):  # imagined ones for each real one
        imagine = replace(other.imagine, real_ratio=1 / (1 + steps))
        yield "imagined", steps, (ppo, replace(other, imagine=imagine))


def _cost_page(costs: list[UpdateCost]) -> Page:
    machine = device_line()
    title = f"an update, without compilation; {machine}"
    columns: dict[str | Column, Callable[[UpdateCost], Any]] = {
        "": lambda cost: cost.what,
        "size": lambda cost: cost.size,
        Column("ppo, ms", ",.1f"): lambda cost: 1000 * cost.ppo,
        Column("hop-plus, ms", ",.1f"): lambda cost: 1000 * cost.other,
        Column("ratio", ".2f"): lambda cost: cost.ratio,
    }
    payload = {"machine": machine, "costs": costs}
    return Page(title, "", sections=[make_table(title, columns, costs)], payload=payload)
