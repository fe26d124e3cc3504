"""How does each player do among each other? One seat is exchanged, each in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import SearchConfig
from hopplus.evaluation.evaluate import evaluate
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.games.game import Game
from hopplus.play.lineup import fitting
from hopplus.play.seating import Seating
from hopplus.play.trained import Trained
from hopplus.players.mixture import Mixture
from hopplus.players.player import Player
from hopplus.players.scripted import scripted
from hopplus.types import Params


@dataclass(frozen=True)
class Member:
    """Someone for every seat: the players of a run, or one player for all."""

    name: str
    players: tuple[Player, ...]  # [N]
    params: tuple[Params, ...]  # [N] one set each


def make_member(
    name: str, called: Sequence[str], known: dict[str, Trained], game: Game, search: SearchConfig
) -> Member:
    """Whoever is called by these names [N], seat by seat: learned ones, or scripted ones.

    Learned players of the same making differ in what they have learned alone, so that one program
    serves them all.
    """
    players: list[Player] = []
    params: list[Params] = []
    for one in called:
        if one in known:
            trained = fitting(known[one], one, game)
            made = replace(trained, actor=replace(trained.actor, name="learned"))
            players.append(made.playing(game, search))
            params.append(trained.params)
        else:
            players.append(scripted(one, game))
            params.append(players[-1].init(jax.random.key(0)))
    return Member(name, tuple(players), tuple(params))


@dataclass(frozen=True)
class Table:
    """Every kind of player that is there, in every seat, so that one program seats anyone."""

    kinds: tuple[Player, ...]
    seats: int

    @property
    def seating(self) -> Seating:
        return Seating((Mixture(self.kinds),) * self.seats)

    def seated(self, members: Sequence[Member]) -> tuple[tuple[Params, ...], jax.Array]:
        """The parameters for `seating`, and who is chosen [N], with a member for each seat."""
        kinds = [self.kinds.index(member.players[seat]) for seat, member in enumerate(members)]
        own = [member.params[seat] for seat, member in enumerate(members)]
        sets = []
        for number, kind in enumerate(self.kinds):
            # Where someone else sits, any parameters do.
            spare = own[kinds.index(number)] if number in kinds else kind.init(jax.random.key(0))
            filled = [
                params if held == number else spare for params, held in zip(own, kinds, strict=True)
            ]
            sets.append(jax.tree.map(lambda *leaves: jnp.stack(leaves), *filled))
        return (tuple(sets),), jnp.array(kinds, jnp.int32)


def make_table(members: Sequence[Member]) -> Table:
    """For all of these members."""
    kinds = dict.fromkeys(player for member in members for player in member.players)
    return Table(tuple(kinds), len(members[0].players))


@dataclass(frozen=True)
class Crossplay:
    """Who was held against whom: rows sit in one seat, columns in all others."""

    names: list[str]
    focal: list[list[Estimate]]  # return of the one, over all its seats and episodes
    co_players: list[list[Estimate]]  # mean return of the others
    by_seat: np.ndarray  # [R, R, N] mean return of the one in each seat

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def by_run(self, runs: Sequence[str]) -> dict[str, np.ndarray]:
        """Of every run that has several seeds among the members, [S, K] the mean return of each of
        its seeds among each of the K runs, itself not counted as its own co-player.

        `runs` [R] names the run of each member, or whoever it is if it is of no run.
        """
        places = {run: [n for n, own in enumerate(runs) if own == run] for run in runs}

        def among(member: int, lineup: Sequence[int]) -> float:
            return float(np.mean([self.focal[member][n].mean for n in lineup if n != member]))

        several = {run: own for run, own in places.items() if len(own) > 1}
        # A run of one seed has no other of its own to sit among, so it is a co-player of others
        # alone.
        return {
            run: np.array([[among(member, lineup) for lineup in places.values()] for member in own])
            for run, own in several.items()
        }


def crossplay(
    game: Game,
    members: Sequence[Member],
    key: jax.Array,
    episodes: int,
    on_progress: Callable[[int, str], None] = lambda count, note: None,
) -> Crossplay:
    """Play `episodes` episodes for every row, column and seat, on the same boards for all."""
    focal: list[list[Estimate]] = []
    co_players: list[list[Estimate]] = []
    by_seat = np.zeros((len(members), len(members), game.seats))
    table = make_table(members)
    for row, one in enumerate(members):
        focal.append([])
        co_players.append([])
        for column, others in enumerate(members):
            own, theirs = [], []
            for seat in range(game.seats):
                members_by_seat = [one if place == seat else others for place in range(game.seats)]
                params, choices = table.seated(members_by_seat)
                own_key = jax.random.fold_in(key, seat)
                played = evaluate(game, table.seating, params, own_key, episodes, choices=choices)
                returns = played.returns.astype(np.float64)
                own.append(returns[:, seat])
                theirs.append(np.delete(returns, seat, axis=1).mean(axis=1))
                on_progress(episodes, f"{one.name} among {others.name}")
            by_seat[row, column] = [returns.mean() for returns in own]
            focal[-1].append(estimate(np.concatenate(own)))
            co_players[-1].append(estimate(np.concatenate(theirs)))
    return Crossplay([member.name for member in members], focal, co_players, by_seat)
