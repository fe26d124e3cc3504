"""The episodes that a model has not learned from, in one piece."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError
from hopplus.games.game import Game
from hopplus.recorded.dataset import Data, Shard, is_held_out
from hopplus.recorded.record import Rows
from hopplus.recorded.samples import Source, seat_steps, source_of


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
