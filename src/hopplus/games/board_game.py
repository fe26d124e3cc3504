"""What games on a board share: where things begin, walls, time, and views turned to each seat."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError
from hopplus.games import grid, layout
from hopplus.games.game import Target
from hopplus.types import View, ViewShape


@dataclass(frozen=True)
class BoardGame:
    """The rules for one setting of a game; equal settings are equal games. Everything is seen and
    all seats are alike, unless a game says otherwise."""

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

    def place(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw a board and where all pieces begin on it: walls [H*W] bool, distinct cells [pieces]
        int32, every placement equally likely."""
        bank: grid.Bank = jax.tree.map(jnp.asarray, self.bank)
        board: jax.Array | int = 0
        if bank.boards > 1:
            key, key_board = jax.random.split(key)
            board = jax.random.randint(key_board, (), 0, bank.boards)
        cells = bank.cells[board]
        return bank.walls[board], grid.distinct_places(
            key, cells, bank.free[board], self.config.pieces
        )

    def time(self, steps: jax.Array) -> jax.Array:
        """[] float32 the share of the episode that is over."""
        # A table, because XLA divides by a constant only nearly exactly.
        table = (np.arange(self.horizon + 1) / self.horizon).astype(np.float32)
        return jnp.asarray(table)[steps]

    def planes(self, contents: jax.Array) -> jax.Array:
        """[H, W, C] float32 from [H*W] int32 with a bit for each plane."""
        planes = contents[:, None] >> jnp.arange(self.shape[2]) & 1
        return planes.astype(jnp.float32).reshape(self.shape)

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


def seen_seats(view: View, seats: int) -> jax.Array:
    """[N] int32 the cells in which a view shows the seats, own first."""
    planes = view.planes.reshape(-1, view.planes.shape[-1])
    return planes[:, :seats].argmax(axis=0).astype(jnp.int32)
