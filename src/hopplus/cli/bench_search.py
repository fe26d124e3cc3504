"""`hopplus bench search`: how fast is the search, beside mctx's?"""

import json
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from hopplus.bench.search import SearchSpeed, decision_breakdown, measure_search
from hopplus.cli.options import check_games, check_positive, check_seed
from hopplus.config import (
    ConfigError,
    GameConfig,
    PartName,
    SearchConfig,
    TrainConfig,
    default_game,
)
from hopplus.games import make_game
from hopplus.games.game import board_size
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line

CURVE = (50, 100, 200, 400)


@dataclass(frozen=True)
class BenchSearch:
    """Decisions of a search per second beside those of mctx: fresh networks in every seat, the same
    for both, opponent models and the true rules."""

    game: GameConfig = field(default_factory=lambda: default_game(size=6))
    search: SearchConfig = field(default_factory=lambda: SearchConfig(simulations=200))
    parts: tuple[PartName, ...] = ("opponent",)
    """What the players have beside a policy; goal adds the inference of goals."""
    games: int = 8
    """Games side by side."""
    rounds: int = 5
    """Decisions of both in turn; the median counts."""
    mctx: bool = True
    """Also measure mctx (pip install mctx)."""
    curve: bool = False
    """Also vary the simulations."""
    breakdown: bool = False
    """Also tell where the time of a decision goes."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of lines."""

    def run(self) -> int:
        check_positive(games=self.games, rounds=self.rounds)
        check_seed(self.seed)
        check_games(self.games)
        if not self.search.simulations:
            raise ConfigError(
                "--search.simulations is 0 but must be from 1 to 32768 to search at all"
            )
        config = TrainConfig(game=self.game, parts=self.parts)
        out: dict[str, Any] = {"machine": device_line(), "speeds": []}
        g, c = make_game(self.game), self.search
        self._say(
            f"{g.name} {board_size(g)}, {g.seats} seats that all search, {self.games:,} games,"
            f" {c.trees} trees; {device_line()}"
        )
        peer = self.mctx
        if peer and find_spec("mctx") is None:
            peer = False
            self._say("mctx is not installed (pip install mctx), so it is left out")
        wanted = [(c.simulations, peer)]
        if self.curve:
            wanted += [(count, False) for count in CURVE]
        with Watchdog():
            for simulations, peer in wanted:
                search = replace(c, simulations=simulations)
                speed = measure_search(config, search, self.games, self.seed, self.rounds, peer)
                out["speeds"].append(speed.as_json())
                self._say(_line(speed, self.games))
            if self.breakdown:
                out["breakdown"] = decision_breakdown(config, c, self.games, self.seed)
                for name, seconds in out["breakdown"].items():
                    self._say(f"{name:<10} {1000 * seconds:9.2f} ms")
        if self.json:
            print(json.dumps(out, indent=2))
        return 0

    def _say(self, text: str) -> None:
        if not self.json:
            print(text, flush=True)


def _line(speed: SearchSpeed, games: int) -> str:
    each = 1e6 * games / speed.ours / speed.simulations
    line = (
        f"{speed.simulations:>5,} simulations: {speed.ours:10,.1f} environment steps/s,"
        f" {each:7,.0f} us a simulation"
    )
    if speed.mctx is None:
        return line
    return (
        f"{line}; mctx {speed.mctx:,.1f} steps/s, ratio {speed.ratio:.1f}; kept from looking beyond"
        f" the horizon {speed.mctx_within:,.1f}, ratio {speed.ratio_within:.1f}"
    )
