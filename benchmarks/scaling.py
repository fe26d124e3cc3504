"""How does training grow with devices, games, seats and simulations, what does it move between
devices and to the disk, and what would it come to on many more?

On a machine without several accelerators devices are virtual ones of its processor: they share its
cores, so that only what it costs to be apart is measured, never a gain. What is predicted is worked
out from shapes, from a rate on one device and from published figures of links.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import GameConfig, TrainConfig, default_game
from hopplus.devices import using
from hopplus.learning.compilation import first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.learning.train import record_of
from hopplus.learning.training_curves import training_curves
from hopplus.presets import PRESETS
from hopplus.report.figures.palette import colour, panels, try_figure
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEVICES = (1, 2, 4, 8)
MANY = (8, 64, 1024)  # that are predicted
FEWEST, LONGEST = 3, 20.0  # updates that are timed at least; seconds after which it is enough
VIRTUAL = "--xla_force_host_platform_device_count=8"

# One direction of NVLink 4 of an H200 (900 GB/s both ways), and its ConnectX-7 port (400 Gb/s), as
# NVIDIA's data sheets of H200 and DGX H200 have them; bytes per second.
LINK, NETWORK = 450e9, 50e9
HOST = 8  # devices with such links in one host
# Seconds of a tree's all-reduce, by the model that NCCL chooses by (its src/graph/tuning.cc,
# protocol LL): to begin with, for each device of a host, and for each doubling of hosts.
BEGIN, HOP, FAR = 6.8e-6, 0.6e-6, 5.0e-6


@dataclass(frozen=True)
class Measured:
    """Seconds of an update of one of the programs."""

    what: str  # what grows
    size: int
    devices: int
    seconds: float
    alone: float  # the same work on one device
    cpu: float  # seconds of all cores, which other work beside it does not add to
    steps: int  # of all seeds and games, in an update

    @property
    def rate(self) -> float:
        return self.steps / self.seconds


@dataclass(frozen=True)
class Moved:
    """Bytes of one seed."""

    gathered: int  # what was played, to every device that has games of it, once per update
    reduced: int  # gradients, once per minibatch
    minibatches: int  # of an update
    exchanges: int  # waits for each other per minibatch, as compiled for two devices
    checkpoint: int  # of which the next are the player's own
    player: int


@dataclass(frozen=True)
class Predicted:
    """Steps per second of so many devices, each with as many games as the one that was measured."""

    devices: int
    seeds: float  # with a seed on each device
    logged: float  # the same, if the first process logs every seed of every update
    games: float  # with games of one seed on all of them


@dataclass(frozen=True)
class Scaling:
    """Measure how an update grows, and predict how it would on many devices."""

    only: tuple[Literal["devices", "sizes", "predict"], ...] = ("devices", "sizes", "predict")
    """What to do."""
    game: GameConfig = field(default_factory=lambda: default_game(size=4))
    games: int = 64
    """Games of each device."""
    rate: float | None = None
    """Steps per second of one device with so many games, to predict by; measured when not given."""
    rounds: int = 20
    """Updates that are timed, in turns, fewer if they are long; the shortest counts, as other work
    only adds to it."""
    out: Path = Path("scaling.png")
    """The picture."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_options(games=self.games, rounds=self.rounds)
        several = {"devices", "predict"} & {*self.only}
        if several and "xla_force_host" not in os.environ.get("XLA_FLAGS", ""):
            os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {VIRTUAL}"
        ppo = PRESETS["ppo"]
        config = replace(ppo, game=self.game, ppo=replace(ppo.ppo, games=self.games))
        found: list[Measured] = []
        wanted: list[Program] = [*(over_devices(config) if "devices" in self.only else ())]
        wanted += over_sizes(config) if "sizes" in self.only else ()
        with Progress("measuring", len(wanted), "programs", even=False) as progress:
            for program in wanted:
                found.append(measure(*program, self.rounds))
                progress.advance(1, f"{found[-1].what} {found[-1].size:,}")
            predicted, moved, logging = [], None, None
            if "predict" in self.only:
                moved, logging = moved_by(config), seconds_to_log(config)
                rate = self.rate or measure("", 0, config, 1, self.rounds).rate
                predicted = [predict(n, config, rate, moved, logging) for n in MANY]
        if found:
            try_figure(self.out, lambda: draw(found))
        payload = {
            "machine": device_line(),
            "measured": [asdict(one) for one in found],
            "moved": moved and asdict(moved),
            "seconds_to_log_a_seed": logging,
            "predicted": [asdict(one) for one in predicted],
        }
        return show(page(found, predicted, payload), as_json=self.json)


