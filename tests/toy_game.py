"""Coins: walk onto a coin to take it, and it comes back somewhere else. Nobody leaves.

A gold coin is worth 2 to whoever takes it and costs everybody else 1; a silver one is worth 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import GameConfig, check_range, check_whole
from hopplus.games import GameRow, grid, layout
from hopplus.games.game import Target
from hopplus.types import Outcome, View


@dataclass(frozen=True)
class CoinsConfig(GameConfig):
    """Coins that come back."""

    name: str = "coins-v1"
    size: int = 3
    """Cells along a side of the board."""
    seats: int = 2
    """Players at the board."""
    horizon: int = 8
    """Steps of an episode."""

    def __post_init__(self) -> None:
        check_whole(self, "game.")
        check_range("game.size", self.size, 3, 16)
        check_range("game.seats", self.seats, 2, 4)
        check_range("game.horizon", self.horizon, 1, 1000)


class CoinsState(eqx.Module):
    seats: jax.Array  # [N] int32 cell
    coins: jax.Array  # [2] int32 cell of the gold coin and of the silver one
    steps: jax.Array  # [] int32, steps played
    last_actions: jax.Array  # [N] int32; -1 none


@dataclass(frozen=True)
class Coins:
    config: CoinsConfig = field(default_factory=CoinsConfig)
    sees_all = True
    symmetric = True
    hidden = None
    action_names = grid.MOVE_NAMES

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def seats(self) -> int:
        return self.config.seats

    @property
    def horizon(self) -> int:
        return self.config.horizon

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.config.size, self.config.size, self.seats + 3

    @property
    def targets(self) -> Mapping[str, Target]:
        gold = "oval #8a6d1b 0 50 32 32 0; oval #f2c94c 0 50 28 28 0"
        return {
            "gold": Target(self.seats + 1, None, "g", gold),
            "silver": Target(self.seats + 2, None, "s"),
        }

    @property
    def best_joint_return(self) -> float:
        return 2.0 * self.horizon  # both coins in every step: more than anybody can get

    @property
    def walls(self) -> jax.Array:
        return jnp.zeros(self.config.size**2, bool)

    def describe(self) -> tuple[str, Mapping[str, Any]]:
        return "{name}, {size}x{size}", {"name": self.name, "size": self.config.size}

    def init(self, key: jax.Array) -> CoinsState:
        cells = jnp.arange(self.config.size**2)
        places = grid.distinct_places(key, cells, jnp.int32(len(cells)), self.seats + 2)
        return self.start(places[: self.seats], places[self.seats :])

    def start(self, seats: jax.Array, coins: jax.Array) -> CoinsState:
        return CoinsState(seats, coins, jnp.int32(0), jnp.full(self.seats, -1, jnp.int32))

    def step(
        self, state: CoinsState, joint: jax.Array, key: jax.Array
    ) -> tuple[CoinsState, Outcome]:
        columns = self.config.size
        seats = jax.vmap(grid.moved, in_axes=(0, 0, None, None))(
            state.seats, joint, self.walls, columns
        )
        moves = seats != state.seats
        took = moves[:, None] & (seats[:, None] == state.coins)  # [N, 2]
        sharing = took.sum(axis=0)
        taken = sharing > 0
        gains = took / jnp.maximum(sharing, 1) * jnp.array([2.0, 1.0])
        losses = taken[0] & ~took[:, 0]  # of those who see another take the gold coin
        # A coin that was taken comes back in a free cell, by the key alone.
        held = self.walls.at[seats].set(True).at[state.coins].max(~taken)
        order = jnp.argsort(held, stable=True).astype(jnp.int32)  # free cells first
        fresh = grid.distinct_places(key, order, (~held).sum(), 2)
        steps = state.steps + 1
        played = jnp.where(moves, joint, grid.STAY).astype(jnp.int32)
        after = CoinsState(seats, jnp.where(taken, fresh, state.coins), steps, played)
        return after, Outcome(
            reward=gains.sum(axis=1) - losses,
            left=jnp.zeros(self.seats, bool),
            done=steps >= self.horizon,
            illegal=played != joint,
            took=took.astype(jnp.int32),
            taken=taken.astype(jnp.int32),
        )

    def view(self, state: CoinsState, seat: jax.Array | int) -> View:
        cells = jnp.arange(self.config.size**2)[:, None]
        seats = jnp.roll(state.seats, -seat) == cells  # [H*W, N] own first
        planes = jnp.concatenate([seats, self.walls[:, None], state.coins == cells], axis=1)
        return View(
            planes=planes.astype(jnp.float32).reshape(self.shape),
            legal=grid.open_moves(state.seats[seat], self.walls, self.config.size),
            time=state.steps / self.horizon,
            last_actions=jnp.roll(state.last_actions, -seat),
        )

    def seen(self, view: View) -> CoinsState:
        places = view.planes.reshape(-1, self.shape[2]).argmax(axis=0).astype(jnp.int32)
        steps = jnp.rint(view.time * self.horizon).astype(jnp.int32)
        coins = places[self.seats + 1 :]
        return CoinsState(places[: self.seats], coins, steps, view.last_actions)

    def present(self, state: CoinsState) -> jax.Array:
        return jnp.ones(self.seats, bool)

    def parse(self, text: str) -> CoinsState:
        board = layout.read(text, self.config.size, self.config.size, self.seats, "gs")
        seats = [board.seats[seat] for seat in range(self.seats)]
        coins = [board.things[letter][0] for letter in "gs"]
        return self.start(jnp.array(seats, jnp.int32), jnp.array(coins, jnp.int32))

    def show(self, state: CoinsState) -> str:
        cells = [""] * self.config.size**2
        places = [*np.asarray(state.seats), *np.asarray(state.coins)]
        for symbol, cell in zip([*map(str, range(self.seats)), *"gs"], places, strict=True):
            cells[cell] += symbol
        return layout.write([cell or "." for cell in cells], self.config.size)


ROW = GameRow(CoinsConfig, Coins, "coins that come back: gold is worth 2 and costs the others 1")
