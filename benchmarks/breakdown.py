"""Where does the time of a search's decision go, and that of an update? Operations, added up by
named scope."""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax

from benchmarks import main
from hopplus.cli.bench.search import Roots
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import (
    ConfigError,
    GameConfig,
    PartName,
    SearchConfig,
    TrainConfig,
    default_game,
)
from hopplus.games.game import views
from hopplus.learning.from_run import make_learner
from hopplus.play.seeds import seed_keys
from hopplus.players.parameters import PlayerParams
from hopplus.presets import PRESETS
from hopplus.report.page import Column, Page, Section
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line

SCOPES = ("prepare", "infer", "select", "expand", "backup")
STAGES = ("choose", "models", "improve")  # of an update; the rest is playing and looking back

Program = Callable[..., Any]


@dataclass(frozen=True)
class Breakdown:
    """Tell where the time of one decision of all seats in all games goes, or of one update."""

    update: str | None = None
    """The preset whose update is broken down, with its own search, parts and number of games; its
    actions are chosen in all steps of it. A single decision when not given."""
    game: GameConfig = field(default_factory=lambda: default_game(size=6))
    search: SearchConfig = field(default_factory=lambda: SearchConfig(simulations=200))
    parts: tuple[PartName, ...] = ("opponent",)
    """What the players have beside a policy; goal adds the inference of goals."""
    games: int = 8
    """Games side by side."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(seed=self.seed, games=self.games)
        if self.update is not None and self.update not in PRESETS:
            raise ConfigError(f"no preset {self.update!r}; there are {', '.join(PRESETS)}")
        with Watchdog():
            if self.update is None:
                config = TrainConfig(game=self.game, parts=self.parts)
                what = f"one decision of all seats in {self.games:,} games"
                spent = decision_breakdown(config, self.search, self.games, self.seed)
            else:
                config = replace(PRESETS[self.update], game=self.game, seed=self.seed)
                what = f"one update of {self.update}"
                spent = update_breakdown(config)
        machine, total = device_line(), sum(spent.values())
        table = Section(
            f"{what}; {machine}",
            header=["in", Column("ms", ",.2f"), Column("share", ".1%")],
            rows=[[name, 1000 * seconds, seconds / total] for name, seconds in spent.items()],
        )
        payload = {"machine": machine, "breakdown": spent}
        page = Page("breakdown", "", sections=[table], payload=payload)
        return show(page, as_json=self.json)


def decision_breakdown(
    config: TrainConfig, search: SearchConfig, games: int, seed: int
) -> dict[str, float]:
    """Seconds of one decision of all seats in all games, by what they are spent on."""
    roots = Roots(config, search, games, seed)
    keys = jax.random.split(jax.random.key(seed), (games, roots.seats))
    planner = roots.planner

    def decide(param_sets: PlayerParams, keys: jax.Array) -> Any:
        def of_game(key: jax.Array, keys: jax.Array) -> Any:
            seen = views(planner.game, planner.game.init(key))
            memory = planner.start()
            over_seats = jax.vmap(planner.act, in_axes=(0, None, 0, 0))
            return over_seats(param_sets, memory, seen, keys)

        return jax.vmap(of_game)(roots.keys, keys)

    return breakdown(decide, (roots.param_sets, keys), SCOPES)


def update_breakdown(config: TrainConfig) -> dict[str, float]:
    """Seconds of one update, by what they are spent on."""
    learner = make_learner(config, {})
    first = jax.jit(learner.init_all)(seed_keys(config))
    return breakdown(learner.update_all, (first,), STAGES)


def breakdown(
    program: Program, arguments: tuple[Any, ...], scopes: Sequence[str]
) -> dict[str, float]:
    """Seconds of one run by the innermost of the `scopes` (`jax.named_scope`) an operation is in;
    `rest` has all others.

    XLA fuses operations, and each fusion counts where its result belongs.
    """
    cached = jax.config.values["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)  # programs from there tell no times
    try:
        compiled = jax.jit(program).lower(*arguments).compile()
    finally:
        jax.config.update("jax_enable_compilation_cache", cached)
    scope_of = _scopes(compiled.as_text() or "", scopes)
    jax.block_until_ready(compiled(*arguments))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(compiled(*arguments))
        (trace,) = Path(folder).rglob("*.xplane.pb")
        events = jax.profiler.ProfileData.from_file(str(trace))
    spent: Counter[str] = Counter(dict.fromkeys([*scopes, "rest"], 0.0))
    for plane in events.planes:
        for line in plane.lines:
            for event in line.events:
                if scope := scope_of.get(event.name.replace(".", "_")):
                    spent[scope] += event.duration_ns / 1e9
    return dict(spent)


def _scopes(text: str, scopes: Sequence[str]) -> dict[str, str]:
    """The scope of every operation of a compiled program but loops, by its name in traces."""
    found = {}
    for line in text.splitlines():
        named = re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = ", line)
        if named is None or " while(" in line or " call(" in line:
            continue
        where = re.search(r'op_name="([^"]*)"', line)
        words = re.findall(r"\w+", where[1]) if where else []  # as in jit(f)/vmap(select)/add
        inside = [word for word in words if word in scopes]
        found[named[1].replace(".", "_")] = inside[-1] if inside else "rest"
    return found


if __name__ == "__main__":
    sys.exit(main(Breakdown))
