"""Markov Snowdrift, `snowdrift-v1`; numbers in brackets are those of docs/rules.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError, SnowdriftConfig
from hopplus.games import grid
from hopplus.games.board_game import BoardGame, check_count, seen_seats
from hopplus.games.game import Target
from hopplus.games.sprites import SPRITES
from hopplus.types import Outcome, View

CLEAR = 5
LETTER = "D"  # how drifts are written in a layout


class SnowdriftState(eqx.Module):
    """One board. `P` drifts."""

    walls: jax.Array  # [H*W] bool
    seats: jax.Array  # [N] int32 cell
    drifts: jax.Array  # [P] int32 cell
    there: jax.Array  # [P] bool, not cleared yet
    steps: jax.Array  # [] int32, steps played
    last_actions: jax.Array  # [N] int32, as played; -1 none


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
        walls, cells = self.place(key)
        drifts = cells[self.seats :]
        return self._start(walls, cells[: self.seats], drifts, jnp.ones(len(drifts), bool))

    def step(
        self, state: SnowdriftState, joint: jax.Array, key: jax.Array
    ) -> tuple[SnowdriftState, Outcome]:
        del key  # nothing is left to chance but the start
        c = self.config
        joint = joint.astype(jnp.int32)
        on_drift = (state.seats[:, None] == state.drifts) & state.there  # [N, P]
        clears = on_drift & (joint[:, None] == CLEAR)
        target = jax.vmap(grid.moved, in_axes=(0, 0, None, None))(
            state.seats, joint, state.walls, c.columns
        )
        moves = target != state.seats
        legal = (joint == grid.STAY) | moves | clears.any(axis=1)  # [4]
        played = jnp.where(legal, joint, grid.STAY)  # [5]
        clearers = clears.sum(axis=0)  # [P]
        cleared = clearers > 0  # [6]
        bears = jnp.where(clears, c.cost / jnp.maximum(clearers, 1), 0.0).sum(axis=1)
        reward = c.reward * cleared.sum() - bears  # [7]
        there = state.there & ~cleared  # [8]
        steps = state.steps + 1
        after = replace(
            state,
            seats=jnp.where(moves, target, state.seats),
            there=there,
            steps=steps,
            last_actions=played,
        )
        return after, Outcome(
            reward=reward.astype(jnp.float32),
            left=jnp.zeros(self.seats, bool),
            done=(steps >= c.horizon) | ~there.any(),  # [9]
            illegal=~legal,
            took=clears.sum(axis=1, keepdims=True).astype(jnp.int32),
            taken=cleared.sum(keepdims=True).astype(jnp.int32),
        )

    def view(self, state: SnowdriftState, seat: jax.Array | int) -> View:  # [10]
        c = self.config
        cells = jnp.arange(c.rows * c.columns)[:, None]
        seats = ((state.seats == cells) << jnp.arange(c.seats)).sum(axis=1)
        drift = ((state.drifts == cells) & state.there).any(axis=1)
        contents = grid.turned(seats, seat, c.seats) | state.walls << c.seats
        here = state.seats[seat]
        on_drift = ((state.drifts == here) & state.there).any()
        return View(
            planes=self.planes(contents | drift << (c.seats + 1)),
            legal=jnp.append(grid.open_moves(here, state.walls, c.columns), on_drift),  # [4]
            time=self.time(state.steps),
            last_actions=jnp.roll(state.last_actions, -seat),
        )

    def seen(self, view: View) -> SnowdriftState:
        planes = view.planes.reshape(-1, self.shape[2]).T  # [C, H*W]
        there, drifts = jax.lax.top_k(planes[self.seats + 1], self.config.drifts)
        return SnowdriftState(
            walls=planes[self.seats] > 0,
            seats=seen_seats(view, self.seats),
            drifts=drifts.astype(jnp.int32),
            there=there > 0,
            steps=jnp.rint(view.time * self.horizon).astype(jnp.int32),
            last_actions=view.last_actions,
        )

    def present(self, state: SnowdriftState) -> jax.Array:
        return jnp.ones(self.seats, bool)  # [8]

    def parse(self, text: str) -> SnowdriftState:
        board, walls = self.read(text)
        found, count = board.things[LETTER], self.config.drifts
        check_count(LETTER, len(found), count)
        if len(set(found)) < len(found):
            raise ConfigError(f"the layout has two {LETTER} in a cell")
        drifts = jnp.asarray(found + [0] * (count - len(found)), jnp.int32)
        return self._start(walls, self.read_seats(board), drifts, np.arange(count) < len(found))

    def show(self, state: SnowdriftState) -> str:
        host = jax.device_get(state)
        drifts = [(LETTER, cell) for cell in host.drifts[host.there]]
        return self.write(host.walls, dict(enumerate(host.seats)), drifts)

    def _start(
        self, walls: jax.Array, seats: jax.Array, drifts: jax.Array, there: jax.Array | np.ndarray
    ) -> SnowdriftState:
        """The state of a board on which nobody has acted yet."""
        nobody = jnp.full(self.seats, -1, jnp.int32)
        return SnowdriftState(walls, seats, drifts, jnp.asarray(there), jnp.int32(0), nobody)
