"""`hopplus bench search`: decisions per second and mctx's, on the same networks, from the same
states."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from hopplus.cli.paged import show
from hopplus.cli.reading.devices import Devices
from hopplus.cli.reading.options import check_options
from hopplus.config import (
    ConfigError,
    GameConfig,
    PartName,
    SearchConfig,
    TrainConfig,
    default_game,
)
from hopplus.devices import check_rows, count_used, spread_rows
from hopplus.games import make_game
from hopplus.games.game import board_size, views
from hopplus.planning.dynamics import Chance, draw_chance
from hopplus.planning.search import Found, search
from hopplus.planning.tree import Leaf, Reached
from hopplus.players.actor import make_actor
from hopplus.players.parameters import PlayerParams
from hopplus.players.planner import Planner, Thought, with_search
from hopplus.report.page import Column, Page, Section
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line

CURVE = (50, 100, 200, 400)  # simulations
Searching = Callable[[jax.Array], jax.Array]  # a key -> the roots' values [games, ...]


@dataclass(frozen=True)
class BenchSearch:
    """Decisions of a search per second and those of mctx: fresh networks in every seat, the same
    for both, opponent models and the true rules."""

    game: GameConfig = field(default_factory=lambda: default_game(size=6))
    search: SearchConfig = field(default_factory=lambda: SearchConfig(simulations=200))
    parts: tuple[PartName, ...] = ("opponent",)
    """Auxiliary models of the players; goal adds the inference of goals."""
    games: int = 8
    """Games side by side."""
    rounds: int = 5
    """Decisions of both in turn; the median counts."""
    on: Annotated[Devices, tyro.conf.arg(name="")] = field(default_factory=Devices)
    mctx: bool = True
    """Also measure mctx (pip install mctx)."""
    curve: bool = False
    """Also vary the simulations."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(games=self.games, rounds=self.rounds, seed=self.seed)
        if not self.search.simulations:
            raise ConfigError(
                "--search.simulations is 0 but must be from 1 to 32768 to search at all"
            )
        peer = self.mctx and find_spec("mctx") is not None
        if self.mctx and not peer:
            say("mctx is not installed (pip install mctx), so it is left out")
        wanted = [(self.search.simulations, peer)]
        wanted += [(count, False) for count in CURVE if self.curve]
        config = TrainConfig(game=self.game, parts=self.parts)
        speeds = []
        total, busy = len(wanted), "busy with the first"
        with self.on.used():
            check_rows("--games", self.games)
            make_planner(config, self.search)  # raises before work is announced
            with Progress("searching", total, "searches", first=busy) as progress:
                for count, with_mctx in wanted:
                    search = replace(self.search, simulations=count)
                    work = (self.games, self.seed, self.rounds, with_mctx)
                    speeds.append(measure_search(config, search, *work))
                    progress.advance(1, f"{count:,} simulations: {speeds[-1].ours:,.1f} steps/s")
            page = self._page(speeds, count_used())
        return show(page, as_json=self.json)

    def _page(self, speeds: "list[SearchSpeed]", devices: int) -> Page:
        g, machine = make_game(self.game), device_line()
        many = f"{self.games:,} games" + f" on {devices} devices" * (devices > 1)
        title = (
            f"{g.name} {board_size(g)}, {g.seats} seats that all search, {many},"
            f" {self.search.trees} trees; {machine}"
        )
        rates = ("ours, steps/s", "us a simulation", "mctx, steps/s", "ratio")
        within = ("mctx within the horizon, steps/s", "ratio")  # it looks beyond the ends of games
        digits = (",.1f", ",.0f", ",.1f", ".1f", ",.1f", ".1f")
        header = [Column(name, how) for name, how in zip((*rates, *within), digits, strict=True)]
        rows = [
            [
                one.simulations,
                one.ours,
                1e6 * self.games / one.ours / one.simulations,
                one.mctx,
                one.ratio,
                one.mctx_within,
                one.ratio_within,
            ]
            for one in speeds
        ]
        table = Section(title, header=["simulations", *header], rows=rows)
        payload = {"machine": machine, "devices": devices, "speeds": speeds}
        return Page(title, "", sections=[table], payload=payload)


