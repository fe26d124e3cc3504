"""How fast does a player understand new company? Its returns by the number of the episode."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.config import SearchConfig
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.evaluation.trials import Names, make_trials, mixtures
from hopplus.games.game import Game
from hopplus.learning.restore import full_name
from hopplus.learning.trained import Trained
from hopplus.players.seating import split_names


@dataclass(frozen=True)
class Adaptation:
    """Mean returns of the focal player, over all trials and its seats."""

    companies: list[Names]  # [K]
    returns: np.ndarray  # [S, K, episodes]

    def estimates(self, place: int) -> list[Estimate]:
        """By episode, among one company."""
        return [estimate(column) for column in self.returns[:, place].T]

    def means(self) -> list[Estimate]:
        """By episode, over all companies."""
        return [estimate(column) for column in self.returns.mean(axis=1).T]

    def closed(self, known: References) -> list[float]:
        """By episode, the share of the gap between blind and told that is closed, averaged over the
        companies that have been measured."""
        places = {company: place for place, company in enumerate(known.companies)}
        shared = [
            (number, places[company])
            for number, company in enumerate(self.companies)
            if company in places
        ]
        own = self.returns.mean(axis=0)[[number for number, _ in shared]].mean(axis=0)
        held = [place for _, place in shared]
        blind, told = known.blind[:, held].mean(), known.told[:, held].mean()
        return [float(share) for share in (own - blind) / (told - blind)]

    def as_json(self) -> dict[str, Any]:
        return {
            "companies": [list(company) for company in self.companies],
            "returns": self.returns.tolist(),
            "means": [mean.as_json() for mean in self.means()],
        }


def companies(against: Sequence[str], game: Game) -> list[Names]:
    """The names of everyone beside the focal player, from the next seat on; `all` are all mixtures
    of the game's scripted players."""
    found: list[Names] = []
    for names in against:
        if names == "all":
            found += mixtures(game)
        else:
            called = split_names(names, game.seats - 1)
            found.append(tuple(full_name(name, 1 + place) for place, name in enumerate(called)))
    return list(dict.fromkeys(found))


def adapt(
    game: Game,
    players: Sequence[dict[int, Trained]],
    wanted: Sequence[Names],
    guests: Mapping[str, Trained],
    seats: Sequence[int],
    episodes: int,
    trials: int,
    search: SearchConfig,
    key: jax.Array,
    on_progress: Callable[[int, str], None] = lambda count, note: None,
) -> Adaptation:
    """Play trials among every company, for each of [S] seeds with its learned players by seat.

    Where nobody has learned in a seat, the player of the first that has sits there.
    """
    returns = np.zeros((len(players), len(wanted), episodes))
    for seat in seats:
        for number, learned in enumerate(players):
            focal = learned.get(seat, learned[min(learned)])
            table, params = make_trials(game, focal, wanted, guests, seat, episodes, search)
            own_key = jax.random.fold_in(jax.random.fold_in(key, seat), number)
            played = table.returns(params, wanted, trials, own_key)
            returns[number] += played.mean(axis=1) / len(seats)
            on_progress(trials * len(wanted), f"seat {seat}, seed {number}")
    return Adaptation(list(wanted), returns)
