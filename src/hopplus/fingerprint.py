"""What a compiled program was made of, as a hash: the objects it was traced from, the source, the
versions and the machine.

Whoever cannot be sure of something raises `NoFingerprint`: a program that is compiled once more
costs seconds, and a stale one costs the results.
"""

import dataclasses
import enum
import functools
import hashlib
import inspect
import os
import platform
import sys
import types
from collections.abc import Mapping, Set
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.registry import Registry
from hopplus.runtime import STARTED

PACKAGE = Path(__file__).resolve().parent
# Programs depend on these, whose versions tell what is in them.
VERSIONED = ("jax", "jaxlib", "equinox", "optax", "numpy")
# Where there is a GPU, one of these compiles for it.
COMPILERS = [f"jax-{kind}-{part}" for kind in ("cuda12", "cuda13") for part in ("pjrt", "plugin")]
TRUSTED = {"hopplus", *VERSIONED, *sys.stdlib_module_names}
NO_PROGRAM = ("cli", "api", "report", "runs")  # which no program is traced from
# Settings of JAX that say where things are kept, and not what a program is; devices are told apart
# by themselves.
NO_PART = (
    "jax_num_cpu_devices",
    *("jax_compilation_cache", "jax_enable_compilation_cache", "jax_persistent_cache"),
    *("jax_log", "jax_dump"),
)


class NoFingerprint(Exception):  # noqa: N818  (what there is, not what went wrong)
    """Something cannot be told apart for sure from something else."""


def fingerprint(*made_of: Any) -> str:
    """A hash of objects, of everything that is reached from them, and of where they are now."""
    walk = _Walk()
    walk.add(surroundings())
    for one in made_of:
        walk.add(one)
    return walk.digest()


