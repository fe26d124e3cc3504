"""The two programs of a run, compiled side by side."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import jax

from hopplus.config import TrainConfig
from hopplus.devices import PLAYED, SEEDED, SHARED, layout_of, spread
from hopplus.learning.learner import Learner, Learning
from hopplus.models.part import Metrics
from hopplus.play.seeds import seed_keys
from hopplus.program_cache import KeptProgram

LEVEL, EMITTERS = "xla_backend_optimization_level", "xla_cpu_use_fusion_emitters"
# How what is learned lies on devices, by the fields of `Learning`: seeds apart, and their games.
_FIELDS: Any = (SEEDED, SEEDED, SEEDED, PLAYED, PLAYED, SEEDED, SHARED, SEEDED, PLAYED)
SPECS = Learning(*_FIELDS)
Update: TypeAlias = Callable[[Learning], tuple[Learning, Metrics]]


def start_options(config: TrainConfig) -> dict[str, bool | int | str]:
    """Options of XLA with which programs as large as a run's compile in half of the time.

    On CPU that is less effort of LLVM, which no preset that was measured runs slower with. On GPU,
    XLA's own matrix products run faster in large batches, but each is generated and timed in
    several forms: with every part on, that is half of the compilation. Whoever sets the level in
    XLA_FLAGS has it.
    """
    match jax.default_backend():
        case "cpu" if LEVEL not in os.environ.get("XLA_FLAGS", ""):
            return {LEVEL: 1}
        case "gpu" if config.parts:
            return {"xla_gpu_enable_triton_gemm": False}
    return {}


def init_options(config: TrainConfig) -> dict[str, bool | int | str]:
    """The same for the program of the beginning, which runs once: on CPU as little effort as this
    version of XLA knows to make."""
    if jax.default_backend() != "cpu" or LEVEL in os.environ.get("XLA_FLAGS", ""):
        return start_options(config)
    least: dict[str, bool | int | str] = {LEVEL: 0, EMITTERS: False}
    try:
        jax.jit(lambda: 0).lower().compile(least)
    except jax.errors.JaxRuntimeError:  # no such option
        return {LEVEL: 0}
    return least


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
    layout = layout_of(len(keys), config.ppo.games)
    begins = KeptProgram("init", learner, layout, len(keys), absent is None)
    init, traced = begins.load(), None
    if init is None:
        options = {"compiler_options": init_options(config)}
        fresh = spread(learner.init_all, layout, SEEDED, SPECS, **options)
        traced = fresh.trace(keys, absent)

    def begin() -> Learning:
        program = begins.compiled(traced.lower()) if traced else init
        begun: Learning = jax.block_until_ready(program(keys, absent))
        return begun

    with ThreadPoolExecutor(1) as auxiliary:
        first = auxiliary.submit(begin)
        kept = kept_update(learner, config, len(keys))
        update = kept.load()
        if update is None:
            shapes = traced.out_info if traced else first.result()
            update = kept.compiled(next_of(learner, config, len(keys)).lower(shapes))
        return first.result(), update


def kept_update(learner: Learner, config: TrainConfig, seeds: int) -> KeptProgram:
    """Where the update of so many seeds is kept; that of several devices is not, as a layout has no
    fingerprint."""
    return KeptProgram("update", learner, layout_of(seeds, config.ppo.games), seeds)


def next_of(learner: Learner, config: TrainConfig, seeds: int) -> jax.stages.Wrapped:
    """The update of so many seeds, to be compiled when it is first called; it takes its argument
    over."""
    layout = layout_of(seeds, config.ppo.games)
    options = {"donate_argnums": 0, "compiler_options": start_options(config)}
    return spread(learner.update_all, layout, (SPECS,), (SPECS, SEEDED), **options)
