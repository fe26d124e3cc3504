"""The two programs of a run, compiled side by side: its beginning, and updates, of which one
dispatch does several."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import TrainConfig
from hopplus.devices import (
    IN_SETS,
    PLAYED,
    SEEDED,
    SEEDED_ROWS,
    SHARED,
    Layout,
    layout_of,
    spread,
)
from hopplus.learning.auxiliary.learner import FitState
from hopplus.learning.auxiliary.learners import AuxiliaryState
from hopplus.learning.learner import Learner, Learning
from hopplus.models.part import Metrics
from hopplus.play.seeds import seed_keys
from hopplus.program_cache import LEVEL, KeptProgram, less_effort

EMITTERS = "xla_cpu_use_fusion_emitters"
MOST = 64  # updates of a dispatch
DISPATCH = 0.25  # seconds that a dispatch is to take: progress and Ctrl-C wait for it
GROWTH = 4  # how many times more updates a dispatch may have than the one before


@dataclass(frozen=True)
class Update:
    """The update of all seeds, compiled or to be; it takes what it is given over.

    Its program does several in one dispatch, as `repeated` makes it.
    """

    program: Any
    layout: Layout | None = None

    def __call__(self, learning: Learning) -> tuple[Learning, Metrics]:
        """One update, and its metrics."""
        learning, metrics = self.several(learning, 1)
        return learning, self.read(metrics, 1)[0]

    def several(self, learning: Learning, count: int) -> tuple[Learning, Metrics]:
        """So many updates in one dispatch, and the metrics of each, [MOST, S, ...]."""
        found: tuple[Learning, Metrics] = self.program(learning, np.int32(count))
        return found

    def read(self, metrics: Metrics, count: int) -> list[Metrics]:
        """Those of so many updates one by one, on the host; several processes have to ask
        together."""
        host = self.layout.read(metrics) if self.layout else jax.device_get(metrics)
        return [{name: row[n] for name, row in host.items()} for n in range(count)]

    def lower(self, shapes: Any) -> jax.stages.Lowered:
        """For what is learned of these shapes."""
        lowered: jax.stages.Lowered = self.program.lower(shapes, np.int32(1))
        return lowered


def learning_layout(learner: Learner, seeds: int) -> Layout | None:
    """How so many seeds of a learner lie on the devices in use."""
    # Where one minds what another would gain, their gradients are not apart.
    apart = 1 if learner.config.lola.step else len(learner.auxiliary.seats)
    return layout_of(seeds, apart, learner.config.games)


def learning_specs(learner: Learner) -> Any:
    """How what is learned lies there: seeds apart, and their sets of parameters or games."""
    groups = range(len(learner.seating.groups))
    params = tuple(IN_SETS if group == learner.learning else SEEDED for group in groups)
    fitted = {part.name: FitState(IN_SETS, SEEDED) for part in learner.auxiliary.parts}
    auxiliary: Any = AuxiliaryState
    fields: Any = (params, IN_SETS, auxiliary(fitted, starts=SEEDED, observed=IN_SETS))
    others: Any = (PLAYED, PLAYED, SEEDED, SHARED, IN_SETS, PLAYED)  # from the games in flight on
    return Learning(*fields, *others)


def start_options(config: TrainConfig) -> dict[str, bool | int | str]:
    """Options of XLA with which programs as large as a run's compile in half of the time.

    On GPU, XLA's own matrix products run faster in large batches, but each is generated and timed
    in several forms: with every part on, that is half of the compilation.
    """
    if jax.default_backend() == "gpu" and config.parts:
        return {"xla_gpu_enable_triton_gemm": False}
    return less_effort()


def init_options(config: TrainConfig) -> dict[str, bool | int | str]:
    """The same for the program of the beginning, which runs once: on CPU as little effort as this
    version of XLA knows to make."""
    if jax.default_backend() != "cpu" or LEVEL in os.environ.get("XLA_FLAGS", ""):
        return start_options(config)
    least: Any = {LEVEL: 0, EMITTERS: False}
    try:
        jax.jit(lambda: 0).lower().compile(least)
    except jax.errors.JaxRuntimeError:  # no such option
        return {LEVEL: 0}
    options: dict[str, bool | int | str] = least
    return options


def first_and_next(
    learner: Learner,
    config: TrainConfig,
    keys: jax.Array | None = None,
    absent: jax.Array | None = None,
) -> tuple[Learning, Update]:
    """Where a run begins, with the keys of its seeds or those given, and its compiled update;
    without the one of the mixtures who is absent in each seed, if anyone is.

    Both programs are read from where they were kept, if they were. Else they are compiled: the
    update needs no more than the shapes of the beginning, so neither waits for the other.
    """
    keys = seed_keys(config) if keys is None else keys
    layout = learning_layout(learner, len(keys))
    begins = KeptProgram("init", learner, len(keys), absent is None, layout=layout)
    init: Any = begins.load()
    traced: Any = None
    if init is None:
        options = {"compiler_options": init_options(config)}
        fresh = spread(learner.init_all, layout, SEEDED, learning_specs(learner), **options)
        traced = fresh.trace(keys, absent)

    def begin() -> Learning:
        program = begins.compiled(traced.lower()) if traced else init
        begun: Learning = jax.block_until_ready(program(keys, absent))
        return begun

    with ThreadPoolExecutor(1) as auxiliary:
        first = auxiliary.submit(begin)
        kept = kept_update(learner, config, len(keys))
        program = kept.load()
        if program is None:
            shapes = traced.out_info if traced else first.result()
            program = kept.compiled(next_of(learner, config, len(keys)).lower(shapes))
        return first.result(), Update(program, layout)


def kept_update(learner: Learner, config: TrainConfig, seeds: int) -> KeptProgram:
    """Where the update of so many seeds is kept."""
    return KeptProgram("update", learner, seeds, layout=learning_layout(learner, seeds))


def update_from_kept(learner: Learner, config: TrainConfig, seeds: int) -> Update:
    """The update of so many seeds as it was kept, or to be compiled when it is first called."""
    kept = kept_update(learner, config, seeds).load()
    layout = learning_layout(learner, seeds)
    return Update(kept, layout) if kept else next_of(learner, config, seeds)


def next_of(learner: Learner, config: TrainConfig, seeds: int) -> Update:
    """The update of so many seeds, to be compiled when it is first called."""
    layout, specs = learning_layout(learner, seeds), learning_specs(learner)
    options = {"donate_argnums": 0, "compiler_options": start_options(config)}
    given, found = (specs, SHARED), (specs, SEEDED_ROWS)
    return Update(spread(repeated(learner.update_all), layout, given, found, **options), layout)


def repeated(
    update: Callable[[Learning], tuple[Learning, Metrics]],
) -> Callable[[Learning, jax.Array], tuple[Learning, Metrics]]:
    """An update done `count` [] times, and the metrics of each [MOST, ...], the rest of which stay
    zero. How often is no part of the program, so that there is one for any number of them and all
    give the same numbers."""
    once = jax.jit(update)  # traced once, for its shapes and for the loop

    def run(now: Learning, count: jax.Array) -> tuple[Learning, Metrics]:
        shapes = jax.eval_shape(once, now)[1]
        rows = jax.tree.map(lambda one: jnp.zeros((MOST, *one.shape), one.dtype), shapes)

        def body(number: jax.Array, carry: tuple[Learning, Metrics]) -> tuple[Learning, Metrics]:
            now, metrics = once(carry[0])

            def put(every: jax.Array, one: jax.Array) -> jax.Array:
                where = [number] + [0] * one.ndim
                update = jax.lax.dynamic_update_slice
                return update(every, one[None], where, allow_negative_indices=False)

            return now, jax.tree.map(put, carry[1], metrics)

        return jax.lax.fori_loop(0, count, body, (now, rows))

    return run


class Dispatched(NamedTuple):
    """What a dispatch has come to."""

    first: int  # the number of its first update, from 1
    metrics: list[Metrics]  # of its updates, on the host
    learning: Learning | None  # after the last of them; None if the next have taken it over


class Paces(Protocol):
    """Says how many updates a dispatch is to have."""

    @property
    def count(self) -> int: ...

    def took(self, count: int, seconds: float) -> None:
        """So many took so long."""


class Pacing:
    """How many updates to do in a dispatch, by what those before have taken."""

    def __init__(self) -> None:
        self.count, self._timed = 1, False

    def took(self, count: int, seconds: float) -> None:
        """So many took so long; the first time has compilation in it and does not count."""
        if self._timed:
            wanted = int(DISPATCH * count / max(seconds, 1e-9))
            self.count = max(1, min(wanted, GROWTH * max(count, self.count), MOST))
        self._timed = True


def dispatched(
    update: Update,
    learning: Learning,
    done: int,
    stops: list[int],
    halted: Callable[[], bool],
    *,
    pacing: Paces | None = None,
    ahead: bool | None = None,
) -> Iterator[Dispatched]:
    """Updates after the first `done`, to the last of the `stops`; no dispatch goes beyond one of
    these, and after each of them the learning is at hand, as it soon is when `halted`.

    A GPU begins the next dispatch before the host has read the last, and does not wait for what is
    made of it. A CPU has no time to win by that; and several processes decide after each, together,
    how many updates the next is to have.
    """
    alone = jax.process_count() == 1
    assert alone or pacing, "processes have to agree on the number of updates"
    ahead = alone and jax.default_backend() != "cpu" if ahead is None else ahead
    pacing = pacing or Pacing()

    def dispatch(now: Learning, done: int) -> tuple[Learning, Metrics, int, float]:
        stop = next(number for number in stops if number > done)
        count = min(pacing.count, stop - done)
        began = time.monotonic()
        return *update.several(now, count), count, began

    if not stops:
        return
    flying, read = dispatch(learning, done), 0.0
    while True:
        now, rows, count, began = flying
        first, done = done + 1, done + count
        free = not ahead or done in stops or halted()
        following = None if free else dispatch(now, done)
        metrics = update.read(rows, count)
        pacing.took(count, time.monotonic() - max(began, read))
        read = time.monotonic()
        yield Dispatched(first, metrics, now if free else None)
        if done == stops[-1]:
            return
        flying = following or dispatch(now, done)
