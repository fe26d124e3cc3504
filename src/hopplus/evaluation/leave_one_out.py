"""Leave one family out: players that have learned among a population without a family, tried among
members of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hopplus.config import SearchConfig, to_json
from hopplus.evaluation.adaptation import adapt
from hopplus.evaluation.fine_tuning import OnProgress
from hopplus.evaluation.kept import find_kept, keep
from hopplus.evaluation.statistics import Estimate, estimate, share_of_way
from hopplus.evaluation.trials import ByEpisode, Names
from hopplus.games.game import Game
from hopplus.learning.from_run import players_by_seed
from hopplus.players.scripted import mixed_names
from hopplus.runs.folder import RunFolder

FALL = 0.03  # the share of its return that a player may lose in a trial without being named


def all_of(family: str, game: Game) -> Names:
    """The lineup with members of a family in all other seats."""
    return (family,) * (game.seats - 1)


@dataclass(frozen=True)
class FamilyTrials:
    """How players are tried among the family that they have not met."""

    game: Game
    episodes: int
    trials: int
    seat: int
    seed: int
    search: SearchConfig = field(default_factory=SearchConfig)  # if other than it has learned

    def played(self, run: RunFolder, family: str) -> np.ndarray | None:
        """[S, E] mean returns by seed and episode, if they were played before."""
        found = find_kept(self._folder(run), self._about(run, family))
        return np.array(found["returns"]) if found else None

    def play(self, run: RunFolder, family: str, on_progress: OnProgress) -> np.ndarray:
        """The same, played now; on the same boards for every run and family."""
        players = players_by_seed(run, list(run.config().seed_numbers))
        found = adapt(
            self.game,
            list(players.values()),
            [all_of(family, self.game)],
            {},
            [self.seat],
            ByEpisode(self.episodes),
            self.trials,
            self.search,
            jax.random.key(self.seed),
            on_progress=on_progress,
            kinds=mixed_names(self.game, "population"),  # one program for all families
        ).returns[:, 0]
        keep(self._folder(run), self._about(run, family), {"returns": found.tolist()})
        return found

    def _folder(self, run: RunFolder) -> Path:
        return run.path / "trials"

    def _about(self, run: RunFolder, family: str) -> dict[str, Any]:
        names = ("episodes", "trials", "seat", "seed")
        own = {name: getattr(self, name) for name in names}
        searching = {"search": to_json(self.search)} if self.search != SearchConfig() else {}
        return {**own, "family": family, "steps": run.config().steps, **searching}


@dataclass(frozen=True)
class Comparison:
    """One player held against another, of the same seeds."""

    one: str
    other: str
    over: str  # which episodes
    difference: Estimate  # on average over the families
    by_family: list[Estimate]  # [K]

    def places(self, side: int) -> list[int]:
        """The families where the one is ahead (1), behind (-1), or where it is not clear (0)."""
        sides = [
            int(np.sign(one.mean)) if abs(one.mean) > one.half_width else 0
            for one in self.by_family
        ]
        return [place for place, found in enumerate(sides) if found == side]


@dataclass(frozen=True)
class Table:
    """Returns [S, K, E] by seed, family and episode."""

    families: Sequence[str]  # [K]
    rows: dict[str, np.ndarray]  # of those who have learned without the family, by name
    blind: str  # which of them makes nothing of the others
    best: np.ndarray  # of best responses, who have learned among the family alone; NaN: not known

    @property
    def numbers(self) -> list[int]:
        """The episodes that tables have: the first, the third and the last."""
        last = self.best.shape[-1]
        return sorted({1, min(3, last), last})

    @property
    def others(self) -> list[str]:
        """The rows besides blind."""
        return [name for name in self.rows if name != self.blind]

    @cached_property
    def way(self) -> np.ndarray:
        """[S, K, E] from blind to best responses."""
        return self.best - self.rows[self.blind]

    def gain(self, name: str) -> np.ndarray:
        """[S, K, E] what a row has more than blind of the same seed, on the same boards."""
        return self.rows[name] - self.rows[self.blind]

    def shares(self, name: str) -> list[list[Estimate] | None]:
        """[K] of each family, the share of the way that is made by episode; None where best
        responses are not clearly ahead of blind."""
        gain = self.gain(name)
        return [share_of_way(gain[:, k], self.way[:, k]) for k in range(len(self.families))]

    def share_of_mean(self, name: str) -> list[Estimate] | None:
        """By episode, the share of the mean gap over all families."""
        return share_of_way(self.gain(name).mean(axis=1), self.way.mean(axis=1))

    @cached_property
    def passable(self) -> list[int]:
        """The families that there is a share of the way in."""
        found = self.shares(self.blind)
        return [place for place, shares in enumerate(found) if shares is not None]

    def mean_of_shares(self, name: str) -> list[Estimate] | None:
        """By episode, the mean over the families that have a share."""
        if not self.passable:
            return None
        way = self.way[:, self.passable].mean(axis=0)  # [K', E]
        # A mean over other families in every episode would compare nothing.
        shares = self.gain(name)[:, self.passable] / np.where(way > 0, way, np.nan)
        return [estimate(column) for column in shares.mean(axis=1).T]

    def change(self, name: str, place: int | None = None) -> Estimate | None:
        """From the first episode to the last, as a share of the return in the first: among a family
        or on average. None where there was none."""
        returns = self.rows[name].mean(axis=1) if place is None else self.rows[name][:, place]
        first = abs(returns[:, 0].mean())  # in some games returns are below 0
        return estimate((returns[:, -1] - returns[:, 0]) / first) if first else None

    def fallen(self, name: str) -> list[str]:
        """The families among which more than a little is lost from the first episode to the
        last."""
        means = self.rows[name].mean(axis=0)  # [K, E]
        lost = means[:, 0] - means[:, -1] > FALL * abs(means[:, 0])
        return [family for family, one in zip(self.families, lost, strict=True) if one]

    def comparisons(self) -> Iterator[Comparison]:
        """Everyone against everyone who has less, over the trial and in its last episode."""
        last = self.best.shape[-1]
        read = {"the trial": slice(None), f"episode {last}": slice(last - 1, None)}
        for over, columns in read.items():
            got = {name: returns[..., columns].mean(-1) for name, returns in self.rows.items()}
            for one, other in combinations(sorted(got, key=lambda n: -got[n].mean()), 2):
                more = got[one] - got[other]  # [S, K]
                each = [estimate(family) for family in more.T]
                yield Comparison(one, other, over, estimate(more.mean(axis=1)), each)

    def as_json(self) -> dict[str, Any]:
        """Every figure, and the returns that they are of."""
        return {
            "families": list(self.families),
            "blind": self.blind,
            "best_responses": self.best.tolist(),
            "passable": [self.families[place] for place in self.passable],
            "rows": {
                name: {
                    "returns": returns.tolist(),
                    "mean": [estimate(column) for column in returns.mean(axis=1).T],
                    "shares": dict(zip(self.families, self.shares(name), strict=True)),
                    "share_of_mean_way": self.share_of_mean(name),
                    "mean_of_shares": self.mean_of_shares(name),
                    "change": {f: self.change(name, k) for k, f in enumerate(self.families)},
                    "fallen": self.fallen(name),
                }
                for name, returns in self.rows.items()
            },
            "comparisons": [
                {
                    **vars(one),
                    **{
                        said: [self.families[k] for k in one.places(side)]
                        for said, side in (("ahead", 1), ("behind", -1), ("not_clear", 0))
                    },
                }
                for one in self.comparisons()
            ],
        }
