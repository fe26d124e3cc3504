"""Play that a model has not learned from, to measure it by: episodes that were held out of recorded
play, or that were just watched."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError
from hopplus.evaluation.replay.watch import Watched, anyone
from hopplus.games.game import Game, views
from hopplus.play.introspection import actor_of
from hopplus.play.lineup import Lineup
from hopplus.recorded.dataset import Data, Shard, is_held_out, players_of
from hopplus.recorded.record import Rows, aims, packed
from hopplus.recorded.samples import Source, seat_steps, source_of
from hopplus.types import State


@dataclass(frozen=True)
class HeldOut:
    """Whole episodes of recorded play to measure by."""

    game: Game
    players: list[str]
    seats: list[list[str]]  # [N] the players of whom one sat in each seat
    shard: Shard
    chosen: np.ndarray | None = None  # [M, 2] steps to measure by, instead of all

    @cached_property
    def source(self) -> Source:
        with jax.ensure_compile_time_eval():  # it is kept, so it must not be a tracer
            return source_of(self.shard, self.shard.size)

    @cached_property
    def steps(self) -> np.ndarray:
        """[M, 2] int32 rows and seats: every step of every seat present, or the chosen ones."""
        if self.chosen is not None:
            return self.chosen
        return seat_steps(self.shard, 1.0, measured=True)

    @property
    def row(self) -> np.ndarray:
        return self.steps[:, 0]

    @property
    def seat(self) -> np.ndarray:
        return self.steps[:, 1]

    @cached_property
    def episode(self) -> np.ndarray:
        """[M] the step's episode, by its place."""
        return np.take(self.shard.episode, self.row)

    @cached_property
    def action(self) -> np.ndarray:
        """[M] what the seat did."""
        return self._at(self.shard.rows.joint, self.row)

    @cached_property
    def aim(self) -> np.ndarray:
        """[M] the kind of thing the player says it is after; -1 none."""
        return self._at(self.shard.rows.aim, self.row)

    @cached_property
    def caught(self) -> np.ndarray:
        """[M] the kind of thing the seat takes last in the episode; K for none."""
        return self._at(self.shard.caught, self.row)

    @cached_property
    def time(self) -> np.ndarray:
        """[M] steps played before."""
        return self.row - np.take(self.shard.start, self.episode)

    @cached_property
    def who(self) -> np.ndarray:
        """[M] who sat there, by its number in `players`."""
        return self._at(self.shard.who, self.episode)

    def _at(self, values: Any, place: np.ndarray) -> np.ndarray:
        return np.asarray(values)[place, self.seat].astype(np.int64)


def held_out(data: Data, share: float, most: int) -> HeldOut:
    """The held-out episodes of recorded play, whole ones of at most `most` rows together.

    All episodes are measured by when `share` is 1.
    """
    pieces: list[dict[str, Any]] = []
    rows = 0
    for shard in data.iterate():
        wanted = np.flatnonzero(is_held_out(shard.number, share))
        chosen = wanted[rows + np.cumsum(shard.length[wanted]) <= most]
        mask = np.isin(shard.episode, chosen)
        arrays = {f.name: np.asarray(getattr(shard.rows, f.name))[mask] for f in fields(Rows)}
        who, number = shard.who[chosen], shard.number[chosen]
        pieces.append({**arrays, "length": shard.length[chosen], "who": who, "number": number})
        rows += int(mask.sum())
        if len(chosen) < len(wanted):
            break  # enough
    if rows == 0:
        raise ConfigError(
            f"{data.path} has no held-out episode of at most {most} rows to measure by: record more"
        )
    joined: dict[str, Any] = {name: np.concatenate([p[name] for p in pieces]) for name in pieces[0]}
    length, who, number = (joined.pop(name) for name in ("length", "who", "number"))
    shard = Shard(Rows(**joined), np.cumsum(length) - length, number, who)
    return HeldOut(data.game, data.players, data.seats, shard)


def record_watched(game: Game, lineup: Lineup, seen: Watched) -> HeldOut:
    """All of the watched episodes as recorded play; those who have learned are of one kind."""
    seats = [
        ["learned" if actor_of(one) else one.name for one in anyone(player)]
        for player in lineup.seating.players
    ]
    players = players_of(seats)
    number = np.zeros((game.seats, max(map(len, seats))), np.int16)
    for seat, names in enumerate(seats):
        number[seat, : len(names)] = [players.index(name) for name in names]
    who = number[np.arange(game.seats), np.asarray(seen.choice[0])]
    length = np.asarray(seen.of_episode.sum(axis=0)) + 1  # [B] rows, with the one at the end
    rows = _rows(game, jax.device_get(seen))
    real = np.arange(rows.time.shape[1]) < length[:, None]  # [B, T + 1]
    kept = packed(jax.tree.map(lambda leaf: leaf[real], rows))
    shard = Shard(kept, np.cumsum(length) - length, np.arange(len(length)), who)
    return HeldOut(game, players, seats, shard)


def choose_seat(held: HeldOut, seat: int, most: int) -> HeldOut:
    """The same, measured by the first steps of one seat alone."""
    return replace(held, chosen=held.steps[held.seat == seat][:most])


def _rows(game: Game, seen: Watched) -> Rows:
    """[B, T + 1, ...] steps of each game, on the host; anything behind the end of its episode."""
    play, ended = seen.trajectory, ~np.asarray(seen.of_episode)

    @jax.jit
    def shown(states: State) -> Any:
        found = jax.vmap(jax.vmap(lambda state: views(game, state)))(states)
        return found, jax.vmap(jax.vmap(game.present))(states)

    # A step later than the last of its episode, a game shows how that ended.
    states = jax.tree.map(
        lambda before, after: np.concatenate(
            [before[:1], np.where(_like(ended, before)[1:], after[:-1], before[1:]), after[-1:]]
        ),
        play.state,
        seen.after,
    )
    view, present = jax.device_get(shown(states))

    def acted(leaf: Any, otherwise: int | bool) -> Any:
        """[T + 1, B, ...] of the episode's own steps, and something else from its end on."""
        own = np.where(_like(ended, leaf), otherwise, leaf)
        return np.concatenate([own, np.full_like(own[:1], otherwise)])

    kinds = len(game.targets)
    rows = Rows(
        planes=view.planes > 0,
        legal=view.legal,
        time=view.time[:, :, 0],
        last_actions=view.last_actions[:, :, 0].astype(np.int8),
        present=present,
        joint=acted(play.act.action, -1).astype(np.int8),
        reward=acted(play.outcome.reward, 0).astype(np.float32),
        took=acted(play.outcome.took, 0).astype(np.uint8),
        done=acted(play.outcome.done, False),
        aim=acted(np.asarray(aims(play.act, kinds)), -1).astype(np.int8),
    )
    return jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1), rows)


def _like(mask: np.ndarray, leaf: Any) -> np.ndarray:
    """[T, B, 1, ...] as many axes as the leaf has."""
    return mask.reshape(mask.shape + (1,) * (leaf.ndim - 2))