def surroundings() -> dict[str, Any]:
    """Source, versions, settings and machine, as far as programs depend on them."""
    if Registry.extended:
        raise NoFingerprint("something from outside the package was registered or imported")
    if jax.process_count() > 1:
        raise NoFingerprint("programs of several processes")
    if jax.config.values["jax_default_device"] is not None:
        raise NoFingerprint("programs of another device than the first")
    devices = jax.devices()
    settings = {
        name: repr(value)
        for name, value in sorted(jax.config.values.items())
        if not name.startswith(NO_PART)
    }
    return {
        "source": source_hash(PACKAGE),
        "versions": {name: _version(name) for name in (*VERSIONED, *COMPILERS)},
        "python": sys.version,
        "settings": settings,
        "flags": {name: os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")},
        "machine": (platform.system(), platform.machine(), _cpu(), os.cpu_count()),
        "backend": (jax.default_backend(), devices[0].client.platform_version),
        "devices": [one.device_kind for one in devices],
    }


def _version(name: str) -> str | None:
    """Of a distribution, where it is installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def source_hash(package: Path, since: float = STARTED) -> str:
    """A hash of the source of a package, as it was when this process started."""
    _check_unpatched(package.name)
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.stat().st_mtime > since:
            raise NoFingerprint(f"{path} was written while this process runs")
        found.update(f"{path.relative_to(package)}\0".encode())
        found.update(path.read_bytes() + b"\0")
    return found.hexdigest()


def _check_unpatched(package: str) -> None:
    """Raise where somebody has put a function of their own in the place of one of ours."""
    for name, module in list(sys.modules.items()):
        root, _, rest = name.partition(".")
        if root != package or rest.partition(".")[0] in NO_PROGRAM:
            continue
        kinds = [one for one in vars(module).values() if isinstance(one, type)]
        # A class is looked at where it is at home.
        for owner in (module, *(kind for kind in kinds if kind.__module__ == name)):
            for one in vars(owner).values():
                if isinstance(one, types.FunctionType) and not _is_installed(_root(one)):
                    raise NoFingerprint(f"{owner} has the function {one.__qualname__} instead")


@functools.cache
def _is_installed(package: str) -> bool:
    """Whether a package is ours, Python's, or lies where one of those is installed that ours
    depends on: JAX may be the system's, and the others in an environment of their own."""
    file = getattr(sys.modules.get(package), "__file__", None)
    if package in TRUSTED or file is None:
        return package in TRUSTED
    sites = []
    for name in VERSIONED:
        with suppress(metadata.PackageNotFoundError):
            sites.append(Path(str(metadata.distribution(name).locate_file(""))).resolve())
    return any(Path(file).resolve().is_relative_to(site) for site in sites)


def _root(one: Any) -> str:
    return str(getattr(one, "__module__", None) or "").partition(".")[0]


@functools.cache
def _cpu() -> str:
    """What this processor can do: programs are compiled for it, and its home may be shared."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    told = ("flags", "Features", "model name", "CPU part", "CPU implementer")
    return " ".join(sorted({line for line in lines if line.startswith(told)}))


class _Walk:
    """Goes through objects, and adds to a hash what they are."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._met: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no number is used twice

    def digest(self) -> str:
        return self._hash.hexdigest()

    def _say(self, *words: Any) -> None:
        for word in words:
            text = str(word).encode()
            self._hash.update(f"{len(text)}:".encode() + text)

    def add(self, one: Any) -> None:
        """Add an object and all that it refers to."""
        plain = one is None or isinstance(one, bool | int | float | complex | str | bytes | Path)
        if plain and not isinstance(one, enum.Enum):
            self._say(type(one).__name__, repr(one))
        elif id(one) in self._met:
            self._say("again", self._met[id(one)])
        else:
            self._met[id(one)] = len(self._met)
            self._alive.append(one)
            self._add_new(one)

    def _add_all(self, kind: str, parts: Any) -> None:
        parts = list(parts)
        self._say(kind, len(parts))
        for part in parts:
            self.add(part)

    def _add_new(self, one: Any) -> None:
        if isinstance(one, type):
            self._add_name(one)
        elif isinstance(one, enum.Enum):
            self._add_name(type(one))
            self._say(one.name)
        elif isinstance(one, jax.Array | np.ndarray | np.generic):
            self._add_array(one)
        elif isinstance(one, np.dtype | jax.ShapeDtypeStruct):
            self._say(type(one).__name__, one)
        elif isinstance(one, Mapping):
            self._add_name(type(one))
            self._add_all("map", (part for item in one.items() for part in item))
        elif isinstance(one, Set):
            self._say("set", *sorted(fingerprint_of(part) for part in one))
        elif isinstance(one, tuple | list):
            self._add_name(type(one))
            self._add_all("list", one)
        elif dataclasses.is_dataclass(one):
            self._add_name(type(one))
            names = [field.name for field in dataclasses.fields(one) if hasattr(one, field.name)]
            self._add_all("fields", (part for name in names for part in (name, getattr(one, name))))
        elif isinstance(one, functools.partial):
            self._add_all("partial", (one.func, one.args, one.keywords))
        elif isinstance(one, types.MethodType):
            self._add_all("method", (one.__func__, one.__self__))
        elif isinstance(one, types.FunctionType):
            self._add_function(one)
        elif isinstance(one, types.BuiltinFunctionType | np.ufunc):
            self._say("builtin", getattr(one, "__module__", None), one.__name__)
        elif callable(one) and hasattr(one, "__wrapped__"):  # by jax.jit and its like
            self._add_all("wrapped", (type(one).__name__, one.__wrapped__))
        elif type(one).__module__.partition(".")[0] == "hopplus":
            self._add_name(type(one))
            self.add(vars(one))
        else:
            raise NoFingerprint(f"a {type(one).__module__}.{type(one).__qualname__}")

    def _add_name(self, one: Any) -> None:
        if _root(one) not in TRUSTED:
            raise NoFingerprint(f"{one.__module__}.{one.__qualname__} is from outside")
        self._say(one.__module__, one.__qualname__)

    def _add_function(self, one: types.FunctionType) -> None:
        self._add_name(one)
        self._say(one.__code__.co_firstlineno, hashlib.sha256(one.__code__.co_code).hexdigest())
        closed = inspect.getclosurevars(one).nonlocals if one.__closure__ else {}
        self._add_all("function", (one.__defaults__, one.__kwdefaults__, closed))

    def _add_array(self, one: Any) -> None:
        if isinstance(one, jax.Array) and jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            self._say("key", jax.random.key_impl(one))
            one = jax.random.key_data(one)
        host = np.asarray(one)
        if host.dtype == object:
            raise NoFingerprint("an array of objects")
        self._say(type(one).__name__, host.dtype, host.shape)
        self._say(hashlib.sha256(np.ascontiguousarray(host).tobytes()).hexdigest())


def fingerprint_of(one: Any) -> str:
    """A hash of one object by itself."""
    walk = _Walk()
    walk.add(one)
    return walk.digest()
