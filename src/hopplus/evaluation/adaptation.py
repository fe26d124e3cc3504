"""How fast does a player understand new co-players? Its returns by the number of the episode.

It plays as it is, or goes on learning: then every trial is a learner of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax
import numpy as np

from hopplus.config import MIXED, ConfigError, SearchConfig
from hopplus.evaluation.fine_tuning import LEARN, FineTuning, OnProgress
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import Estimate, estimate, share_of_way
from hopplus.evaluation.trials import (
    Names,
    Score,
    make_trials,
    mixtures,
)
from hopplus.games.game import Game
from hopplus.play.names import full_name, is_background
from hopplus.play.seating import split_names
from hopplus.play.trained import Trained
from hopplus.players.scripted import Mixed, mixed_names, scripted


@dataclass(frozen=True)
class Adaptation:
    """Mean returns of the focal player, over all trials and its seats."""

    lineups: list[Names]  # [K]
    columns: list[str]  # [C] what was read: episodes, or the end
    returns: np.ndarray  # [S, K, C]

    def estimates(self, place: int) -> list[Estimate]:
        """By column, among one lineup."""
        return [estimate(column) for column in self.returns[:, place].T]

    def means(self) -> list[Estimate]:
        """By column, over all lineups."""
        return [estimate(column) for column in self.returns.mean(axis=1).T]

    def _shared(self, known: References) -> tuple[list[int], list[int]]:
        """The places of the lineups that have been measured, here and there."""
        places = {lineup: place for place, lineup in enumerate(known.lineups)}
        held = [number for number, lineup in enumerate(self.lineups) if lineup in places]
        return held, [places[self.lineups[number]] for number in held]

    def beside(self, known: References, name: str) -> np.ndarray | None:
        """[S', C] mean returns of a reference player by its seeds and column, over the lineups that
        have been measured; None where there are none, or no such player."""
        _, there = self._shared(known)
        if not there or name not in known.returns:
            return None
        counted = [column for column in self.columns if column.startswith("episode")]
        found: np.ndarray = known.in_columns(name, len(counted))[:, there].mean(axis=1)
        return found

    def closed(self, known: References) -> list[Estimate] | None:
        """By column, the share of the way from blind to best responses that is made, or to the
        oracle where these are not known, averaged over the lineups that have been measured, over
        the seeds of the player; None where there is no way to go."""
        held, _ = self._shared(known)
        blind, aim = self.beside(known, "blind"), self.beside(known, known.aim)
        if blind is None or aim is None:
            return None
        own = self.returns[:, held].mean(axis=1)  # [S, C]
        return share_of_way(own - blind.mean(axis=0), aim - blind)

    def regret(self, known: References, total: bool = False) -> list[Estimate] | None:
        """By column, what best responses would have had more, over the same; up to each column with
        `total`. None where they are not known."""
        held, _ = self._shared(known)
        best = self.beside(known, "best")
        if best is None:
            return None
        lost = best.mean(axis=0) - self.returns[:, held].mean(axis=1)  # [S, C]
        return [estimate(column) for column in (lost.cumsum(axis=1) if total else lost).T]

    def as_json(self) -> dict[str, Any]:
        return {
            "lineups": [list(lineup) for lineup in self.lineups],
            "columns": self.columns,
            "returns": self.returns.tolist(),
            "means": [mean.as_json() for mean in self.means()],
        }


def lineups(against: Sequence[str], game: Game, kinds: Sequence[str] = ()) -> list[Names]:
    """The names of everyone besides the focal player, from the next seat on; `all` are all mixtures
    of these kinds, or of the game's scripted players, `conditional` of more who remember the
    trial; `population` is each family in all seats, as their mixtures would be too many."""
    found: list[Names] = []
    for names in against:
        if names == "all" and kinds:
            found += mixtures(game, kinds)
        elif names in ("all", "conditional"):
            found += mixtures(game, mixed_names(game, cast(Mixed, names)))
        elif names == "population":
            found += [(name,) * (game.seats - 1) for name in mixed_names(game, "population")]
        else:
            called = split_names(names, game.seats - 1, others=True)
            found.append(tuple(own_name(one, 1 + place, game) for place, one in enumerate(called)))
    return list(dict.fromkeys(found))


def own_name(name: str, seat: int, game: Game) -> str:
    """The name by which a player is known: `noisy-hare:0.2` for `noisy-hare:.20`."""
    if MIXED in name:
        raise ConfigError(f"{name!r} is a mixture: among new co-players, one player sits in a seat")
    if name == LEARN or is_background(name):
        return full_name(name, seat)
    return scripted(name, game).name


def adapt(
    game: Game,
    players: Sequence[Mapping[int, Trained]],
    wanted: Sequence[Names],
    background: Mapping[str, Trained],
    seats: Sequence[int],
    score: Score,
    trials: int,
    search: SearchConfig,
    key: jax.Array,
    online: FineTuning | None = None,
    on_progress: OnProgress = lambda count, note: None,
    kinds: Sequence[str] = (),
) -> Adaptation:
    """Play trials among every lineup, for each of [S] seeds with its learned players by seat.

    Where nobody has learned in a seat, the player of the first that has sits there. The program
    seats anyone of `kinds` too, so that calls for other lineups of these share it.
    """
    returns = np.zeros((len(players), len(wanted), len(score.columns)))
    steps = score.steps_of(game.horizon)
    for seat in seats:
        own_keys = [
            jax.random.fold_in(jax.random.fold_in(key, seat), number)
            for number in range(len(players))
        ]
        focal = [learned.get(seat, learned[min(learned)]) for learned in players]
        if online:
            known = [{**one, seat: own} for one, own in zip(players, focal, strict=True)]
            given = (background, seat, steps, trials, own_keys, on_progress)
            streams = online.streams(known, wanted, *given)
        else:
            streams = []
            for number, own in enumerate(focal):
                table, params = make_trials(game, own, wanted, background, seat, search, kinds)
                streams.append(table.streams(params, wanted, steps, trials, own_keys[number]))
                on_progress(trials * len(wanted), f"seat {seat}, seed {number}")
        returns += np.stack([score(one) for one in streams]) / len(seats)
    return Adaptation(list(wanted), score.columns, returns)
