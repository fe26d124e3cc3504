"""Which devices a program runs on, and how its arrays lie there.

Seeds lie on different devices first, since they need nothing of each other; then, where devices are
cores of a processor, the sets of parameters of a seed, which learn from the same play and need
nothing else of each other; then games, whose gradients are summed over devices. On one device
nothing of this is done: programs are what they would be without it.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

from hopplus.config import ConfigError, check
from hopplus.runtime import cores, cores_as_devices

Tree = TypeVar("Tree")
Count: TypeAlias = int | Literal["all"]
SEEDS, SETS, GAMES = "seeds", "sets", "games"  # the axes of a mesh
# Arrays [S, ...], rows of them [K, S, ...], arrays [S, B, ...] of games too, or [S, sets, ...] of
# sets of parameters, and what all seeds have in common.
SEEDED, SEEDED_ROWS, PLAYED, SHARED = Spec(SEEDS), Spec(None, SEEDS), Spec(SEEDS, GAMES), Spec()
IN_SETS = Spec(SEEDS, SETS)
MOST_NAMED = 8  # numbers that would do, in a message

_used: ContextVar[tuple[jax.Device, ...]] = ContextVar("devices", default=())
_sets_apart: ContextVar[bool] = ContextVar("sets_apart", default=True)


@contextmanager
def using(count: Count, *, sets_apart: bool = True) -> Iterator[None]:
    """Have programs that are compiled meanwhile run on so many devices, of all processes; cores
    with sets of parameters apart, or else with games apart, as accelerators have them."""
    token, token_sets = _used.set(_find(count)), _sets_apart.set(sets_apart)
    try:
        yield
    finally:
        _used.reset(token)
        _sets_apart.reset(token_sets)


def _find(count: Count) -> tuple[jax.Device, ...]:
    alone = not jax.distributed.is_initialized()
    if count == 1 and alone:
        return ()  # as without the option; JAX need not even have started
    if alone:  # a process of several has one device, unless it was told otherwise
        cores_as_devices()
    there = jax.devices()
    wanted = len(there) if count == "all" else count
    check(wanted >= 1, "--devices", count, "all, or 1 or more")
    if wanted > len(there):
        late = there[0].platform == "cpu" and wanted <= cores()
        more = "; cores are some if JAX has not started and was told of no other number" * late
        raise ConfigError(
            f"--devices is {count}, and there {'is' if len(there) == 1 else 'are'} {len(there)}"
            f" ({there[0].device_kind}): give at most that, or all{more}"
        )
    if wanted == 1 and alone:
        return ()
    each, rest = divmod(wanted, jax.process_count())
    if rest:
        raise ConfigError(
            f"--devices is {count}, for {jax.process_count()} processes: give a multiple, or all"
        )
    of_process: dict[int, list[jax.Device]] = {}
    for device in there:
        of_process.setdefault(device.process_index, []).append(device)
    return tuple(device for own in of_process.values() for device in own[:each])


@dataclass(frozen=True)
class Layout:
    """Devices as a mesh: so many for the seeds, times so many for the sets of parameters of each,
    times so many for its games."""

    mesh: Mesh

    @property
    def devices(self) -> list[jax.Device]:
        return list(self.mesh.devices.flat)

    @property
    def shares(self) -> dict[str, int]:
        """Over how many devices seeds, sets of parameters and games are spread."""
        return {axis: self.mesh.shape[axis] for axis in (SEEDS, SETS, GAMES)}

    def place(self, tree: Tree, specs: Any) -> Tree:
        """Arrays that every process holds in full, where they belong."""
        whole = jax.tree.map(
            lambda spec, part: jax.tree.map(lambda leaf: self._placed(leaf, spec), part),
            specs,
            tree,
            is_leaf=lambda one: isinstance(one, Spec),
        )
        placed: Tree = whole
        return placed

    def _placed(self, leaf: jax.Array, spec: Spec) -> jax.Array:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(self._placed(jax.random.key_data(leaf), spec))
        host = np.asarray(leaf)
        sharding = NamedSharding(self.mesh, spec)
        return jax.make_array_from_callback(host.shape, sharding, lambda place: host[place])

    def gathered(self, tree: Tree) -> Tree:
        """All of what lies here, in every process; they have to ask together."""
        if jax.process_count() == 1:
            return tree
        whole: Tree = self._gather(tree)
        return whole

    @cached_property
    def _gather(self) -> jax.stages.Wrapped:
        return jax.jit(lambda tree: tree, out_shardings=NamedSharding(self.mesh, SHARED))

    def read(self, rows: dict[str, jax.Array]) -> dict[str, np.ndarray]:
        """Arrays [K, S, ...] on the host, of all seeds; processes have to ask together."""
        if jax.process_count() == 1:
            read: dict[str, np.ndarray] = jax.device_get(rows)
            return read
        messages, whole = jax.device_get(self._pack(rows)), {}
        for kind, names in _by_kind(rows).items():
            ends = np.cumsum([rows[name].size // rows[name].shape[1] for name in names])
            for name, part in zip(names, np.split(messages[kind], ends[:-1], axis=1), strict=True):
                count, seeds, *shape = rows[name].shape
                whole[name] = part.reshape(seeds, count, *shape).swapaxes(0, 1)
        return {name: whole[name] for name in rows}

    @cached_property
    def _pack(self) -> jax.stages.Wrapped:
        """All arrays of a kind in one [S, ...] that goes to every device: a message costs its
        latency, however small it is."""

        def pack(rows: dict[str, jax.Array]) -> dict[str, jax.Array]:
            flat = {name: jnp.swapaxes(row, 0, 1) for name, row in rows.items()}
            flat = {name: row.reshape(len(row), -1) for name, row in flat.items()}
            return {
                kind: jnp.concatenate([flat[name] for name in names], axis=1)
                for kind, names in _by_kind(rows).items()
            }

        return jax.jit(pack, out_shardings=NamedSharding(self.mesh, SHARED))

    def shardings(self, specs: Any) -> Any:
        """The same specs on these devices."""
        is_spec = lambda one: isinstance(one, Spec)  # noqa: E731
        return jax.tree.map(lambda spec: NamedSharding(self.mesh, spec), specs, is_leaf=is_spec)


def _by_kind(rows: dict[str, jax.Array]) -> dict[str, list[str]]:
    """The names of arrays of each kind of number."""
    kinds: dict[str, list[str]] = {}
    for name in sorted(rows):
        kinds.setdefault(rows[name].dtype.name, []).append(name)
    return kinds


def layout_of(seeds: int, sets: int, games: int) -> Layout | None:
    """How so many seeds, each with so many sets of parameters that can learn apart and so many
    games, lie on the devices in use; None for one device. Raises `ConfigError` if they do not
    divide among them."""
    devices = _used.get()
    if not devices:
        return None
    wanted = len(devices)
    # Elsewhere what sets tell each other was never tried, and games are many.
    on_cores = devices[0].platform == "cpu" and jax.process_count() == 1
    sets = sets if on_cores and _sets_apart.get() else 1
    shape = _shares(seeds, sets, wanted)
    if games % shape[-1]:
        every = range(1, len(jax.devices()) + 1)
        fit = [str(n) for n in every if games % _shares(seeds, sets, n)[-1] == 0]
        more = f" and {len(fit) - MOST_NAMED} more" if len(fit) > MOST_NAMED else ""
        raise ConfigError(
            f"--devices is {wanted}, among which --seeds {seeds} times --ppo.games {games}"
            f" do not divide: {', '.join(fit[-MOST_NAMED:])}{more} would do"
        )
    return Layout(Mesh(np.array(devices).reshape(shape), (SEEDS, SETS, GAMES)))


def _shares(seeds: int, sets: int, devices: int) -> tuple[int, int, int]:
    """Over how many of so many devices each is spread."""
    for_seeds = math.gcd(seeds, devices)
    for_sets = math.gcd(sets, devices // for_seeds)
    return for_seeds, for_sets, devices // for_seeds // for_sets


def spread(
    function: Callable[..., Any],
    layout: Layout | None,
    given: Any,
    found: Any,
    **options: Any,
) -> jax.stages.Wrapped:
    """`jax.jit` of a function of seeds side by side, with specs of what it is given and gives.

    Every device works on its own seeds and on its share of their sets (see `learning.shares`), and
    XLA finds what the games of a seed need of each other: the same numbers come out as on one
    device, but for the order in which floats are added.
    """
    if layout is None:
        return jax.jit(function, **options)

    # Where nothing is left for XLA to spread it need not look: that is a tenth of compilation.
    apart = {SEEDS, SETS} if layout.mesh.shape[GAMES] > 1 else {SEEDS, SETS, GAMES}

    def own(specs: Any) -> Any:
        """The part of the specs that says so; what is left is for XLA."""
        return jax.tree.map(
            lambda spec: Spec(*(axis if axis in apart else None for axis in spec)),
            specs,
            is_leaf=lambda one: isinstance(one, Spec),
        )

    local = jax.shard_map(
        function,
        mesh=layout.mesh,
        in_specs=own(given),
        out_specs=own(found),
        axis_names=apart,
        check_vma=False,  # of scans whose first values are constants
    )
    placed = {"in_shardings": layout.shardings(given), "out_shardings": layout.shardings(found)}
    return jax.jit(local, **placed, **options)


def cores_for(runs: Iterable[tuple[int, int]]) -> int:
    """As many cores as the seeds of each run, times the sets of parameters of a seed, divide among;
    1 where JAX computes on something else, and in one of several processes."""
    most = _most_devices()
    if jax.distributed.is_initialized() or jax.default_backend() != "cpu":
        return 1
    counts = range(1, min(most, cores()) + 1)
    return max(
        count
        for count in counts
        if all(_shares(seeds, sets, count)[-1] == 1 for seeds, sets in runs)
    )


@dataclass(frozen=True)
class Used:
    """What a run was trained on."""

    platform: str
    count: int

    @classmethod
    def now(cls) -> Self:
        """What programs that are compiled now run on."""
        return cls(jax.default_backend(), count_used())

    def here(self) -> bool:
        """Whether there are as many of them."""
        most = _most_devices()
        return jax.default_backend() == self.platform and self.count <= most


def _most_devices() -> int:
    """How many there are; cores are some where JAX has nothing else to compute on."""
    if not jax.distributed.is_initialized():
        cores_as_devices()
    return len(jax.devices())


def count_used() -> int:
    """How many devices programs that are compiled now run on."""
    return max(1, len(_used.get()))


def check_rows(name: str, rows: int) -> None:
    """Raise `ConfigError` unless as many rows as an option says divide among the devices in use."""
    count = count_used()
    check(rows % count == 0, name, rows, f"a multiple of --devices, which is {count}")


def scatter(tree: Tree) -> Tree:
    """Rows [B, ...] that need nothing of each other on different devices, where functions of them
    are computed then; numbers go everywhere."""
    devices = _used.get()
    if not devices:
        return tree
    mesh = Mesh(np.array(devices), (GAMES,))
    specs = jax.tree.map(lambda leaf: Spec(GAMES) if leaf.ndim else SHARED, tree)
    rows: Tree = jax.device_put(tree, Layout(mesh).shardings(specs))
    return rows


def spread_rows(function: Callable[..., Any]) -> jax.stages.Wrapped:
    """`jax.jit` of a function of something that all devices have in full and of rows [B, ...] that
    need nothing of each other, of which each device has its own; it gives rows, too."""
    devices = _used.get()
    if not devices:
        return jax.jit(function)
    mesh, rows = Mesh(np.array(devices), (SEEDS,)), SEEDED
    return jax.jit(
        jax.shard_map(function, mesh=mesh, in_specs=(SHARED, rows), out_specs=rows, check_vma=False)
    )


def shares_games() -> bool:
    """Whether the program that is traced has the games of a seed on several devices."""
    return bool(jax.sharding.get_abstract_mesh().shape.get(GAMES, 1) > 1)


def spread_by_xla() -> bool:
    """Whether XLA may spread rows of the program that is traced over several devices, as it cannot
    do with a kernel: games of a seed, or rows that were scattered."""
    inside = jax.sharding.get_abstract_mesh().shape
    return shares_games() if inside else len(_used.get()) > 1


def split_rows(tree: Tree, axis: int) -> Tree:
    """Rows to learn from, a share of them on each of the devices that have games of the seed. XLA
    would have every device learn from all of them."""
    if not shares_games():
        return tree
    split = NamedSharding(jax.sharding.get_abstract_mesh(), Spec(*[None] * axis, GAMES))
    rows: Tree = jax.lax.with_sharding_constraint(tree, split)
    return rows