@dataclass(frozen=True)
class SearchSpeed:
    """Decisions of all seats per second: environment steps that could be played."""

    simulations: int
    ours: float
    mctx: float | None  # as it comes: it goes on below the ends of episodes
    mctx_within: float | None  # told to look no deeper than episodes are long, as ours is
    our_value: float  # mean over the roots, to see that all look at the same
    mctx_value: float | None
    compile_seconds: float

    @property
    def ratio(self) -> float | None:
        return None if self.mctx is None else self.ours / self.mctx

    @property
    def ratio_within(self) -> float | None:
        return None if self.mctx_within is None else self.ours / self.mctx_within

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "ratio_within": self.ratio_within}


def make_planner(config: TrainConfig, search: SearchConfig) -> Planner:
    """One who searches a tree, or `ConfigError`."""
    game = make_game(config.game)
    if search.others != "models":
        raise ConfigError("bench search measures a search with models: leave --search.others out")
    planner = with_search(make_actor("bench", game, config), game, search, config)
    if not isinstance(planner, Planner) or search.kind != "tree":
        raise ConfigError("bench search needs --search.kind tree and at least one simulation")
    return planner


class Roots:
    """Fresh parameters in every seat of fresh games, about to decide."""

    def __init__(self, config: TrainConfig, search: SearchConfig, games: int, seed: int) -> None:
        self.planner = make_planner(config, search)
        game = self.planner.game
        self.config, self.games = search.within(game.horizon), games
        self.seats = game.seats
        key_params, key_games = jax.random.split(jax.random.key(seed))
        init = jax.jit(jax.vmap(self.planner.init))
        self.param_sets: PlayerParams = init(jax.random.split(key_params, game.seats))
        self.keys = jax.random.split(key_games, games)

    def thoughts(self, param_sets: PlayerParams, keys: jax.Array) -> tuple[Thought, Leaf]:
        """[seats, games, ...] where every seat stands in games that begin by these keys."""
        game, planner = self.planner.game, self.planner

        def of_game(key: jax.Array) -> Any:
            seen = views(game, game.init(key))
            over_seats = jax.vmap(planner.root, in_axes=(0, None, 0))
            return over_seats(param_sets, planner.start(), seen)

        return jax.vmap(of_game, out_axes=1)(keys)

    def searching(self, run: Callable[..., jax.Array]) -> Searching:
        """What does so: `run` is given parameters and, for each game, a key by which it begins and
        one by which it is looked ahead; it gives values [games, ...]."""
        compiled, split = spread_rows(run), jax.jit(jax.random.split, static_argnums=1)
        return lambda key: compiled(self.param_sets, (self.keys, split(key, self.games)))

    def recurrent_fn(
        self, param_sets: PlayerParams, node: Any, action: jax.Array, chance: Chance
    ) -> Reached:
        """All replicas [seats, L, ...] one step on."""

        def of_seat(player_params: PlayerParams, *replica: Any) -> Reached:
            return jax.vmap(self.planner.recurrent_fn(player_params))(*replica)

        return jax.vmap(of_seat)(param_sets, node, action, chance)


def ours(roots: Roots) -> Searching:
    """The search of this package."""
    c = roots.config

    def run(param_sets: PlayerParams, keys: tuple[jax.Array, jax.Array]) -> jax.Array:
        thoughts, leaves = roots.thoughts(param_sets, keys[0])
        shape = (roots.seats, c.trees, c.simulations or 0)

        def draw(key: jax.Array) -> Chance:
            return draw_chance(key, shape, roots.seats - 1)

        chances = jax.vmap(draw, out_axes=1)(keys[1])

        def of_seat(
            player_params: PlayerParams, thoughts: Thought, leaves: Leaf, chances: Chance
        ) -> Found:
            def one(thought: Thought, leaf: Leaf, chance: Chance) -> Found:
                return search(roots.planner.recurrent_fn(player_params), thought, leaf, chance, c)

            over_trees = jax.vmap(one, in_axes=(None, None, 0))
            return jax.vmap(over_trees)(thoughts, leaves, chances)

        value = jax.vmap(of_seat)(param_sets, thoughts, leaves, chances).value
        return value.swapaxes(0, 1)

    return roots.searching(run)


