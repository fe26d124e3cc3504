"""The coin game, `coin-v1`; numbers in brackets are those of docs/rules.md.

Kinds of coins are told by whose they are, as each seat sees it: its own first, then cyclically.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp

from hopplus.config import CoinConfig, ConfigError
from hopplus.games import grid
from hopplus.games.board_game import BoardGame, BoardState, check_count
from hopplus.games.game import Target
from hopplus.games.render import PALETTE
from hopplus.lookup import at
from hopplus.types import Outcome, View

LETTERS = "abcd"  # how the coins of each seat are written in a layout


class CoinState(BoardState):
    """One board. `P` coins."""

    coins: jax.Array  # [P] int32 cell
    owners: jax.Array  # [P] int32 seat


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
        board, numbers = self.draw(key)
        owners, rest = grid.parted(numbers[self.seats :], self.seats)
        walls, cells = self.place(board, jnp.append(numbers[: self.seats], rest))
        seats, coins = cells[: self.seats], cells[self.seats :]
        return CoinState(walls, seats, **self.unplayed, coins=coins, owners=owners)

    def step(self, state: CoinState, joint: jax.Array, key: jax.Array) -> tuple[CoinState, Outcome]:
        c = self.config
        joint = joint.astype(jnp.int32)
        seats, played, legal = self.walk(state, joint)  # [4] [5]
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
        # No more than one coin a seat is taken, so that many come back, in the order of the coins.
        numbers = jax.random.uniform(key, (min(c.coins, c.seats),))
        owners, rest = grid.parted(numbers, c.seats)  # [8]
        again = grid.distinct_free(rest, free)
        which = jnp.cumsum(taken) - 1
        steps = state.steps + 1
        after = replace(
            state,
            seats=seats,
            coins=jnp.where(taken, at(again, which), state.coins),
            owners=jnp.where(taken, at(owners, which), state.owners),
            steps=steps,
            last_actions=played,
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
        cells = jnp.arange(self.config.rows * self.config.columns)[:, None]
        coins = jnp.where(state.coins == cells, 1 << state.owners, 0).sum(axis=1)
        return self.look(state, seat, grid.turned(coins, seat, self.seats))

    def seen(self, view: View) -> CoinState:
        board, by_owner = self.seen_board(view)
        coins = jax.lax.top_k(by_owner.max(axis=0), self.config.coins)[1].astype(jnp.int32)
        owners = by_owner[:, coins].argmax(axis=0).astype(jnp.int32)
        return CoinState(**board, coins=coins, owners=owners)

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
        cells, owners = jnp.array(coins, jnp.int32).T
        seats = self.read_seats(board)
        return CoinState(walls, seats, **self.unplayed, coins=cells, owners=owners)

    def show(self, state: CoinState) -> str:
        host = jax.device_get(state)
        coins = [(LETTERS[o], cell) for o, cell in zip(host.owners, host.coins, strict=True)]
        return self.write(host.walls, dict(enumerate(host.seats)), coins)


def _drawing(owner: int) -> str:
    """A gold coin with a square of the owner's colour."""
    return (
        "oval #8a6d1b 0 50 36 36 0; oval #f8e3a0 0 50 32 32 0"
        f"; area {PALETTE[owner]} 0 28 22 50 0 72 -22 50"
    )
