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

LEVEL = "xla_backend_optimization_level"
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


def first_and_next(
    learner: Learner,
    config: TrainConfig,
    keys: jax.Array | None = None,
    absent: jax.Array | None = None,
) -> tuple[Learning, Update]:
    """Where a run begins, with the keys of its seeds or those given, and its compiled update;
    without the one of the mixtures who is absent in each seed, if anyone is.

    The update needs no more than the shapes of the beginning, so neither compilation waits for the
    other.
    """
    keys = seed_keys(config) if keys is None else keys
    layout = layout_of(len(keys), config.ppo.games)
    options = start_options(config)
    # Of several devices none is kept: a layout has no fingerprint.
    made_of = (learner, options, layout, len(keys), absent is None)
    begins, goes_on = KeptProgram("init", *made_of), KeptProgram("update", *made_of)
    init, traced = begins.load(), None
    if init is None:
        fresh = spread(learner.init_all, layout, SEEDED, SPECS, compiler_options=options)
        traced = fresh.trace(keys, absent)

    def begin() -> Learning:
        program = begins.compiled(traced.lower()) if traced else init
        begun: Learning = jax.block_until_ready(program(keys, absent))
        return begun

    with ThreadPoolExecutor(1) as auxiliary:
        first = auxiliary.submit(begin)
        update = goes_on.load()
        if update is None:
            shapes = traced.out_info if traced else first.result()
            update = goes_on.compiled(next_of(learner, config, len(keys)).lower(shapes))
        return first.result(), update


def next_of(learner: Learner, config: TrainConfig, seeds: int) -> jax.stages.Wrapped:
    """The update of so many seeds, to be compiled when it is first called; it takes its argument
    over."""
    layout = layout_of(seeds, config.ppo.games)
    options = {"donate_argnums": 0, "compiler_options": start_options(config)}
    # Every process reads the metrics of all seeds.
    left = (SPECS, SHARED) if jax.process_count() > 1 else None
    return spread(learner.update_all, layout, (SPECS,), (SPECS, SEEDED), left, **options)
