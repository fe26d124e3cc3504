"""How fast does a player understand new company? Its returns by the number of the episode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from hopplus.config import SearchConfig
from hopplus.evaluation.crossplay import Member, make_member
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.evaluation.trials import Trials, mixtures, turned
from hopplus.games.game import Game
from hopplus.learning.trained import Trained
from hopplus.players.seating import split_names

Names = tuple[str, ...]


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
        places = {mixture: place for place, mixture in enumerate(known.mixtures)}
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
            found.append(tuple(split_names(names, game.seats - 1)))
    return list(dict.fromkeys(found))


def adapt(
    game: Game,
    players: Sequence[dict[int, Trained]],
    wanted: Sequence[Names],
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
    focals = [_focal(game, learned, search) for learned in players]
    around = {
        (company, seat): make_member(
            ", ".join(company), turned(company, seat), {}, game, SearchConfig()
        )
        for company in wanted
        for seat in seats
    }
    table = Trials(game, [*focals, *around.values()], episodes)
    returns = np.zeros((len(focals), len(wanted), episodes))
    for number, focal in enumerate(focals):
        for place, company in enumerate(wanted):
            for seat in seats:
                own_key = jax.random.fold_in(jax.random.fold_in(key, seat), number)
                member = around[company, seat]
                played = table.returns(focal, member, seat, trials, own_key)
                returns[number, place] += played.mean(axis=0) / len(seats)
                on_progress(trials, ", ".join(company))
    return Adaptation(list(wanted), returns)


def _focal(game: Game, learned: dict[int, Trained], search: SearchConfig) -> Member:
    first = min(learned)
    called = [f"@{seat if seat in learned else first}" for seat in range(game.seats)]
    known = {f"@{seat}": player for seat, player in learned.items()}
    return make_member("focal", called, known, game, search)
