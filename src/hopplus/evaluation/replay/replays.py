"""A few telling episodes, step by step, with what everyone thought: ready for JSON.

docs/replay.md says what is in it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.evaluation.replay.readable import predicted_targets
from hopplus.evaluation.replay.watch import (
    Sitting,
    Watched,
    anyone,
    game_of,
    seated,
    sitting,
    watch,
)
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.games.layout import taken_apart
from hopplus.learning.from_run import run_seats
from hopplus.play.introspection import Telling, actor_of
from hopplus.play.lineup import Lineup, make_lineup
from hopplus.play.rollout import Play, start
from hopplus.play.seating import Seating
from hopplus.players.context.context import goal_size
from hopplus.players.planner import Planner
from hopplus.players.player import Player
from hopplus.runs.folder import RunFolder
from hopplus.types import State

AMONG, FEWER = 256, 64  # episodes to pick from
DIGITS = 4
CHOSEN = "chosen"  # the label of an episode that somebody asked for by its number
Plain = dict[str, Any]  # as JSON has it


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
    return record_episodes(game, lineup, seen, picked)


def watch_first(game: Game, lineup: Lineup, seed: int = 0, among: int | None = None) -> Watched:
    """The first so many episodes of a seed."""
    seating, params = seated(lineup)
    plays = start_episodes(game, seating, seed, np.arange(among or enough(lineup)))
    return watch(game, seating, params, plays)


def enough(lineup: Lineup) -> int:
    """Episodes to pick from: fewer where searches take their time."""
    players = [one for player in lineup.seating.players for one in anyone(player)]
    return FEWER if any(isinstance(one, Planner) for one in players) else AMONG


def play_key(seed: int) -> jax.Array:
    """The key of all episodes of a seed."""
    return jax.random.split(jax.random.key(seed))[1]  # the other is for players


def start_episodes(game: Game, seating: Seating, seed: int, numbers: np.ndarray) -> Play:
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


def record_episodes(
    game: Game, lineup: Lineup, seen: Watched, picked: Mapping[str, int], first: int = 0
) -> Plain:
    """Those of the watched games [T, B, ...] that are picked, by their labels; `first` is the
    number of the first of all."""
    who = sitting(*seated(lineup))
    goals = goals_among(who)
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
    return plain_replay(game, lineup.seating.names, goals, episodes)


def plain_replay(
    game: Game, players: Sequence[str], goals: str, episodes: Sequence[Plain]
) -> Plain:
    """Recorded episodes, and what they have in common."""
    rows, columns, _ = game.shape
    return {
        "game": f"{game.name} {rows}x{columns}",
        "rows": rows,
        "columns": columns,
        "horizon": game.horizon,
        "obstacles": episodes[0]["obstacles"] if episodes else [],
        "actions": list(game.action_names),
        "kinds": list(game.targets),
        "letters": [target.letter for target in game.targets.values()],
        "drawings": [target.drawing for target in game.targets.values()],
        "players": list(players),
        "goals": goals,
        "episodes": list(episodes),
    }


def goals_among(who: list[list[Sitting]]) -> str:
    """What is known of goals at a board: what the first knows who knows any."""
    kinds = [goals_of(one.player) for several in who for one in several]
    return next((kind for kind in kinds if kind != "none"), "none")


def goals_of(player: Player) -> str:
    """What a player knows of the others' goals: belief, inferred, or none."""
    actor = actor_of(player)
    # A memory that the policy has learned to keep is about everything, and nobody can read it.
    if actor is None or not goal_size(actor.context) or actor.context.learned_by_policy:
        return "none"
    return "belief" if actor.context.gives_chances else "inferred"


def plain_episode(game: Game, who: list[Sitting], seen: Watched, goals: str) -> Plain:
    """The steps of one game [T, ...] with those who sat there [N]; what is known of goals only
    where it is of that kind."""
    play = seen.trajectory
    length = int(np.argmax(play.outcome.done)) + 1
    seats = [_Seat(game, seat, one, seen, goals) for seat, one in enumerate(who)]
    transitions = []
    for step in range(length + 1):
        states, place = (play.state, step) if step < length else (seen.after, length - 1)
        moment = plain_board(game, jax.tree.map(lambda leaf: leaf[place], states))  # noqa: B023
        reward = play.outcome.reward[step - 1] if step else np.zeros(game.seats)
        moment["rewards"] = rounded(reward)
        moment["looks"] = [None] * game.seats
        if step < length:
            moment["acts"] = np.where(play.present[step], play.act.action[step], -1).tolist()
            moment["looks"] = [
                seat.look(step, moment) if here else None
                for seat, here in zip(seats, play.present[step], strict=True)
            ]
        transitions.append(moment)
    obstacles = transitions[0]["obstacles"]
    for moment in transitions:
        del moment["obstacles"]
    return {
        "obstacles": obstacles,
        "returns": rounded(play.outcome.reward[:length].sum(axis=0)),
        "steps": transitions,
    }


