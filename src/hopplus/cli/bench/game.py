"""`hopplus bench game`: environment steps per second, and those of the plain-Python rules."""

import runpy
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import GameConfig, default_game
from hopplus.games import make_game
from hopplus.games.game import Game, board_size
from hopplus.play.rollout import Play, rollout, start
from hopplus.play.seating import Seating, seat_players
from hopplus.report.page import Page, Section
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line
from hopplus.types import Trajectory

TESTS = Path(__file__).resolve().parents[4] / "tests"
# Games whose rules have a second reading in plain Python that leaves nothing to chance.
PLAIN_RULES = {"stag-hunt-v1": "plain_stag_hunt.py", "snowdrift-v1": "plain_snowdrift.py"}
PLAIN_GAMES = 32  # few, because plain Python is slow


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
        check_options(games=self.games, seconds=self.seconds, seed=self.seed)
        with Watchdog():
            speed = measure_game(self.game, self.games, self.seconds, self.seed)
        return show(_page(self.game, speed), as_json=self.json)


@dataclass(frozen=True)
class GameSpeed:
    """Steps per second; one step moves all seats of one game and makes all their views."""

    games: int
    compile_seconds: float
    rate: float  # the median over repeats
    best_rate: float
    plain_rate: float | None  # the plain-Python rules on the same games; None without a checkout
    compared_steps: int  # in which both gave the same rewards, endings and views
    ratio: float | None  # of the two rates


@eqx.filter_jit
def start_games(game: Game, seating: Seating, key: jax.Array, games: int) -> Play:
    return jax.vmap(lambda key: start(game, seating, key))(jax.random.split(key, games))


@eqx.filter_jit(donate="all-except-first")
def play_on(rules: tuple[Game, Seating], plays: Play, steps: int) -> tuple[Play, jax.Array]:
    """Play on. The games in flight hold every seat's view, so each step must make them."""
    game, seating = rules
    params = tuple(() for _ in seating.groups)
    plays, trajectory = rollout(game, seating, params, plays, steps)
    return plays, trajectory.outcome.reward.sum()


def measure_game(config: GameConfig, games: int, seconds: float, seed: int = 0) -> GameSpeed:
    """Random legal players at `games` boards for about `seconds`, new episodes included."""
    game = make_game(config)
    seating = seat_players(",".join(["random"] * game.seats), game)
    key = jax.random.key(seed)
    steps = 64
    began = time.perf_counter()
    plays = start_games(game, seating, key, games)
    plays, _ = jax.block_until_ready(play_on((game, seating), plays, steps))
    compile_seconds = time.perf_counter() - began
    rates: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(rates) < 5:
        began = time.perf_counter()
        plays, _ = jax.block_until_ready(play_on((game, seating), plays, steps))
        rates.append(games * steps / (time.perf_counter() - began))
    rate = float(np.median(rates))
    plain_rate, compared = _measure_plain(config, game, seating, key)
    ratio = rate / plain_rate if plain_rate else None
    return GameSpeed(games, compile_seconds, rate, max(rates), plain_rate, compared, ratio)


@eqx.filter_jit
def _record(game: Game, seating: Seating, plays: Play, steps: int) -> tuple[Trajectory, Any]:
    """The steps of a few games with the views before each: what the plain rules must repeat."""
    params = tuple(() for _ in seating.groups)
    trajectory = rollout(game, seating, params, plays, steps)[1]
    seats = jax.numpy.arange(game.seats)
    look = jax.vmap(game.view, in_axes=(None, 0))
    planes = jax.vmap(jax.vmap(lambda state: look(state, seats).planes))(trajectory.state)
    return trajectory, planes


def _measure_plain(
    c: Any, game: Game, seating: Seating, key: jax.Array
) -> tuple[float | None, int]:
    """Step games by the plain rules, views and legality included; check that both agree."""
    rules_file = TESTS / PLAIN_RULES.get(game.name, "")
    if not rules_file.is_file():
        return None, 0
    plain: Any = SimpleNamespace(**runpy.run_path(str(rules_file)))
    names = set(plain.Rules.__dataclass_fields__) - {"height", "width"}
    height, width, _ = game.shape
    rules = plain.Rules(height=height, width=width, **{n: getattr(c, n) for n in names})
    plays = start_games(game, seating, key, PLAIN_GAMES)
    trajectory, planes = jax.device_get(_record(game, seating, plays, 64))
    done, reward = trajectory.outcome.done, trajectory.outcome.reward
    joints = trajectory.act.action.tolist()
    spent = 0.0
    for b in range(PLAIN_GAMES):
        board = None
        for t in range(len(joints)):
            if board is None:  # a new episode
                state = jax.tree.map(lambda leaf: leaf[t, b], trajectory.state)  # noqa: B023
                text = game.show(state)
                board = plain.read(rules, text)
            began = time.perf_counter()
            seen = [plain.view(rules, board, seat) for seat in range(game.seats)]
            board, result = plain.step(rules, board, joints[t][b])
            spent += time.perf_counter() - began
            same = np.allclose(result.rewards, reward[t, b], atol=1e-6)
            same &= result.done == done[t, b]
            same &= np.array_equal([view.planes for view in seen], planes[t, b])
            if not same:
                raise AssertionError(f"the two readings of the rules differ, game {b}, step {t}")
            if result.done:
                board = None
    steps = len(joints) * PLAIN_GAMES
    return steps / spent, steps


def _page(c: GameConfig, speed: GameSpeed) -> Page:
    machine = device_line()
    rows = [
        ["compilation", f"{speed.compile_seconds:,.1f} s"],
        ["JAX rules", f"{speed.rate:,.0f} steps/s (best {speed.best_rate:,.0f})"],
    ]
    if speed.plain_rate is None:
        answer = "plain rules not measured: they are among the tests of a source checkout"
    else:
        rows.append(["plain rules", f"{speed.plain_rate:,.0f} steps/s"])
        rows.append(["ratio", f"{speed.ratio:,.0f}"])
        answer = f"both agree on views, rewards and ends of {speed.compared_steps:,} steps"
    title = (
        f"{c.name}, {board_size(make_game(c))}, {c.seats} seats, {speed.games:,} games, {machine}"
    )
    payload = {"machine": machine, **asdict(speed)}
    return Page(title, answer, sections=[Section(title, rows=rows)], payload=payload)
