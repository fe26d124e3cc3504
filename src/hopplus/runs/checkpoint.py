"""Checkpoints: pytrees in safetensors files, one for each name, and a manifest with their hashes.

Who only plays reads `players` and nothing else; what only training needs (optimisers, replay
buffers, games in flight) is in `training`, which the newest checkpoints alone keep. A checkpoint is
written under another name, flushed to the disk and renamed, so that it is there whole or not at
all. Reading one runs no code from it.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from hopplus.config import ConfigError

PLAYERS, TRAINING = "players", "training"  # what a checkpoint of a training run holds
STAGE = "stage"  # in the manifest of one that is kept for good
DEVICES = "devices"  # there: what it was trained on, on which a run goes on to the last bit
MANIFEST, WRITING = "manifest.json", ".writing"
RESUMABLE = 2  # checkpoints that keep `training`: the newest, and one to fall back on


class DamagedError(ConfigError):
    """A checkpoint that cannot be trusted."""


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """Every array of a pytree by its path; keys of randomness as their numbers."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path): np.asarray(jax.device_get(_plain(leaf)), order="C")
        for path, leaf in leaves
    }


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def filled(like: Any, arrays: dict[str, np.ndarray], source: str) -> Any:
    """A pytree shaped as `like` with the arrays in the places of their names."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    if set(names) != set(arrays):
        odd = sorted(set(names) ^ set(arrays))[0]
        raise DamagedError(f"{source} does not fit its configuration: {odd} is missing or too much")
    fresh = []
    for name, (_, leaf) in zip(names, leaves, strict=True):
        array, plain = arrays[name], jax.eval_shape(_plain, leaf)
        if array.dtype == np.float16:  # as the zoo keeps them
            array = array.astype(np.float32)
        if (array.shape, array.dtype) != (plain.shape, plain.dtype):
            raise DamagedError(f"{source} does not fit its configuration: {name} is {array.shape}")
        restored = jax.device_put(array)
        fresh.append(jax.random.wrap_key_data(restored) if _is_key(leaf) else restored)
    return jax.tree_util.tree_unflatten(structure, fresh)


def write_arrays(path: Path, tree: Any, about: dict[str, str] | None = None) -> None:
    """Write a pytree as a file of its own, with words about it."""
    write_durably(path, save_tensors(named_arrays(tree), about))


def read_arrays(path: Path, what: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """What `write_arrays` wrote; `what` it should be is said where it cannot be read."""
    try:
        with safe_open(path, "numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return arrays, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"cannot read {what} {path}: {error}") from error


def file_of(name: str) -> str:
    """The file of a checkpoint that holds the arrays of that name."""
    return f"{name}.safetensors"


def write_checkpoint(
    folder: Path, step: int, trees: Mapping[str, Any], facts: dict[str, Any]
) -> Path:
    """Write `folder/<step>` with a file for each of the pytrees, and `facts` in its manifest."""
    contents = {name: save_tensors(named_arrays(tree)) for name, tree in trees.items()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    writing, final = folder / f"{WRITING}-{step}", folder / str(step)
    shutil.rmtree(writing, ignore_errors=True)
    writing.mkdir(parents=True)
    for name, content in contents.items():
        write_durably(writing / file_of(name), content)
    manifest = {**facts, "step": step, "sha256": hashes}
    write_durably(writing / MANIFEST, json.dumps(manifest, indent=2).encode())
    if final.exists():  # a damaged one, or the same one again
        shutil.rmtree(final)
    _flush(writing)
    os.rename(writing, final)
    _flush(folder)
    return final


def write_durably(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it; a new one that fails is taken away again."""
    new = not path.exists()
    try:
        with path.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        if new:
            with contextlib.suppress(OSError):
                path.unlink()
        raise


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def steps_of(folder: Path) -> list[int]:
    """The checkpoints there are, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())


def read_record(path: Path) -> dict[str, Any]:
    """The JSON object in a file; `OSError` or `ValueError` where there is none."""
    record = json.loads(path.read_bytes())
    if not isinstance(record, dict):
        raise ValueError("it holds no record")
    return record


def read_manifest(path: Path) -> dict[str, Any]:
    try:
        return read_record(path / MANIFEST)
    except (OSError, ValueError) as error:
        raise DamagedError(f"checkpoint {path} is damaged: its manifest cannot be read") from error


def read_checkpoint(path: Path, names: Iterable[str]) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of one checkpoint by the names of its files, or `DamagedError`; no other file is
    read."""
    hashes = read_manifest(path).get("sha256")
    found = {}
    for name in names:
        file = file_of(name)
        try:
            content = (path / file).read_bytes()
        except FileNotFoundError:  # older checkpoints keep their players alone
            raise DamagedError(f"checkpoint {path} has no {file}") from None
        except OSError as error:
            raise DamagedError(f"checkpoint {path} is damaged: {file} cannot be read") from error
        known = hashes.get(name) if isinstance(hashes, dict) else None
        if hashlib.sha256(content).hexdigest() != known:
            raise DamagedError(f"checkpoint {path} is damaged: {file} is not what was written")
        try:
            found[name] = load_tensors(content)
        except SafetensorError as error:
            raise DamagedError(f"checkpoint {path} is damaged: {error}") from error
    return found


def set_aside(folder: Path, step: int) -> None:
    """Rename checkpoints of later steps: a run that is before them could not use them."""
    for later in steps_of(folder):
        if later > step:
            aside = folder / f"damaged-{later}"
            shutil.rmtree(aside, ignore_errors=True)
            os.rename(folder / str(later), aside)


def prune(folder: Path, keep: int) -> None:
    """Keep the last `keep` checkpoints, the best one and those of stages, and `training` of the
    newest alone; drop what was never finished."""
    for path in folder.glob(f"{WRITING}-*"):
        shutil.rmtree(path, ignore_errors=True)
    steps = steps_of(folder)
    scores: dict[int, float] = {}
    stages = set()
    for step in steps:
        try:
            facts = read_manifest(folder / str(step))
        except DamagedError:
            continue
        score = facts.get("score")
        scores[step] = float(score) if isinstance(score, int | float) else -np.inf
        stages |= {step} if facts.get(STAGE) else set()
    best = max(scores, key=lambda step: scores[step], default=None)
    for step in steps[:-keep]:
        if step != best and step not in stages:
            shutil.rmtree(folder / str(step))
    for step in steps_of(folder)[:-RESUMABLE]:  # buffers are most of a checkpoint's size
        (folder / str(step) / file_of(TRAINING)).unlink(missing_ok=True)
