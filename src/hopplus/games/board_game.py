"""What games on a board share: where things begin, walls, time, and views turned to each seat; and
all that a game needs in which things are gathered but what they bring."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError
from hopplus.games import grid, layout
from hopplus.games.game import Target
from hopplus.types import Outcome, View, ViewShape


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


class Things(eqx.Module):
    """A board with things of several kinds, `P` of them, in the order of the kinds."""

    walls: jax.Array  # [H*W] bool
    seats: jax.Array  # [N] int32 cell
    things: jax.Array  # [P] int32 cell
    there: jax.Array  # [P] bool, not taken
    steps: jax.Array  # [] int32, steps played
    last_actions: jax.Array  # [N] int32, as played; -1 none


@dataclass(frozen=True)
class GatheringGame(BoardGame):
    """Things are taken by walking onto them, and nobody leaves: a game needs no more than `rewards`
    and settings that say how many `things` of each kind there are.

    What was taken `returns` somewhere by chance, or else the episode ends when nothing is left.
    """

    returns: ClassVar[bool] = False
    drawings: ClassVar[Mapping[str, str]] = MappingProxyType({})  # by kind: `hopplus.games.sprites`

    def rewards(self, shares: jax.Array) -> jax.Array:
        """[N] what a step brings everyone, from how many things of each kind everyone took [N, K]
        float32; those that several came to at once are shared."""
        raise NotImplementedError

    @property
    def targets(self) -> Mapping[str, Target]:
        """Kinds are called as their counts are, without the s, and written by the first letter."""
        kinds = [name.removesuffix("s") for name in self.config.things]
        return {
            kind: Target(
                self.seats + 1 + number,
                action=None,
                letter=kind[0],
                drawing=self.drawings.get(kind, ""),
                common=True,
                returns=self.returns,
            )
            for number, kind in enumerate(kinds)
        }

    @property
    def best_joint_return(self) -> float | None:
        return None  # unless a game knows

    @property
    def _kinds(self) -> np.ndarray:
        """[P, K] one-hot the kind of each thing."""
        counts = list(self.config.things.values())
        return np.repeat(np.eye(len(counts), dtype=np.int32), counts, axis=0)

    def init(self, key: jax.Array) -> Things:
        walls, cells = self.place(key)
        things = cells[self.seats :]
        return self._start(walls, cells[: self.seats], things, jnp.ones(len(things), bool))

    def _start(
        self, walls: jax.Array, seats: jax.Array, things: jax.Array, there: jax.Array
    ) -> Things:
        nobody = jnp.full(self.seats, -1, jnp.int32)
        return Things(walls, seats, things, there, jnp.int32(0), nobody)

    def step(self, state: Things, joint: jax.Array, key: jax.Array) -> tuple[Things, Outcome]:
        joint = joint.astype(jnp.int32)
        seats = jax.vmap(grid.moved, in_axes=(0, 0, None, None))(
            state.seats, joint, state.walls, self.config.columns
        )
        moves = seats != state.seats
        comes = moves[:, None] & (seats[:, None] == state.things) & state.there  # [N, P]
        takers = comes.sum(axis=0)  # [P]
        taken = takers > 0
        things, there = state.things, state.there & ~taken
        if self.returns:
            free = ~state.walls.at[seats].set(True).at[things].max(there)
            fresh = grid.distinct_free(key, free, len(things))
            # As many as were taken are surely free, and those are drawn first.
            things = jnp.where(taken, fresh[jnp.cumsum(taken) - 1], things).astype(jnp.int32)
            there = state.there
        steps = state.steps + 1
        legal = moves | (joint == grid.STAY)
        played = jnp.where(legal, joint, grid.STAY)
        return Things(state.walls, seats, things, there, steps, played), Outcome(
            reward=self.rewards(comes / jnp.maximum(takers, 1) @ self._kinds).astype(jnp.float32),
            left=jnp.zeros(self.seats, bool),
            done=(steps >= self.horizon) | ~there.any(),
            illegal=~legal,
            took=comes.astype(jnp.int32) @ self._kinds,
            taken=taken.astype(jnp.int32) @ self._kinds,
        )

    def view(self, state: Things, seat: jax.Array | int) -> View:
        cells = jnp.arange(len(state.walls))[:, None]
        seats = ((state.seats == cells) << jnp.arange(self.seats)).sum(axis=1)
        things = ((state.things == cells) & state.there).astype(jnp.int32) @ self._kinds > 0
        ground = jnp.column_stack([state.walls, things]) << self.seats + np.arange(
            1 + things.shape[1]
        )
        return View(
            planes=self.planes(grid.turned(seats, seat, self.seats) | ground.sum(axis=1)),
            legal=grid.open_moves(state.seats[seat], state.walls, self.config.columns),
            time=self.time(state.steps),
            last_actions=jnp.roll(state.last_actions, -seat),
        )

    def seen(self, view: View) -> Things:
        planes = view.planes.reshape(-1, self.shape[2]).T  # [C, H*W]
        counts = enumerate(self.config.things.values(), self.seats + 1)
        there, things = zip(
            *(jax.lax.top_k(planes[at], count) for at, count in counts), strict=True
        )
        return Things(
            walls=planes[self.seats] > 0,
            seats=seen_seats(view, self.seats),
            things=jnp.concatenate(things).astype(jnp.int32),
            there=jnp.concatenate(there) > 0,
            steps=jnp.rint(view.time * self.horizon).astype(jnp.int32),
            last_actions=view.last_actions,
        )

    def present(self, state: Things) -> jax.Array:
        return jnp.ones(self.seats, bool)

    def parse(self, text: str) -> Things:
        board, walls = self.read(text)
        things, there = [], []
        for target, count in zip(self.targets.values(), self.config.things.values(), strict=True):
            found = board.things[target.letter]
            check_count(target.letter, len(found), count)
            things += [*found, *[0] * (count - len(found))]
            there += [place < len(found) for place in range(count)]
        cells = jnp.asarray(things, jnp.int32)
        return self._start(walls, self.read_seats(board), cells, jnp.asarray(there))

    def show(self, state: Things) -> str:
        host = jax.device_get(state)
        letters = [target.letter for target in self.targets.values()]
        called = [letters[kind] for kind in self._kinds.argmax(axis=1)]
        shown = zip(called, host.things, host.there, strict=True)
        things = [(letter, cell) for letter, cell, there in shown if there]
        return self.write(host.walls, dict(enumerate(host.seats)), things)
