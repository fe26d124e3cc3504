"""What games on a board share: where things begin, walls, time, and views turned to each seat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError
from hopplus.games import grid, layout
from hopplus.games.game import Target
from hopplus.lookup import at
from hopplus.types import View, ViewShape


class BoardState(eqx.Module):
    """What every board has; each game's own class adds what is on it."""

    walls: jax.Array  # [H*W] bool
    seats: jax.Array  # [N] int32 cell, the last one for a seat that has left
    steps: jax.Array  # [] int32, steps played
    last_actions: jax.Array  # [N] int32, as played; -1 none


@dataclass(frozen=True)
class BoardGame:
    """The rules for one setting of a game; equal settings are equal games. Everything is seen and
    all seats are alike and stay, unless a game says otherwise."""

    config: Any  # a `BoardConfig`
    bank: grid.Bank = field(init=False, repr=False, compare=False)  # follows from the config

    more_actions: ClassVar[tuple[str, ...]] = ()  # behind the moves

    def __post_init__(self) -> None:
        c = self.config
        bank = grid.draw_bank(c.rows, c.columns, c.obstacles, c.boards, c.pieces, c.board_seed)
        object.__setattr__(self, "bank", bank)

    @property
    def name(self) -> str:
        return str(self.config.name)

    @property
    def seats(self) -> int:
        return int(self.config.seats)

    @property
    def horizon(self) -> int:
        return int(self.config.horizon)

    @property
    def targets(self) -> Mapping[str, Target]:
        raise NotImplementedError

    @property
    def shape(self) -> ViewShape:
        return self.config.rows, self.config.columns, self.seats + 1 + len(self.targets)

    @property
    def action_names(self) -> tuple[str, ...]:
        return (*grid.MOVE_NAMES, *self.more_actions)

    @property
    def hidden(self) -> str | None:
        return None

    @property
    def sees_all(self) -> bool:
        return True

    @property
    def symmetric(self) -> bool:
        return True

    def describe(self) -> tuple[str, Mapping[str, Any]]:
        things = tuple(self.config.things)
        words = "".join(f", {name}: {{{name}}}" for name in (*things, "obstacles"))
        names = ("name", "rows", "columns", *things, "obstacles")
        text = "{name}, {rows}x{columns}" + words
        return text, {name: getattr(self.config, name) for name in names}

    def draw(self, key: jax.Array) -> tuple[jax.Array | int, jax.Array]:
        """The number of a board, and [pieces] uniform numbers."""
        board: jax.Array | int = 0
        if self.bank.boards > 1:
            key, key_board = jax.random.split(key)
            board = jax.random.randint(key_board, (), 0, self.bank.boards)
        return board, jax.random.uniform(key, (self.config.pieces,))

    def place(self, board: jax.Array | int, numbers: jax.Array) -> tuple[jax.Array, jax.Array]:
        """A board and where all pieces begin on it: walls [H*W] bool, distinct cells [pieces]
        int32, every placement equally likely for uniform numbers."""
        bank: grid.Bank = jax.tree.map(jnp.asarray, self.bank)
        cells = grid.distinct_ranks(numbers, bank.free[board])
        if self.config.obstacles:
            cells = bank.cells[board][cells]
        return bank.walls[board], cells

    @property
    def unplayed(self) -> dict[str, jax.Array]:
        """What a state has before anyone has acted."""
        return {"steps": jnp.int32(0), "last_actions": jnp.full(self.seats, -1, jnp.int32)}

    def walk(
        self, state: Any, joint: jax.Array, acts: jax.Array | bool = False
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Where the seats are after their moves, what they have played, and whether what they chose
        was legal, [N] each; those with `acts` [N] did something else that was."""
        there = self.present(state)
        target = jax.vmap(grid.moved, in_axes=(0, 0, None, None))(
            state.seats, joint, state.walls, self.config.columns
        )
        moves = (target != state.seats) & there
        legal = (joint == grid.STAY) | moves | acts
        played = jnp.where(there, jnp.where(legal, joint, grid.STAY), -1)
        return jnp.where(moves, target, state.seats), played, legal

    def look(
        self, state: Any, seat: jax.Array | int, things: jax.Array, acts: jax.Array | None = None
    ) -> View:
        """What a seat sees: `things` [H*W] int32 has a bit for each kind of them; `acts` [A - 5]
        are what is legal there besides moves."""
        c, there = self.config, self.present(state)
        cells = jnp.arange(c.rows * c.columns)[:, None]
        seats = (((state.seats == cells) & there) << jnp.arange(c.seats)).sum(axis=1)
        rest = state.walls << c.seats | things << (c.seats + 1)
        contents = grid.turned(seats, seat, c.seats) | rest  # [H*W], a bit for each plane
        if not self.sees_all:
            contents = jnp.where(self.in_sight(state, seat), contents, 0)
        planes = contents[:, None] >> jnp.arange(self.shape[2]) & 1
        legal = grid.open_moves(at(state.seats, seat), state.walls, c.columns)
        if acts is not None:
            legal = jnp.append(legal, acts)
        order = np.add.outer(np.arange(c.seats), np.arange(c.seats)) % c.seats  # own first
        # A table, because XLA divides by a constant only nearly exactly.
        time = (np.arange(self.horizon + 1) / self.horizon).astype(np.float32)
        return View(
            planes=planes.astype(jnp.float32).reshape(self.shape),
            legal=legal & at(there, seat) | (jnp.arange(len(legal)) == grid.STAY),
            time=at(jnp.asarray(time), state.steps),
            last_actions=at(state.last_actions, at(jnp.asarray(order), seat)),
        )

    def in_sight(self, state: Any, seat: jax.Array | int) -> jax.Array:
        """[H*W] bool, the cells that a seat sees, in a game that does not show all."""
        raise NotImplementedError

    def seen_board(self, view: View) -> tuple[dict[str, jax.Array], jax.Array]:
        """What a view shows of a `BoardState`, seats in its order; and the planes [K, H*W] of the
        things."""
        planes = view.planes.reshape(-1, self.shape[2]).T  # [C, H*W]
        board = {
            "walls": planes[self.seats] > 0,
            "seats": planes[: self.seats].argmax(axis=1).astype(jnp.int32),
            "steps": jnp.rint(view.time * self.horizon).astype(jnp.int32),
            "last_actions": view.last_actions,
        }
        return board, planes[self.seats + 1 :]

    def present(self, state: Any) -> jax.Array:
        return jnp.ones(self.seats, bool)

    def read(self, text: str) -> tuple[layout.Board, jax.Array]:
        """A layout taken apart, checked against the settings, and its walls."""
        letters = "".join(target.letter for target in self.targets.values())
        board = layout.read(text, self.config.rows, self.config.columns, self.seats, letters)
        walls = np.zeros(self.config.rows * self.config.columns, bool)
        walls[list(board.obstacles)] = True
        return board, jnp.asarray(walls)

    def read_seats(self, board: layout.Board) -> jax.Array:
        """[N] int32 the cells of the seats, in a game that nobody leaves."""
        if missing := [seat for seat in range(self.seats) if seat not in board.seats]:
            raise ConfigError(f"the layout lacks seat {missing[0]}, and nobody leaves this game")
        return jnp.asarray([board.seats[seat] for seat in range(self.seats)], jnp.int32)

    def write(self, walls: Any, seats: Mapping[int, Any], things: list[tuple[str, Any]]) -> str:
        """The layout of seats and things by their cells."""
        cells = ["#" if wall else "" for wall in np.asarray(walls)]
        for seat, cell in seats.items():
            cells[int(cell)] += str(seat)
        for letter, cell in things:
            cells[int(cell)] += letter
        return layout.write([cell or "." for cell in cells], self.config.columns)


def check_count(letter: str, found: int, most: int) -> None:
    """Raise `ConfigError` if a layout has more things of a kind than the game."""
    if found > most:
        raise ConfigError(f"the layout has {found} {letter} but the game is set to {most}")
