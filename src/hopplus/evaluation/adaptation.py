"""How fast does a player understand new co-players? Its returns by the number of the episode."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.config import MIXED, ConfigError, SearchConfig
from hopplus.evaluation.fine_tuning import LEARN, FineTuning
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.evaluation.streams import Score
from hopplus.evaluation.trials import Names, make_trials, mixtures
from hopplus.games.game import Game
from hopplus.play.names import full_name, is_background
from hopplus.play.seating import split_names
from hopplus.play.trained import Trained
from hopplus.players.scripted import scripted


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

    def closed(self, known: References) -> list[Estimate] | None:
        """By column, the share of the gap between blind and told that is closed, averaged over the
        lineups that have been measured, over the seeds of the player; None where there is no
        gap."""
        places = {lineup: place for place, lineup in enumerate(known.lineups)}
        held = [number for number, lineup in enumerate(self.lineups) if lineup in places]
        if not held:
            return None
        there = [places[self.lineups[number]] for number in held]
        gap = estimate((known.oracle - known.blind)[:, there].mean(axis=1))
        if not gap.mean > 0 or gap.mean < gap.half_width < float("inf"):
            return None
        own = self.returns[:, held].mean(axis=1)  # [S, C]
        shares = (own - known.blind[:, there].mean()) / gap.mean
        return [estimate(column) for column in shares.T]

    def as_json(self) -> dict[str, Any]:
        return {
            "lineups": [list(lineup) for lineup in self.lineups],
            "columns": self.columns,
            "returns": self.returns.tolist(),
            "means": [mean.as_json() for mean in self.means()],
        }


def lineups(against: Sequence[str], game: Game) -> list[Names]:
    """The names of everyone beside the focal player, from the next seat on; `all` are all mixtures
    of the game's scripted players."""
    found: list[Names] = []
    for names in against:
        if names == "all":
            found += mixtures(game)
        else:
            called = split_names(names, game.seats - 1, others=True)
            found.append(tuple(_called(name, 1 + place, game) for place, name in enumerate(called)))
    return list(dict.fromkeys(found))


def _called(name: str, seat: int, game: Game) -> str:
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
    on_progress: Callable[[int, str], None] = lambda count, note: None,
) -> Adaptation:
    """Play trials among every lineup, for each of [S] seeds with its learned players by seat.

    Where nobody has learned in a seat, the player of the first that has sits there.
    """
    returns = np.zeros((len(players), len(wanted), len(score.columns)))
    steps = score.steps_of or len(score.columns) * game.horizon
    for seat in seats:
        for number, learned in enumerate(players):
            own_key = jax.random.fold_in(jax.random.fold_in(key, seat), number)
            focal = learned.get(seat, learned[min(learned)])
            if online:
                known = {**learned, seat: focal}
                streams = online.streams(known, wanted, background, seat, steps, trials, own_key)
            else:
                table, params = make_trials(game, focal, wanted, background, seat, search)
                streams = table.streams(params, wanted, steps, trials, own_key)
            on_progress(trials * len(wanted), f"seat {seat}, seed {number}")
            returns[number] += score(streams) / len(seats)
    return Adaptation(list(wanted), score.columns, returns)