Program = tuple[str, int, TrainConfig, int]  # what grows, to what, its settings and its devices


def over_devices(config: TrainConfig) -> Iterator[Program]:
    """As much work for every device, of more seeds and of more games of one seed."""
    there = [count for count in DEVICES if count <= len(jax.devices())]
    for count in there:
        yield "seeds on devices", count, replace(config, seeds=count), count
    for count in there[1:]:
        more = replace(config.ppo, games=config.ppo.games * count)
        yield "games on devices", count, replace(config, ppo=more), count


def over_sizes(config: TrainConfig) -> Iterator[Program]:
    """On one device: more games, seats and simulations of a search."""
    for games in (1, 4, 16):
        more = replace(config.ppo, games=config.ppo.games * games)
        yield "games", more.games, replace(config, ppo=more), 1
    game: Any = config.game
    for seats in (2, 4, 8):
        yield "seats", seats, replace(config, game=replace(game, seats=seats, size=5)), 1
    search, few = (
        PRESETS["one-step"].search,
        replace(config.ppo, games=max(1, config.ppo.games // 4)),
    )
    for simulations in (4, 16, 64):
        looking = replace(search, simulations=simulations, world="true")
        searching = replace(config, ppo=few, search=looking, parts=("opponent",))
        yield "simulations", simulations, searching, 1


def measure(what: str, size: int, config: TrainConfig, devices: int, rounds: int) -> Measured:
    """The shortest update of it and, in turns, of the same on one device."""
    counts = list(dict.fromkeys((devices, 1)))
    updates = [_updating(config, count) for count in counts]
    began, laps = time.perf_counter(), list[list[tuple[float, float]]]()
    while len(laps) < min(rounds, FEWEST) or (
        len(laps) < rounds and time.perf_counter() - began < LONGEST
    ):
        laps.append([update() for update in updates])
    spent = np.min(laps, axis=0)  # [devices, wall and CPU]
    steps = config.seeds * config.ppo.steps
    wall, cpu = map(float, spent[0])
    return Measured(what, size, devices, wall, float(spent[-1, 0]), cpu, steps)


def _updating(config: TrainConfig, devices: int) -> Callable[[], tuple[float, float]]:
    """What does one more update and gives its seconds, and those of all cores; one was done."""
    with using(devices, sets_apart=False):
        learning, update = first_and_next(make_learner(config, {}), config)

    def advance() -> tuple[float, float]:
        nonlocal learning
        began, used = time.perf_counter(), time.process_time()
        learning, _ = jax.block_until_ready(update(learning))
        return time.perf_counter() - began, time.process_time() - used

    advance()
    return advance


def moved_by(config: TrainConfig) -> Moved:
    """By the shapes of what is moved, and the program of two devices."""
    learner = make_learner(config, {})
    shapes = jax.eval_shape(learner.init, jax.random.key(0))
    lesson = jax.eval_shape(learner.update_shown, shapes)[2]
    player = shapes.params[learner.learning]
    with using(2, sets_apart=False):
        text = first_and_next(learner, config)[1].program.as_text()
    inside = [line for line in text.splitlines() if " all-reduce(" in line and "improve" in line]
    assert inside, "gradients of games apart are summed"
    return Moved(
        gathered=_bytes(lesson.batch),
        reduced=_bytes(learner.improved(player)),
        minibatches=config.ppo.epochs * config.ppo.minibatches,
        exchanges=len(inside),
        checkpoint=_bytes(shapes),
        player=_bytes(player),
    )


def _bytes(tree: Any) -> int:
    leaves = jax.tree.leaves(tree)
    return sum(leaf.size * min(leaf.dtype.itemsize, 8) for leaf in leaves)


def seconds_to_log(config: TrainConfig, seeds: int = 256, times: int = 5) -> float:
    """Of the host, for one seed of one update: from the device's numbers to lines of text and to
    curves; the least of some."""
    learner = make_learner(config, {})
    metrics = jax.eval_shape(learner.update, jax.eval_shape(learner.init, jax.random.key(0)))[1]
    many = replace(config, seeds=seeds)
    numbers = {name: np.ones((seeds, *one.shape), one.dtype) for name, one in metrics.items()}
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        record = record_of(1, many, numbers)
        json.dumps(record)
        training_curves(record, many, 1e-3, 1.0)
        spent.append(time.perf_counter() - began)
    return min(spent) / seeds


def seconds_to_sum(size: float, devices: int) -> float:
    """Of an all-reduce of so many bytes by a tree over the devices of a host and over hosts."""
    hosts = max(1, devices // HOST)
    near = min(devices, HOST)
    begin = BEGIN + 2 * ((near - 1) * HOP + math.log2(hosts) * FAR)
    return begin + 2 * size / (NETWORK if hosts > 1 else LINK)


def predict(
    devices: int, config: TrainConfig, rate: float, moved: Moved, logging: float
) -> Predicted:
    """From the rate of one device, and what so many of them would wait for."""
    steps = config.ppo.steps
    alone = steps / rate
    link = LINK if devices <= HOST else NETWORK
    # Every device needs what all of them have played: it grows with their number.
    gather = seconds_to_sum(0, devices) + (devices - 1) * moved.gathered / link
    small = (moved.exchanges - 1) * seconds_to_sum(0, devices)
    reduce = moved.minibatches * (seconds_to_sum(moved.reduced, devices) + small)
    return Predicted(
        devices,
        seeds=devices * steps / alone,
        logged=devices * steps / (alone + devices * logging),
        games=devices * steps / (alone + gather + reduce),
    )


def page(found: list[Measured], predicted: list[Predicted], payload: dict[str, Any]) -> Page:
    grown: dict[str | Column, Callable[[Measured], Any]] = {
        "": lambda one: one.what,
        "size": lambda one: one.size,
        "devices": lambda one: one.devices,
        Column("ms", ",.1f"): lambda one: 1000 * one.seconds,
        Column("steps/s", ",.0f"): lambda one: one.rate,
        Column("steps per CPU second", ",.0f"): lambda one: one.steps / one.cpu,
        Column("to one device", ".2f"): lambda one: one.seconds / one.alone,
    }
    many: dict[str | Column, Callable[[Predicted], Any]] = {
        "devices": lambda one: one.devices,
        Column("seeds apart, steps/s", ",.3g"): lambda one: one.seeds,
        Column("if all is logged", ",.3g"): lambda one: one.logged,
        Column("games apart, steps/s", ",.3g"): lambda one: one.games,
    }
    title = f"an update of PPO; {payload['machine']}"
    sections = [make_table(f"measured: {title}", grown, found)] if found else []
    sections += [make_table("predicted", many, predicted)] if predicted else []
    lines = [f"{name}: {value}" for name, value in (payload["moved"] or {}).items()]
    return Page("scaling", "", lines=lines, sections=sections, payload=payload)


def draw(found: list[Measured]) -> "Figure":
    """Steps per second against each of what grows."""
    kinds = list(dict.fromkeys(one.what for one in found))
    figure, places = panels(3 * len(kinds), 3, columns=len(kinds))
    for number, what in enumerate(kinds):
        axes, some = places[0, number], [one for one in found if one.what == what]
        sizes = [one.size for one in some]
        axes.plot(sizes, [one.rate for one in some], "o-", color=colour(0), label="measured")
        if what.endswith("devices"):
            alone = [one.steps / one.alone for one in some]
            axes.plot(sizes, alone, "s--", color=colour(1), label="same work, one device")
        else:
            core = [one.steps / one.cpu for one in some]
            axes.plot(sizes, core, "s--", color=colour(1), label="per CPU second")
        axes.legend()
        axes.set(xscale="log", xlabel=what, ylabel="steps per second", ylim=(0, None))
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
    return figure


if __name__ == "__main__":
    sys.exit(main(Scaling))
