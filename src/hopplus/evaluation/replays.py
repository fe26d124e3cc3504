"""A few telling episodes, moment by moment, with what everyone thought: ready for JSON.

docs/replay.md says what is in it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.evaluation.recording import Plain, goals_of, plain_episode
from hopplus.evaluation.watch import Watched, memories, sitting, watch
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.company import Company, make_company
from hopplus.learning.restore import run_seats
from hopplus.learning.rollout import Play, start
from hopplus.learning.trained import named
from hopplus.players.insight import actor_of
from hopplus.players.seating import Seating
from hopplus.runs.folder import RunFolder
from hopplus.types import Params

AMONG = 256  # episodes to pick from


def replays_of(run: RunFolder, run_seed: int = 0, seed: int = 0, among: int = AMONG) -> Plain:
    """Telling episodes of a run's own players; `run_seed` counts the run's seeds from 0."""
    game = make_game(run.config().game)
    names, known = run_seats(run, run_seed)
    seated = {name: named(player, name) for name, player in known.items()}
    return replays(game, make_company(names, game, seated), seed, among)


def replays(game: Game, company: Company, seed: int = 0, among: int = AMONG) -> Plain:
    """The best, the worst, the median and, if anybody has models of the others, the most surprising
    of the first episodes, numbered as `hopplus evaluate` with that seed plays them."""
    key_params, key_play = jax.random.split(jax.random.key(seed))
    params = company.init(key_params)
    plays = numbered(game, company.seating, key_play, np.arange(among))
    seen = watch(game, company.seating, params, plays)
    picked = telling(np.asarray(_scores(company.seating, seen)), np.asarray(seen.surprise))
    return recorded(game, company.seating, params, seen, picked)


def numbered(game: Game, seating: Seating, key: jax.Array, numbers: np.ndarray) -> Play:
    """The games [B, ...] in which episodes of those numbers [B] begin."""

    @jax.jit
    def begun(numbers: jax.Array) -> Play:
        return jax.vmap(lambda n: start(game, seating, jax.random.fold_in(key, n)))(numbers)

    plays: Play = begun(jnp.asarray(numbers, jnp.uint32))
    return plays


def telling(scores: np.ndarray, surprise: np.ndarray) -> dict[str, int]:
    """Which of [B] episodes to look at, by scores and by surprise, nan where there is none."""
    order = np.argsort(scores, kind="stable")
    picked = {"best": order[-1], "worst": order[0], "median": order[len(order) // 2]}
    if not np.isnan(surprise).all():
        picked["surprising"] = np.nanargmax(surprise)
    return {label: int(place) for label, place in picked.items()}


def recorded(
    game: Game,
    seating: Seating,
    params: tuple[Params, ...],
    seen: Watched,
    picked: Mapping[str, int],
    first: int = 0,
) -> Plain:
    """Those of the watched games [T, B, ...] that are picked, by their labels; `first` is the
    number of the first of all."""
    who = sitting(seating, params)
    kinds = [goals_of(one.player) for options in who for one in options]
    goals = next((kind for kind in kinds if kind != "none"), "none")
    by_seat = memories(seating, seen.trajectory.memory, axis=2)
    seen = replace(seen, trajectory=replace(seen.trajectory, memory=tuple(by_seat)))
    surprise = np.asarray(seen.surprise)
    episodes = []
    for label, place in picked.items():
        one: Watched = jax.device_get(jax.tree.map(lambda leaf: leaf[:, place], seen))  # noqa: B023
        known = None if np.isnan(surprise[place]) else round(float(surprise[place]), 4)
        about: dict[str, Any] = {"label": label, "number": first + place, "surprise": known}
        episodes.append(about | plain_episode(game, seating.players, who, one, goals))
    rows, columns, _ = game.shape
    return {
        "game": f"{game.name} {rows}x{columns}",
        "rows": rows,
        "columns": columns,
        "obstacles": episodes[0]["obstacles"],
        "actions": list(game.action_names),
        "kinds": list(game.targets),
        "letters": [target.letter for target in game.targets.values()],
        "horizon": game.horizon,
        "players": list(seating.names),
        "goals": goals,
        "episodes": episodes,
    }


def _scores(seating: Seating, seen: Watched) -> jax.Array:
    """[B] the mean return of the seats that have learned, or of all if none has."""
    learned = [_learns(player) for player in seating.players]
    weights = np.array(learned if any(learned) else [True] * len(learned), np.float32)
    return seen.returns @ weights / weights.sum()


def _learns(player: Any) -> bool:
    return any(actor_of(one) is not None for one in getattr(player, "players", [player]))
