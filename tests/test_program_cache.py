"""Programs that are kept: known by everything they are made of, and never used if in doubt."""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable
from jax.experimental.compilation_cache import compilation_cache

from conftest import SMALL_RUN
from hopplus.cli import parse
from hopplus.config import PPOConfig, TrainConfig, make_config
from hopplus.evaluation.evaluate import play_episodes
from hopplus.fingerprint import NoFingerprint, fingerprint, source_hash
from hopplus.games import make_game
from hopplus.learning.compilation import first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.play.seating import seat_players
from hopplus.program_cache import ENDING, SWITCH, KeptFunction, KeptProgram, programs_folder, prune
from hopplus.registry import Registry


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have registered something."""
    monkeypatch.setattr(Registry, "extended", False)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of programs, which is used, beside an empty cache of JAX."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(SWITCH, "1")
    wanted = {
        "jax_compilation_cache_dir": str(tmp_path / "jax"),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: jax.config.values[name] for name in wanted}
    for settings in (wanted, before):
        for name, value in settings.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        if settings is wanted:
            yield programs_folder()


def doubled(made_of: Any = 0) -> tuple[KeptProgram, Path]:
    """A small program that is kept."""
    place = KeptProgram("doubled", made_of)
    assert place.path is not None, place.why_not
    compilation_cache.reset_cache()
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        place.compiled(jax.jit(lambda x: {"twice": 2 * x}).lower(jnp.arange(3)))
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
        compilation_cache.reset_cache()
    return place, place.path


def test_a_program_is_read_back(kept: Path) -> None:
    _, path = doubled()
    assert path.parent == kept
    assert path.exists()
    program = KeptProgram("doubled", 0).load()
    assert program is not None
    assert program(jnp.arange(3))["twice"].tolist() == [0, 2, 4]
    assert KeptProgram("doubled", 1).load() is None
    assert KeptProgram("halved", 0).load() is None


@pytest.mark.parametrize(
    "harm",
    [
        lambda content: b"",
        lambda content: content[:100],
        lambda content: content[:-1],
        lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        lambda content: content.replace(b"program 1", b"program 0", 1),
        lambda content: b"x" * len(content),
    ],
)
def test_a_damaged_file_is_as_good_as_none(kept: Path, harm: Callable[[bytes], bytes]) -> None:
    place, path = doubled()
    path.write_bytes(harm(path.read_bytes()))
    assert place.load() is None
    assert not path.exists()
    doubled()
    assert place.load() is not None


def test_a_program_without_its_kernel_is_not_kept(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be that it did not compile this once."""
    with monkeypatch.context() as patched:
        patched.setattr("hopplus.program_cache.failures", ["busy"])
        place, path = doubled()
        assert not path.exists()
    doubled()
    assert place.load() is not None


@pytest.mark.parametrize(
    ("what", "stays"), [("RESOURCE_EXHAUSTED: out of memory", True), ("wrong", False)]
)
def test_a_file_stays_where_there_was_no_room(
    kept: Path, monkeypatch: pytest.MonkeyPatch, what: str, stays: bool
) -> None:
    place, path = doubled()

    def refuse(*given: Any, **more: Any) -> None:
        raise RuntimeError(what)

    monkeypatch.setattr(serialize_executable, "deserialize_and_load", refuse)
    assert place.load() is None
    assert path.exists() == stays


def test_what_jax_has_read_from_its_cache_is_not_written(kept: Path) -> None:
    """XLA would leave functions out of it. Compiled anew, it is written."""
    for made_of in range(2):
        # Two functions, or JAX would remember the first.
        lowered = jax.jit(lambda x: jnp.sort(x)).lower(jnp.arange(99.0))
        KeptProgram("sorted", made_of).compiled(lowered)
    assert KeptProgram("sorted", 0).load() is not None
    assert KeptProgram("sorted", 1).load() is None


