"""One watched episode as plain numbers: every moment, and what everyone thought then."""

import math
from typing import Any

import jax
import numpy as np

from hopplus.evaluation.replay.watch import Sitting, Watched
from hopplus.games.game import Game
from hopplus.games.layout import taken_apart
from hopplus.play.introspection import Telling, actor_of
from hopplus.players.actor import Actor
from hopplus.players.player import Player
from hopplus.types import State

DIGITS = 4

CHOSEN = "chosen"  # the label of an episode that somebody asked for by its number
Plain = dict[str, Any]  # as JSON has it


def goals_of(player: Player) -> str:
    """What a player knows of the others' goals: belief, inferred, or none."""
    actor = actor_of(player)
    # A memory that the policy has learned to keep is about everything, and nobody can read it.
    if actor is None or not actor.context.size or actor.context.learned_by_policy:
        return "none"
    return "belief" if actor.context.gives_chances else "inferred"


def plain_episode(game: Game, who: list[Sitting], seen: Watched, goals: str) -> Plain:
    """The moments of one game [T, ...] with those who sat there [N]; what is known of goals only
    where it is of that kind."""
    play = seen.trajectory
    length = int(np.argmax(play.outcome.done)) + 1
    seats = [_Seat(game, seat, one, seen, goals) for seat, one in enumerate(who)]
    transitions = []
    for step in range(length + 1):
        states, place = (play.state, step) if step < length else (seen.after, length - 1)
        moment = _board(game, jax.tree.map(lambda leaf: leaf[place], states))  # noqa: B023
        reward = play.outcome.reward[step - 1] if step else np.zeros(game.seats)
        moment["rewards"] = rounded(reward)
        moment["looks"] = [None] * game.seats
        if step < length:
            moment["acts"] = np.where(play.present[step], play.act.action[step], -1).tolist()
            moment["looks"] = [
                seat.look(step) if here else None
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
            self.about = _about(actor, np.asarray(act.inferred[:, seat]))
        self.ahead = None
        if isinstance(one.player, Telling):
            self.ahead = one.player.told(np.asarray(act.extras[:, seat]))

    def look(self, step: int) -> Plain:
        """What the seat thinks before a step."""
        seen, seat = self.seen, self.seat
        act = jax.tree.map(lambda leaf: leaf[step, seat], seen.trajectory.act)
        value = float(act.value) if self.learned else math.nan
        return {
            "action": int(act.action),
            "policy": rounded(np.exp(act.logits)),
            "value": round(value, DIGITS) if math.isfinite(value) else None,
            "legal": seen.legal[step, seat].tolist(),
            "about": self._by_other(self.about[step]) if self.about is not None else None,
            "predicted": self._predicted(step) if seen.modelled[step, seat] else None,
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

    def _line(self, step: int) -> list[Plain] | None:
        if self.ahead is None or not self.ahead.there[step].any():
            return None
        steps = self.ahead.cells[step][self.ahead.there[step]]
        cells = np.roll(steps, self.seat, axis=1)  # from own first to the order of all seats
        return [{"seats": [_cell(self.game, cell) for cell in row]} for row in cells]


def _about(actor: Actor, inferred: np.ndarray) -> np.ndarray:
    """[T, N - 1, G] what [T, J] inferred goals tell of each other."""
    told = inferred[:, : actor.context.size]
    return np.stack([np.asarray(actor.context.about_others(now)) for now in told])


def _board(game: Game, state: State) -> Plain:
    """Where everyone and everything is."""
    board = taken_apart(game.show(state))
    return {
        "obstacles": [_cell(game, cell) for cell in sorted(board.obstacles)],
        "seats": [_cell(game, board.seats.get(seat, -1)) for seat in range(game.seats)],
        "prey": [
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
