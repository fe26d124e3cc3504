"""A few telling episodes, moment by moment, with what everyone thought: ready for JSON.

docs/replay.md says what is in it.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.evaluation.replay.recording import Plain, goals_of, plain_episode, rounded
from hopplus.evaluation.replay.watch import Watched, anyone, game_of, seated, sitting, watch
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.from_run import run_seats
from hopplus.play.introspection import actor_of
from hopplus.play.lineup import Lineup, make_lineup
from hopplus.play.rollout import Play, start
from hopplus.play.seating import Seating
from hopplus.players.planner import Planner
from hopplus.runs.folder import RunFolder

AMONG, FEWER = 256, 64  # episodes to pick from


def replays_of(
    run: RunFolder, run_seed: int | None = None, seed: int = 0, among: int | None = None
) -> Plain:
    """Telling episodes of a run's own players, those of its first seed or of `run_seed`."""
    return replays(*run_lineup(run, run_seed), seed, among)


def run_lineup(run: RunFolder, run_seed: int | None = None) -> tuple[Game, Lineup]:
    """A run's game, and who plays it there."""
    game = make_game(run.config().game)
    seated = run_seats(run, run_seed)
    return game, make_lineup(seated.names, game, seated.known)


def replays(game: Game, lineup: Lineup, seed: int = 0, among: int | None = None) -> Plain:
    """The best, the worst, the median and, if anybody has models of the others, the most surprising
    of the first episodes, numbered as `hopplus evaluate` with that seed plays them."""
    return telling_replays(game, lineup, watch_first(game, lineup, seed, among))


def telling_replays(game: Game, lineup: Lineup, seen: Watched) -> Plain:
    """Those of the watched episodes that tell most."""
    returns, surprise = np.asarray(seen.returns), np.asarray(seen.surprise)
    picked = most_telling(scores(lineup.seating, returns), surprise)
    return recorded(game, lineup, seen, picked)


def watch_first(game: Game, lineup: Lineup, seed: int = 0, among: int | None = None) -> Watched:
    """The first so many episodes of a seed."""
    seating, params = seated(lineup)
    plays = numbered(game, seating, seed, np.arange(among or enough(lineup)))
    return watch(game, seating, params, plays)


def enough(lineup: Lineup) -> int:
    """Episodes to pick from: fewer where searches take their time."""
    players = [one for player in lineup.seating.players for one in anyone(player)]
    return FEWER if any(isinstance(one, Planner) for one in players) else AMONG


def play_key(seed: int) -> jax.Array:
    """The key of all episodes of a seed."""
    return jax.random.split(jax.random.key(seed))[1]  # the other is for players


def numbered(game: Game, seating: Seating, seed: int, numbers: np.ndarray) -> Play:
    """The games [B, ...] in which episodes of those numbers [B] begin."""
    key = play_key(seed)

    @jax.jit
    def begun(numbers: jax.Array) -> Play:
        return jax.vmap(lambda n: start(game, seating, jax.random.fold_in(key, n)))(numbers)

    plays: Play = begun(jnp.asarray(numbers, jnp.uint32))
    return plays


def scores(seating: Seating, returns: np.ndarray) -> np.ndarray:
    """[B] the mean return of the seats that have learned, or of all if none has, from [B, N]."""
    learned = [any(map(actor_of, anyone(player))) for player in seating.players]
    mean: np.ndarray = returns[:, learned if any(learned) else slice(None)].mean(axis=1)
    return mean


def most_telling(scores: np.ndarray, surprise: np.ndarray) -> dict[str, int]:
    """Which of [B] episodes to look at, by scores and by surprise, nan where there is none."""
    order = np.argsort(scores, kind="stable")
    picked = {"best": order[-1], "worst": order[0], "median": order[len(order) // 2]}
    if not np.isnan(surprise).all():
        picked["surprising"] = np.nanargmax(surprise)
    return {label: int(place) for label, place in picked.items()}


def recorded(
    game: Game, lineup: Lineup, seen: Watched, picked: Mapping[str, int], first: int = 0
) -> Plain:
    """Those of the watched games [T, B, ...] that are picked, by their labels; `first` is the
    number of the first of all."""
    who = sitting(*seated(lineup))
    kinds = [goals_of(one.player) for several in who for one in several]
    goals = next((kind for kind in kinds if kind != "none"), "none")
    surprise = np.asarray(seen.surprise)
    episodes = []
    for label, place in picked.items():
        one = game_of(seen, place)
        seats = list(zip(lineup.seating.players, who, one.choice[0], strict=True))
        about: dict[str, Any] = {
            "label": label,
            "number": first + place,
            "surprise": None if np.isnan(surprise[place]) else rounded(surprise[place]),
            "players": [anyone(player)[choice].name for player, _, choice in seats],
        }
        chosen = [several[choice] for _, several, choice in seats]
        episodes.append(about | plain_episode(game, chosen, one, goals))
    rows, columns, _ = game.shape
    return {
        "game": f"{game.name} {rows}x{columns}",
        "rows": rows,
        "columns": columns,
        "horizon": game.horizon,
        "obstacles": episodes[0]["obstacles"],
        "actions": list(game.action_names),
        "kinds": list(game.targets),
        "letters": [target.letter for target in game.targets.values()],
        "drawings": [target.drawing for target in game.targets.values()],
        "players": list(lineup.seating.names),
        "goals": goals,
        "episodes": episodes,
    }
