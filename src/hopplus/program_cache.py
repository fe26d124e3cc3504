"""Compiled programs kept on disk, so that a second start traces, lowers and compiles nothing.

JAX's own cache knows a program by what it was lowered to, and so has to trace and lower it first,
which is most of a warm start. Here it is known by what it is made of (see `fingerprint`). A file
that is damaged, or that cannot be read for any other reason, is as good as none. Like the files of
JAX's cache these hold machine code: whoever can write to the folder can run code.
"""

import functools
import hashlib
import importlib
import io
import os
import pickle
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.experimental import serialize_executable

from hopplus.devices import Layout
from hopplus.fingerprint import NoFingerprint, fingerprint
from hopplus.kernels import failures, is_out_of_memory
from hopplus.runtime import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])
SWITCH = "HOPPLUS_PROGRAMS"  # an environment variable: 0 keeps and reads nothing, 1 on any device
TRIED = ("cpu", "gpu")
TRIED_SEVERAL = ("cpu",)  # of programs of several devices, which are cores there
ENDING = ".program"
MOST_FILES, MOST_BYTES = 64, 512 * 2**20  # those that were not used for longest go first
HEAD = b"hopplus program 1\n"
LEVEL = "xla_backend_optimization_level"


def less_effort() -> dict[str, bool | int | str]:
    """Options of XLA with which large programs compile in half of the time: on CPU less effort of
    LLVM, which nothing that was measured runs slower with. Whoever sets the level in XLA_FLAGS has
    it."""
    on_cpu = jax.default_backend() == "cpu"
    return {LEVEL: 1} if on_cpu and LEVEL not in os.environ.get("XLA_FLAGS", "") else {}


class KeptProgram:
    """The place of one program."""

    def __init__(self, name: str, *made_of: Any, layout: Layout | None = None) -> None:
        """`made_of` is all that the program depends on, but for the source of this package and how
        it is laid on devices."""
        self.path: Path | None = None
        self.why_not = f"{SWITCH} is 0, as it is by default where nobody has tried"
        tried = TRIED if layout is None else TRIED_SEVERAL
        if os.environ.get(SWITCH, str(int(jax.default_backend() in tried))) == "0":
            return
        self._devices = layout.devices if layout else jax.devices()[:1]
        shares = layout and layout.shares
        try:
            self.path = programs_folder() / f"{name}-{fingerprint(name, shares, *made_of)}{ENDING}"
        except NoFingerprint as error:
            self.why_not = str(error)

    def load(self) -> Callable[..., Any] | None:
        """The compiled program, if it is there."""
        if self.path is None:
            return None
        try:
            head, digest, content = _split(self.path.read_bytes())
            if head != HEAD or hashlib.sha256(content).digest() != digest:
                raise ValueError("damaged")
            executable, in_tree, out_tree = _Reader(io.BytesIO(content)).load()
            program = serialize_executable.deserialize_and_load(
                executable, in_tree, out_tree, execution_devices=self._devices
            )
        except FileNotFoundError:
            return None
        except Exception as error:  # by whatever means a file can be wrong
            if not is_out_of_memory(error):
                with suppress(OSError):
                    self.path.unlink()
            return None
        with suppress(OSError):
            os.utime(self.path)  # it was used just now
        return program

    def compiled(self, lowered: jax.stages.Lowered) -> jax.stages.Compiled:
        """Compile a program, and keep it if that is possible. One that lacks a kernel, for whatever
        went wrong this time, is not what others should find."""
        before = _found.count
        program = lowered.compile()
        # What XLA has read from JAX's cache it cannot write once more: functions are missing then.
        if self.path is not None and not failures and _found.count == before:
            with suppress(Exception):  # some have no form to be kept in, and disks are full
                content = _packed(program)
                _write(self.path, HEAD + hashlib.sha256(content).digest() + content)
                prune(self.path.parent)
        return program


def kept_jit(function: Function) -> Function:
    """As `eqx.filter_jit`, for functions of positions alone, with programs that are kept."""
    compiled: Any = KeptFunction(function)
    return compiled


