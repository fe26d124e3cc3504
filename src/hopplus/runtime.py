"""The one place that sets JAX up, before its backend starts.

Two things always, neither of which overrides what the user has set in the environment. JAX is not
imported for them: where nobody has done so yet, they wait until somebody does, so that who only
asks for help does not wait for JAX.

- XLA's concurrency-optimised CPU scheduler is switched off, and so is asynchronous dispatch on the
  CPU: on machines with few cores a long compiled loop can otherwise wait for ever, every thread
  idle, with no error (compare jax issue 25861). Neither costs speed.
- Compiled programs are kept in the user's cache folder, so that a person waits for a compilation
  once.

And where several devices are asked for, cores can be some.
"""

import os
import platform
import sys
import time
import warnings
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

STARTED = time.time()  # source that is written later may not be what runs here
SCHEDULER_FLAG = "--xla_cpu_enable_concurrency_optimized_scheduler"
DEVICES_FLAG = "--xla_force_host_platform_device_count"
# A core that waits so long for another, of a machine that has other things to do, ends the process:
# after 40 s, if nobody says otherwise.
PATIENCE_FLAG = "--xla_cpu_collective_call_terminate_timeout_seconds"
PATIENCE = 24 * 3600


def cache_folder() -> Path:
    """The folder of the user's cache that belongs to hopplus."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "hopplus"


def set_up() -> None:
    """Apply the settings above; called when `hopplus` is imported."""
    flags = os.environ.get("XLA_FLAGS", "")
    if SCHEDULER_FLAG not in flags:
        if _backend_started():
            warnings.warn(
                "JAX had already started when hopplus was imported, so its CPU scheduler could not"
                " be made safe and long programs may hang on machines with few cores: import"
                f" hopplus before using jax, or set XLA_FLAGS={SCHEDULER_FLAG}=false",
                stacklevel=3,
            )
        os.environ["XLA_FLAGS"] = f"{flags} {SCHEDULER_FLAG}=false".strip()
    if "jax" in sys.modules:
        _set_up_jax()
    elif not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported(MetaPathFinder):
    """Finds JAX as others would, and sets it up when it has been imported. Not all of its settings
    can be left in the environment for it."""

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        if fullname != "jax":
            return None
        sys.meta_path.remove(self)
        spec = find_spec("jax")
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_set_up(module: ModuleType) -> None:
                execute(module)
                _set_up_jax()

            vars(spec.loader)["exec_module"] = execute_and_set_up
        return spec


def _set_up_jax() -> None:
    import jax

    if "JAX_CPU_ENABLE_ASYNC_DISPATCH" not in os.environ and not _backend_started():
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    if jax.config.values["jax_compilation_cache_dir"] is None and _made(cache_folder() / "jax"):
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "jax"))
        if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def _made(folder: Path) -> bool:
    """Whether the folder is there now and can be written to; without one there is no cache."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _backend_started() -> bool:
    if "jax" not in sys.modules:
        return False
    from jax._src import xla_bridge  # jax has no public way to ask

    return xla_bridge.backends_are_initialized()


def cores(limit: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Of the processor, that this process may use: a container may have a share of their time."""
    own = getattr(os, "sched_getaffinity", None)
    count = len(own(0)) if own else os.cpu_count() or 1
    try:
        quota, period = map(int, limit.read_text().split())
    except (OSError, ValueError):  # "max" where there is no limit
        return count
    return max(1, min(count, round(quota / period)))


def cores_as_devices() -> None:
    """Have cores be devices of their own where JAX has nothing else to compute on: work that needs
    nothing of each other is done apart then, while the threads of one device wait for each other at
    every step. Nothing is done once JAX has started, or where it was said how many devices there
    are to be."""
    import jax

    flags = os.environ.get("XLA_FLAGS", "")
    said = DEVICES_FLAG in flags
    if PATIENCE_FLAG not in flags and not _backend_started():
        os.environ["XLA_FLAGS"] = f"{flags} {PATIENCE_FLAG}={PATIENCE}".strip()
    if not said and jax.config.values["jax_num_cpu_devices"] < 0 and not _backend_started():
        jax.config.update("jax_num_cpu_devices", cores())


def device_line() -> str:
    """The machine in words, for tables: kind and number of devices, cores, and jax's version."""
    import jax

    devices = jax.devices()
    if devices[0].platform == "cpu":
        machine = f"{cores()} {platform.machine()} CPU cores"
    else:
        machine = f"{len(devices)} x " * (len(devices) > 1) + devices[0].device_kind
    return f"{machine}, jax {jax.__version__}"
