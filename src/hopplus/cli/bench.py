"""`hopplus bench`: how fast is it, and does it always finish?"""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated

import tyro

from hopplus.bench.game import measure_game
from hopplus.bench.soak import soak
from hopplus.bench.train import measure_train
from hopplus.bench.update import UpdateCost, cost_curve, measure_update
from hopplus.cli.bench_faults import BenchFaults
from hopplus.cli.bench_report import BenchReport
from hopplus.cli.bench_search import BenchSearch
from hopplus.cli.options import check_games, check_positive, check_seed
from hopplus.config import GameConfig, TrainConfig, default_game
from hopplus.games import make_game
from hopplus.games.game import board_size
from hopplus.presets import PRESETS
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line


@dataclass(frozen=True)
class BenchGame:
    """Environment steps per second with random legal players, all views and new episodes."""

    game: GameConfig = field(default_factory=default_game)
    games: int = 1024
    """Games side by side."""
    seconds: float = 5.0
    """How long to measure, after compilation."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of lines."""

    def run(self) -> int:
        check_positive(games=self.games, seconds=self.seconds)
        check_seed(self.seed)
        check_games(self.games)
        with Watchdog():
            speed = measure_game(self.game, self.games, self.seconds, self.seed)
        machine = device_line()
        if self.json:
            print(json.dumps({"machine": machine, **speed.as_json()}, indent=2))
            return 0
        game = make_game(self.game)
        head = f"{game.name}, {board_size(game)}, {game.seats} seats"
        print(f"{head}, {self.games:,} games, {machine}")
        print(f"compilation    {speed.compile_seconds:14,.1f} s")
        print(f"JAX rules      {speed.rate:14,.0f} steps/s (best {speed.best_rate:,.0f})")
        if speed.plain_rate is None:
            print("plain rules    not measured: they are among the tests of a source checkout")
        else:
            print(f"plain rules    {speed.plain_rate:14,.0f} steps/s")
            print(f"ratio          {speed.ratio:14,.0f}")
            print(f"both agree on views, rewards and ends of {speed.compared_steps:,} steps")
        return 0


@dataclass(frozen=True)
class BenchTrain:
    """Environment steps per second of PPO, with everything an update does."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")] = field(default_factory=TrainConfig)
    seconds: float = 10.0
    """How long to measure, after compilation."""
    json: bool = False
    """Print JSON instead of lines."""

    def run(self) -> int:
        check_positive(seconds=self.seconds)
        with Watchdog():
            speed = measure_train(self.config, self.seconds)
        if self.json:
            print(json.dumps({"machine": device_line(), **speed.as_json()}, indent=2))
            return 0
        c = self.config
        print(
            f"PPO, {c.game.name} {board_size(make_game(c.game))}, {c.game.seats} seats,"
            f" {c.ppo.games:,} games, {c.seeds} seeds, {device_line()}"
        )
        print(f"first update     {speed.first_update_seconds:12,.1f} s, compilation included")
        print(f"then             {speed.rate:12,.0f} steps/s (best {speed.best_rate:,.0f})")
        print(
            f"matrix products  {speed.flops / 1e9:12,.1f} GFLOP/s,"
            f" {speed.flops / speed.peak_flops:.1%} of the {speed.peak_flops / 1e9:,.0f} that one"
            " large product reaches here"
        )
        return 0


@dataclass(frozen=True)
class BenchUpdate:
    """What an update of HOP+ costs beside one of PPO on as much play, and how both grow."""

    game: GameConfig = field(default_factory=default_game)
    rounds: int = 7
    """Rounds of four updates each; the median counts."""
    curve: bool = False
    """Also vary the games, the seats and the imagined steps."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(rounds=self.rounds)
        ppo, hop_plus = (replace(PRESETS[name], game=self.game) for name in ("ppo", "hop-plus"))
        costs: list[UpdateCost] = []

        def show(cost: UpdateCost) -> None:
            costs.append(cost)
            if not self.json:
                print(
                    f"{cost.what:<9} {cost.size:>5,}  ppo {1000 * cost.ppo:9,.1f} ms   hop-plus"
                    f" {1000 * cost.other:9,.1f} ms   ratio {cost.ratio:5.2f}",
                    flush=True,
                )

        if not self.json:
            print(f"an update, without compilation; {device_line()}")
        with Watchdog():
            show(measure_update("defaults", ppo.ppo.steps, ppo, hop_plus, self.rounds))
            if self.curve:
                cost_curve(ppo, hop_plus, self.rounds, show)
        if self.json:
            found = [cost.as_json() for cost in costs]
            print(json.dumps({"machine": device_line(), "costs": found}, indent=2))
        return 0


@dataclass(frozen=True)
class BenchSoak:
    """Run a long compiled learning loop many times and count how often it came to its end."""

    runs: int = 20
    """How many times."""
    updates: int = 100
    """Length of the loop."""
    unsafe: bool = False
    """Use XLA's own settings instead of those of hopplus, to see whether this machine hangs."""
    json: bool = False
    """Print JSON instead of a line."""

    def run(self) -> int:
        check_positive(runs=self.runs, updates=self.updates)
        with Progress(
            "soaking", self.runs, "runs", watched=False, first="busy with the first"
        ) as progress:
            result = soak(
                self.runs, self.updates, self.unsafe, lambda note: progress.advance(1, note)
            )
        if self.json:
            print(json.dumps({"machine": device_line(), **asdict(result)}, indent=2))
        else:
            print(
                f"{self.runs} runs: {result.finished} finished ({result.seconds or 0:.0f} s each),"
                f" {result.hung} hung, {result.failed} failed; {device_line()}"
            )
        return 0 if result.finished == self.runs else 1


@dataclass(frozen=True)
class Bench:
    """Measure speed and endurance on this machine."""

    what: (
        Annotated[BenchGame, tyro.conf.subcommand("game")]
        | Annotated[BenchTrain, tyro.conf.subcommand("train")]
        | Annotated[BenchUpdate, tyro.conf.subcommand("update")]
        | Annotated[BenchSearch, tyro.conf.subcommand("search")]
        | Annotated[BenchFaults, tyro.conf.subcommand("faults")]
        | Annotated[BenchReport, tyro.conf.subcommand("report")]
        | Annotated[BenchSoak, tyro.conf.subcommand("soak")]
    )

    def run(self) -> int:
        return self.what.run()