def test_the_folder_does_not_grow_without_bound(tmp_path: Path) -> None:
    for number in range(6):
        path = tmp_path / f"{number}{ENDING}"
        path.write_bytes(bytes(100))
        os.utime(path, (number, number))
    other = tmp_path / "note.txt"
    other.touch()
    prune(tmp_path, files=4, size=10_000)
    assert sorted(path.stem for path in tmp_path.glob(f"*{ENDING}")) == ["2", "3", "4", "5"]
    prune(tmp_path, files=4, size=250)
    assert sorted(path.stem for path in tmp_path.glob(f"*{ENDING}")) == ["4", "5"]
    prune(tmp_path, files=4, size=10)
    assert [path.stem for path in tmp_path.glob(f"*{ENDING}")] == ["5"], "the newest stays"
    assert other.exists()


def test_nothing_is_kept_where_it_is_switched_off(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubled()
    monkeypatch.setenv(SWITCH, "0")
    place = KeptProgram("doubled", 0)
    assert place.path is None
    assert place.load() is None
    assert SWITCH in place.why_not
    place.compiled(jax.jit(lambda x: x + 1).lower(1.0))
    assert len(list(kept.iterdir())) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PPOConfig(), PPOConfig(learning_rate=3e-3)),
        (np.zeros(3), np.zeros(4)),
        (np.zeros(3), np.ones(3)),
        (np.zeros(3, np.float32), np.zeros(3, np.int32)),
        (jax.random.key(0), jax.random.key(1)),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
        ((1, (2,)), ((1,), 2)),
        (1, True),
        (1, 1.0),
        ("1", 1),
        (None, "None"),
        ({1, 2}, {1, 3}),
        (partial(jnp.sum, axis=0), partial(jnp.sum, axis=1)),
        (jnp.sum, jnp.prod),
        (TrainConfig(), PPOConfig()),
    ],
)
def test_different_things_have_different_fingerprints(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_equal_learners_have_one_fingerprint() -> None:
    config = TrainConfig()
    found = fingerprint(make_learner(config, {}))
    assert fingerprint(make_learner(config, {})) == found
    for changed in (
        replace(config, steps=2 * config.steps),
        replace(config, game=replace(config.game, seats=3)),
        replace(config, ppo=replace(config.ppo, clip=0.1)),
        replace(config, net=replace(config.net, hidden=32)),
    ):
        assert fingerprint(make_learner(changed, {})) != found


@pytest.mark.parametrize(
    "change", ["flags", "setting", "version", "compiler", "devices", "machine"]
)
def test_another_place_has_another_fingerprint(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = fingerprint(0)
    match change:
        case "flags":
            monkeypatch.setenv("XLA_FLAGS", os.environ["XLA_FLAGS"] + " --xla_cpu_x=1")
        case "setting":
            with jax.default_matmul_precision("highest"):
                assert fingerprint(0) != before
            return
        case "version":
            versions = metadata.version
            newer = lambda name: versions(name) + "1" * (name == "jaxlib")  # noqa: E731
            monkeypatch.setattr(metadata, "version", newer)
        case "compiler":  # of a GPU
            known = metadata.version
            there = lambda name: "1" if name == "jax-cuda13-plugin" else known(name)  # noqa: E731
            monkeypatch.setattr(metadata, "version", there)
        case "devices":
            devices = 2 * jax.devices()
            monkeypatch.setattr(jax, "devices", lambda: devices)
        case "machine":
            monkeypatch.setattr(platform, "machine", lambda: "another")
    assert fingerprint(0) != before


def test_changed_source_is_seen(tmp_path: Path) -> None:
    def written(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (1, 1))
        return source_hash(tmp_path, since=2)

    first = written("a.py", "x = 1")
    assert written("a.py", "x = 2") != first
    assert written("a.py", "x = 1") == first
    assert written("games/b.py", "") != first
    (tmp_path / "games/b.py").touch()
    with pytest.raises(NoFingerprint, match=r"b\.py was written while this process runs"):
        source_hash(tmp_path, since=2)


@dataclass(frozen=True)
class Mine:
    """Somebody's own, whose source nobody looks at."""

    size: int = 3


def test_what_is_from_outside_has_no_fingerprint() -> None:
    for one in (Mine(), Mine, lambda x: x, (1, [Mine()]), {"a": doubled}, object()):
        with pytest.raises(NoFingerprint):
            fingerprint(one)
    things: Registry[int] = Registry("thing", {})
    things.add("mine", 1)
    with pytest.raises(NoFingerprint, match="outside"):
        fingerprint(0)


def test_a_function_in_the_place_of_ours_has_no_fingerprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fingerprint(0)
    monkeypatch.setattr("hopplus.learning.policy_loss.ppo_loss", lambda *given: None)
    with pytest.raises(NoFingerprint, match=r"hopplus\.learning\.policy_loss"):
        fingerprint(0)


def test_packages_may_lie_elsewhere_than_jax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where JAX is the system's, equinox and others are in an environment of one's own. A function
    from there is none in the place of ours; one from anywhere else may be."""
    distribution = metadata.distribution

    def found(name: str) -> Any:
        place = SimpleNamespace(version="1", locate_file=lambda path: tmp_path / "site" / path)
        return place if name == "equinox" else distribution(name)

    monkeypatch.setattr(metadata, "distribution", found)
    for name, folder in (("lies_there", "site"), ("lies_elsewhere", "own")):
        module = ModuleType(name)
        module.__file__ = str(tmp_path / folder / f"{name}.py")
        monkeypatch.setitem(sys.modules, name, module)

    def helper() -> None:
        pass

    helper.__module__ = "lies_there.inside"
    monkeypatch.setattr("hopplus.learning.policy_loss.helper", helper, raising=False)
    fingerprint(0)
    helper.__module__ = "lies_elsewhere"
    with pytest.raises(NoFingerprint, match="helper"):
        fingerprint(0)


def test_a_second_start_traces_nothing_and_learns_the_same(kept: Path) -> None:
    config = parse(["train", "ppo", *SMALL_RUN]).config
    traced: list[str] = []

    def note(event: str, duration_secs: float, **more: Any) -> None:
        if event.endswith("jaxpr_trace_duration"):
            traced.append(more["fun_name"])

    def after_two() -> list[np.ndarray]:
        learning, update = first_and_next(make_learner(config, {}), config)
        learning, _ = update(learning)
        learning, metrics = update(learning)
        plain = jax.tree.map(
            lambda leaf: (
                jax.random.key_data(leaf)
                if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
                else leaf
            ),
            (learning, metrics),
        )
        return [np.asarray(leaf) for leaf in jax.tree.leaves(plain)]

    jax.monitoring.register_event_duration_secs_listener(note)
    first = after_two()
    assert "init_all" in traced
    assert len(list(kept.iterdir())) == 2
    traced.clear()
    second = after_two()
    assert not {"init_all", "update_all", "run"} & set(traced)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_evaluation_is_the_same_with_and_without(kept: Path) -> None:
    game = make_game(make_config("stag-hunt-v1", size=3, seats=2, hares=2, horizon=8))
    seating = seat_players("stag,hare", game)
    given = (game, seating, seating.init(jax.random.key(0)), jax.random.key(1), np.arange(5))
    function = vars(play_episodes)["__wrapped__"]
    found = [one(*given) for one in (KeptFunction(function), KeptFunction(function))]
    (path,) = kept.iterdir()
    assert path.name.startswith("play_episodes-")
    found.append(eqx.filter_jit(function)(*given))
    for leaves in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_array_equal(leaves[0], leaves[1])
        np.testing.assert_array_equal(leaves[0], leaves[2])
    assert KeptFunction(function)(*given[:-1], np.arange(4)).length.shape == (4,)
    assert len(list(kept.iterdir())) == 2
