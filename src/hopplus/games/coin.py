"""The coin game, `coin-v1`; numbers in brackets are those of docs/rules.md.

Kinds of coins are told by whose they are, as each seat sees it: its own first, then cyclically.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import CoinConfig, ConfigError
from hopplus.games import grid
from hopplus.games.board_game import BoardGame, check_count, seen_seats
from hopplus.games.game import Target
from hopplus.games.render import PALETTE
from hopplus.types import Outcome, View

LETTERS = "abcd"  # how the coins of each seat are written in a layout


class CoinState(eqx.Module):
    """One board. `P` coins."""

    walls: jax.Array  # [H*W] bool
    seats: jax.Array  # [N] int32 cell
    coins: jax.Array  # [P] int32 cell
    owners: jax.Array  # [P] int32 seat
    steps: jax.Array  # [] int32, steps played
    last_actions: jax.Array  # [N] int32, as played; -1 none


@dataclass(frozen=True)
class CoinGame(BoardGame):
    """Any coin is worth the same to whoever walks onto it, and its owner is harmed by others who
    do. Coins come back by chance."""

    config: CoinConfig = field(default_factory=CoinConfig)

    @property
    def targets(self) -> Mapping[str, Target]:
        names = ("own-coin", "next-coin", "second-coin", "third-coin")[: self.seats]
        if self.seats == 2:
            names = ("own-coin", "other-coin")
        return {
            name: Target(
                self.seats + 1 + after,
                None,
                LETTERS[after],
                _drawing(after),
                common=True,
                owner=after,
                returns=True,
            )
            for after, name in enumerate(names)
        }

    @property
    def best_joint_return(self) -> float:
        """A bound: in every step everyone takes a coin of their own, as long as there are coins."""
        c = self.config
        return c.horizon * min(c.coins, c.seats) * c.reward

    def init(self, key: jax.Array) -> CoinState:  # [1]
        key, key_owners = jax.random.split(key)
        walls, cells = self.place(key)
        owners = jax.random.randint(key_owners, (self.config.coins,), 0, self.seats, jnp.int32)
        return self._start(walls, cells[: self.seats], cells[self.seats :], owners)

    def step(self, state: CoinState, joint: jax.Array, key: jax.Array) -> tuple[CoinState, Outcome]:
        c = self.config
        joint = joint.astype(jnp.int32)
        seats = jax.vmap(grid.moved, in_axes=(0, 0, None, None))(
            state.seats, joint, state.walls, c.columns
        )
        legal = (joint == grid.STAY) | (seats != state.seats)  # [4]
        takes = seats[:, None] == state.coins  # [N, P] [6]
        takers = takes.sum(axis=0)  # [P]
        taken = takers > 0
        owns = jnp.arange(c.seats)[:, None] == state.owners  # [N, P]
        share = takes / jnp.maximum(takers, 1)
        others = jnp.where(owns & taken, 1 - share, 0.0)  # of an owner's coin, what others took
        reward = (c.reward * share - c.harm * others).sum(axis=1)  # [7]

        cells = jnp.arange(c.rows * c.columns)
        kept = ((state.coins[:, None] == cells) & ~taken[:, None]).any(axis=0)
        free = ~(state.walls | (seats[:, None] == cells).any(axis=0) | kept)  # [H*W]
        key_cells, key_owners = jax.random.split(key)
        # No more than one coin a seat is taken, so that many cells do, in the order of the coins.
        again = grid.distinct_free(key_cells, free, min(c.coins, c.seats))[jnp.cumsum(taken) - 1]
        owners = jax.random.randint(key_owners, (c.coins,), 0, c.seats, jnp.int32)  # [8]
        steps = state.steps + 1
        after = replace(
            state,
            seats=seats,
            coins=jnp.where(taken, again, state.coins),
            owners=jnp.where(taken, owners, state.owners),
            steps=steps,
            last_actions=jnp.where(legal, joint, grid.STAY),  # [5]
        )
        # [N, P, K] of whom each coin is, as each seat sees it
        kind = (state.owners - jnp.arange(c.seats)[:, None]) % c.seats
        kinds = kind[..., None] == jnp.arange(c.seats)
        nearest = jnp.where(takes, kind, c.seats).min(axis=0)  # [P] to the takers, own first
        return after, Outcome(
            reward=reward.astype(jnp.float32),
            left=jnp.zeros(c.seats, bool),
            done=steps >= c.horizon,  # [9]
            illegal=~legal,
            took=(takes[..., None] & kinds).sum(axis=1).astype(jnp.int32),
            taken=(nearest[:, None] == jnp.arange(c.seats)).sum(axis=0).astype(jnp.int32),
        )

    def view(self, state: CoinState, seat: jax.Array | int) -> View:  # [10]
        c = self.config
        cells = jnp.arange(c.rows * c.columns)[:, None]
        seats = ((state.seats == cells) << jnp.arange(c.seats)).sum(axis=1)
        coins = jnp.where(state.coins == cells, 1 << state.owners, 0).sum(axis=1)
        contents = grid.turned(seats, seat, c.seats) | state.walls << c.seats
        return View(
            planes=self.planes(contents | grid.turned(coins, seat, c.seats) << (c.seats + 1)),
            legal=grid.open_moves(state.seats[seat], state.walls, c.columns),  # [4]
            time=self.time(state.steps),
            last_actions=jnp.roll(state.last_actions, -seat),
        )

    def seen(self, view: View) -> CoinState:
        planes = view.planes.reshape(-1, self.shape[2]).T  # [C, H*W]
        by_owner = planes[self.seats + 1 :]
        coins = jax.lax.top_k(by_owner.max(axis=0), self.config.coins)[1]
        return CoinState(
            walls=planes[self.seats] > 0,
            seats=seen_seats(view, self.seats),
            coins=coins.astype(jnp.int32),
            owners=by_owner[:, coins].argmax(axis=0).astype(jnp.int32),
            steps=jnp.rint(view.time * self.horizon).astype(jnp.int32),
            last_actions=view.last_actions,
        )

    def present(self, state: CoinState) -> jax.Array:
        return jnp.ones(self.seats, bool)  # [9]

    def parse(self, text: str) -> CoinState:
        board, walls = self.read(text)
        coins = [
            (cell, owner) for owner in range(self.seats) for cell in board.things[LETTERS[owner]]
        ]
        check_count("coins", len(coins), self.config.coins)
        if len(coins) < self.config.coins:
            raise ConfigError(
                f"the layout has {len(coins)} coins, and there are always {self.config.coins}"
            )
        if len({cell for cell, _ in coins}) < len(coins):
            raise ConfigError("the layout has two coins in a cell")
        if (~walls).sum() < self.config.pieces:
            raise ConfigError("the layout has too few free cells for coins to come back")
        cells, owners = np.array(coins, np.int32).T
        return self._start(walls, self.read_seats(board), jnp.asarray(cells), jnp.asarray(owners))

    def show(self, state: CoinState) -> str:
        host = jax.device_get(state)
        coins = [(LETTERS[o], cell) for o, cell in zip(host.owners, host.coins, strict=True)]
        return self.write(host.walls, dict(enumerate(host.seats)), coins)

    def _start(
        self, walls: jax.Array, seats: jax.Array, coins: jax.Array, owners: jax.Array
    ) -> CoinState:
        """The state of a board on which nobody has acted yet."""
        nobody = jnp.full(self.seats, -1, jnp.int32)
        return CoinState(walls, seats, coins, owners, jnp.int32(0), nobody)


def _drawing(owner: int) -> str:
    """A gold coin with a square of the owner's colour."""
    return (
        "oval #8a6d1b 0 50 36 36 0; oval #f8e3a0 0 50 32 32 0"
        f"; area {PALETTE[owner]} 0 28 22 50 0 72 -22 50"
    )