def mctx_search(roots: Roots, depth: int | None) -> Searching:
    """That of mctx, with its own PUCT and the same weight of the prior."""
    import mctx  # a peer, not a dependency

    c = roots.config

    def run(param_sets: PlayerParams, keys: tuple[jax.Array, jax.Array]) -> jax.Array:
        games = len(keys[0])
        replicas = games * c.trees

        def flat(leaf: jax.Array) -> jax.Array:
            return leaf.reshape(roots.seats * replicas, *leaf.shape[2:])

        thoughts, leaves = jax.tree.map(
            lambda leaf: flat(jnp.repeat(leaf, c.trees, axis=1)),
            roots.thoughts(param_sets, keys[0]),
        )

        def by_seat(tree: Any) -> Any:
            return jax.tree.map(
                lambda leaf: leaf.reshape(roots.seats, replicas, *leaf.shape[1:]), tree
            )

        def recurrent(
            param_sets: PlayerParams, key: jax.Array, action: jax.Array, node: Any
        ) -> Any:
            chance = draw_chance(key, (roots.seats, replicas), roots.seats - 1)
            reached = roots.recurrent_fn(param_sets, by_seat(node), by_seat(action), chance)
            reached = jax.tree.map(flat, reached)
            after = mctx.RecurrentFnOutput(
                reward=reached.reward,
                discount=jnp.where(reached.ended, 0.0, c.worth),
                prior_logits=reached.leaf.prior,
                value=reached.leaf.value,
            )
            return after, reached.node

        def select(key: jax.Array, tree: Any, node: jax.Array, depth: jax.Array) -> jax.Array:
            return mctx.muzero_action_selection(
                key, tree, node, depth, pb_c_init=c.exploration, pb_c_base=1e9
            )

        tree = mctx.search(
            param_sets,
            keys[1][0],
            root=mctx.RootFnOutput(
                prior_logits=leaves.prior, value=leaves.value, embedding=thoughts
            ),
            recurrent_fn=recurrent,
            root_action_selection_fn=lambda key, tree, node: select(key, tree, node, jnp.int32(0)),
            interior_action_selection_fn=select,
            num_simulations=c.simulations,
            max_depth=depth,
        )
        return tree.summary().value.reshape(roots.seats, games, c.trees).swapaxes(0, 1)

    return roots.searching(run)


def measure_search(
    config: TrainConfig, search: SearchConfig, games: int, seed: int, rounds: int, with_mctx: bool
) -> SearchSpeed:
    """All in turn, so that a machine's moods hit them alike; medians over rounds."""
    roots = Roots(config, search, games, seed)
    runs = [ours(roots)]
    if with_mctx:
        runs += [mctx_search(roots, depth) for depth in (None, roots.config.depth)]
    key = jax.random.key(seed)
    began = time.perf_counter()
    our_value = float(runs[0](key).mean())
    compiled = time.perf_counter() - began
    values = [float(run(key).mean()) for run in runs[1:]]
    spent = np.zeros((rounds, len(runs)))
    keys = jax.block_until_ready([jax.random.fold_in(key, number) for number in range(rounds)])
    for number in range(rounds):
        for which, run in enumerate(runs):
            began = time.perf_counter()
            jax.block_until_ready(run(keys[number]))
            spent[number, which] = time.perf_counter() - began
    ours_rate, *mctx_rates = (games / np.median(spent, axis=0)).tolist()
    mctx, within = mctx_rates or (None, None)
    mctx_value = values[0] if values else None
    simulations = search.simulations or 0
    return SearchSpeed(simulations, ours_rate, mctx, within, our_value, mctx_value, compiled)