class KeptFunction:
    """A function compiled as by `eqx.filter_jit`, arrays traced and all else static, whose programs
    are kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function, self._plain = function, eqx.filter_jit(function)
        self._programs: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *given: Any) -> Any:
        """The function of these, which are given by their places."""
        leaves, tree = jax.tree.flatten(given)
        dynamic = [one for one in leaves if isinstance(one, jax.Array | np.ndarray)]
        if any(map(_is_elsewhere, dynamic)):
            return self._plain(*given)
        static = [None if isinstance(one, jax.Array | np.ndarray) else one for one in leaves]
        shapes = tuple(jax.typeof(one) for one in dynamic)
        key = tree, tuple(static), shapes
        if key not in self._programs:
            self._programs[key] = self._program(tree, static, dynamic)
        return self._programs[key](dynamic)

    def _program(self, tree: Any, static: list[Any], dynamic: list[Any]) -> Callable[..., Any]:
        given = jax.tree.unflatten(tree, [_shape(one) for one in _joined(static, dynamic)])
        kept = KeptProgram(self._function.__name__, self._function, given)
        if (program := kept.load()) is not None:
            return program
        call = lambda arrays: self._function(*jax.tree.unflatten(tree, _joined(static, arrays)))  # noqa: E731
        call.__name__ = self._function.__name__
        return kept.compiled(jax.jit(call, compiler_options=less_effort()).lower(dynamic))


def _joined(static: list[Any], dynamic: list[Any]) -> list[Any]:
    rest = iter(dynamic)
    return [next(rest) if one is None else one for one in static]


def _shape(one: Any) -> Any:
    if isinstance(one, jax.Array | np.ndarray):
        return str(jax.typeof(one))
    return one


def _is_elsewhere(one: Any) -> bool:
    """Whether an array has no place yet, or not one place alone."""
    if isinstance(one, jax.core.Tracer):
        return True
    return isinstance(one, jax.Array) and one.sharding.device_set != {jax.devices()[0]}


class _Found(threading.local):
    """How many programs this thread has found in JAX's cache."""

    count = 0

    def note(self, event: str, **more: Any) -> None:
        self.count += event == "/jax/compilation_cache/cache_hits"


_found = _Found()
jax.monitoring.register_event_listener(_found.note)


class _Writer(pickle.Pickler):
    """Equinox marks fields that are not there by an object that is known by its identity."""

    def persistent_id(self, one: Any) -> Any:
        kind = type(one)
        if kind.__module__.startswith("equinox.") and kind.__name__ == "_Missing":
            return kind.__module__, "MISSING"
        return None


class _Reader(pickle.Unpickler):
    def persistent_load(self, place: Any) -> Any:
        return getattr(importlib.import_module(place[0]), place[1])


def _packed(program: jax.stages.Compiled) -> bytes:
    executable, *trees = serialize_executable.serialize(program)
    with io.BytesIO() as file:
        _Writer(file).dump((executable, *trees))
        content = file.getvalue()
    if _Reader(io.BytesIO(content)).load()[1:] != tuple(trees):
        raise ValueError("what is read back is not what was written")
    return content


def programs_folder() -> Path:
    """Where they are kept."""
    return cache_folder() / "programs"


def prune(folder: Path, files: int = MOST_FILES, size: int = MOST_BYTES) -> None:
    """Remove those that were not used for longest, where there are too many or they are large."""
    found = []
    for path in folder.glob(f"*{ENDING}"):
        with suppress(OSError):  # of another process that prunes, too
            found.append((path.stat().st_mtime, path.stat().st_size, path))
    total = 0
    for number, (_, own, path) in enumerate(sorted(found, reverse=True)):
        total += own
        if number and (number >= files or total > size):  # the newest stays
            with suppress(OSError):
                path.unlink()


def _split(content: bytes) -> tuple[bytes, bytes, bytes]:
    start, end = len(HEAD), len(HEAD) + hashlib.sha256().digest_size
    return content[:start], content[start:end], content[end:]


def _write(path: Path, content: bytes) -> None:
    """All of it, under its name, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, writing = tempfile.mkstemp(dir=path.parent, suffix=".writing")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(writing, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(writing)
        raise