class _Seat:
    """One seat through an episode."""

    def __init__(self, game: Game, seat: int, one: Sitting, seen: Watched, goals: str) -> None:
        self.game, self.seat, self.seen = game, seat, seen
        self.others = [other for other in range(game.seats) if other != seat]
        actor, act = actor_of(one.player), seen.trajectory.act
        self.learned = actor is not None
        self.about = None
        if actor is not None and goals_of(one.player) == goals != "none":
            # [T, N - 1, G] what the inferred goals tell of each other.
            inferred = np.asarray(act.inferred[:, seat, : actor.context.size])
            self.about = np.stack([np.asarray(actor.context.about_others(now)) for now in inferred])
        self.ahead = None
        if isinstance(one.player, Telling):
            self.ahead = one.player.told(np.asarray(act.extras[:, seat]))

    def look(self, step: int, board: Plain) -> Plain:
        """What the seat thinks before a step, on that board."""
        seen, seat = self.seen, self.seat
        act = jax.tree.map(lambda leaf: leaf[step, seat], seen.trajectory.act)
        value = float(act.value) if self.learned else math.nan
        predicted = self._predicted(step) if seen.modelled[step, seat] else None
        return {
            "action": int(act.action),
            "policy": rounded(np.exp(act.logits)),
            "value": round(value, DIGITS) if math.isfinite(value) else None,
            "legal": seen.legal[step, seat].tolist(),
            "about": self._by_other(self.about[step]) if self.about is not None else None,
            "predicted": predicted,
            "after": self._after(step, board, predicted) if predicted else None,
            "visits": rounded(self.ahead.visits[step]) if self.ahead else None,
            "line": self._line(step),
        }

    def _by_other(self, own_first: np.ndarray) -> list[Any]:
        """[N - 1, ...] about those who come after the seat, in the order of all seats instead."""
        seats = self.game.seats
        return [rounded(own_first[(other - self.seat) % seats - 1]) for other in self.others]

    def _predicted(self, step: int) -> list[Any]:
        present, expected = self.seen.trajectory.present[step], self.seen.expected[step, self.seat]
        return [rounded(expected[o]) if present[o] else None for o in self.others]

    def _after(self, step: int, board: Plain, predicted: list[Any]) -> list[Plain | None]:
        """[N - 1] what each other is predicted to go for."""
        legal = self.seen.legal[step]
        return [
            predicted_targets(self.game, board, other, acts, legal[other].tolist())
            if acts
            else None
            for other, acts in zip(self.others, predicted, strict=True)
        ]

    def _line(self, step: int) -> list[Plain] | None:
        if self.ahead is None or not self.ahead.there[step].any():
            return None
        steps = self.ahead.cells[step][self.ahead.there[step]]
        cells = np.roll(steps, self.seat, axis=1)  # from own first to the order of all seats
        return [{"seats": [_cell(self.game, cell) for cell in row]} for row in cells]


def plain_board(game: Game, state: State) -> Plain:
    """Where everyone and everything is."""
    board = taken_apart(game.show(state))
    return {
        "obstacles": [_cell(game, cell) for cell in sorted(board.obstacles)],
        "seats": [_cell(game, board.seats.get(seat, -1)) for seat in range(game.seats)],
        "targets": [
            {"kind": kind, "cell": _cell(game, cell)}
            for kind, target in enumerate(game.targets.values())
            for cell in board.things.get(target.letter, [])
        ],
    }


def _cell(game: Game, cell: int) -> list[int] | None:
    """Row and column; None for a seat that is gone, -1."""
    return None if cell < 0 else [int(cell) // game.shape[1], int(cell) % game.shape[1]]


def rounded(numbers: Any) -> list[Any]:
    """Few digits, and no number that JSON has no word for."""
    whole: list[Any] = (np.nan_to_num(np.asarray(numbers, np.float64)).round(DIGITS) + 0).tolist()
    return whole
