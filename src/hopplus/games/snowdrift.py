"""Markov Snowdrift, `snowdrift-v1`; numbers in brackets are those of docs/rules.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp

from hopplus.config import ConfigError, SnowdriftConfig
from hopplus.games.board_game import BoardGame, BoardState, check_count
from hopplus.games.game import Target
from hopplus.games.sprites import SPRITES
from hopplus.lookup import at
from hopplus.types import Outcome, View

CLEAR = 5
LETTER = "D"  # how drifts are written in a layout


class SnowdriftState(BoardState):
    """One board. `P` drifts."""

    drifts: jax.Array  # [P] int32 cell
    there: jax.Array  # [P] bool, not cleared yet


@dataclass(frozen=True)
class Snowdrift(BoardGame):
    """A drift that anyone clears is worth as much to all, and its clearers bear the cost."""

    config: SnowdriftConfig = field(default_factory=SnowdriftConfig)
    more_actions = ("clear",)

    @property
    def targets(self) -> Mapping[str, Target]:
        return {"drift": Target(self.seats + 1, CLEAR, LETTER, SPRITES["D"], common=True)}

    @property
    def best_joint_return(self) -> float:
        c = self.config
        return c.drifts * max(c.seats * c.reward - c.cost, 0.0)

    def init(self, key: jax.Array) -> SnowdriftState:  # [1]
        walls, cells = self.place(*self.draw(key))
        seats, drifts = cells[: self.seats], cells[self.seats :]
        there = jnp.ones(len(drifts), bool)
        return SnowdriftState(walls, seats, **self.unplayed, drifts=drifts, there=there)

    def step(
        self, state: SnowdriftState, joint: jax.Array, key: jax.Array
    ) -> tuple[SnowdriftState, Outcome]:
        del key  # nothing is left to chance but the start
        c = self.config
        joint = joint.astype(jnp.int32)
        on_drift = (state.seats[:, None] == state.drifts) & state.there  # [N, P]
        clears = on_drift & (joint[:, None] == CLEAR)
        seats, played, legal = self.walk(state, joint, clears.any(axis=1))  # [4] [5]
        clearers = clears.sum(axis=0)  # [P]
        cleared = clearers > 0  # [6]
        bears = jnp.where(clears, c.cost / jnp.maximum(clearers, 1), 0.0).sum(axis=1)
        reward = c.reward * cleared.sum() - bears  # [7]
        there = state.there & ~cleared  # [8]
        steps = state.steps + 1
        after = replace(state, seats=seats, there=there, steps=steps, last_actions=played)
        return after, Outcome(
            reward=reward.astype(jnp.float32),
            left=jnp.zeros(self.seats, bool),
            done=(steps >= c.horizon) | ~there.any(),  # [9]
            illegal=~legal,
            took=clears.sum(axis=1, keepdims=True).astype(jnp.int32),
            taken=cleared.sum(keepdims=True).astype(jnp.int32),
        )

    def view(self, state: SnowdriftState, seat: jax.Array | int) -> View:  # [10]
        cells = jnp.arange(self.config.rows * self.config.columns)[:, None]
        drift = ((state.drifts == cells) & state.there).any(axis=1)
        on_drift = ((state.drifts == at(state.seats, seat)) & state.there).any()  # [4]
        return self.look(state, seat, drift.astype(jnp.int32), on_drift)

    def seen(self, view: View) -> SnowdriftState:
        board, things = self.seen_board(view)
        there, drifts = jax.lax.top_k(things[0], self.config.drifts)
        return SnowdriftState(**board, drifts=drifts.astype(jnp.int32), there=there > 0)

    def parse(self, text: str) -> SnowdriftState:
        board, walls = self.read(text)
        found, count = board.things[LETTER], self.config.drifts
        check_count(LETTER, len(found), count)
        if len(set(found)) < len(found):
            raise ConfigError(f"the layout has two {LETTER} in a cell")
        drifts = jnp.asarray(found + [0] * (count - len(found)), jnp.int32)
        there = jnp.arange(count) < len(found)
        seats = self.read_seats(board)
        return SnowdriftState(walls, seats, **self.unplayed, drifts=drifts, there=there)

    def show(self, state: SnowdriftState) -> str:
        host = jax.device_get(state)
        drifts = [(LETTER, cell) for cell in host.drifts[host.there]]
        return self.write(host.walls, dict(enumerate(host.seats)), drifts)
