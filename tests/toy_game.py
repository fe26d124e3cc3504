"""A second game, as small as can be, that meets the `Game` protocol: nothing else may be needed.

One row of cells. Each seat may pick the berries of its cell, for a reward of 1 each; nobody leaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games import grid, layout
from hopplus.games.game import Target
from hopplus.types import Outcome, View

PICK = 5


class BerryState(eqx.Module):
    seats: jax.Array  # [N] int32
    berries: jax.Array  # [W] bool
    steps: jax.Array  # [] int32


@dataclass(frozen=True)
class Berries:
    width: int = 5
    seats: int = 2
    horizon: int = 6
    name: str = "berries-v1"

    @property
    def shape(self) -> tuple[int, int, int]:
        return 1, self.width, self.seats + 2

    @property
    def action_names(self) -> tuple[str, ...]:
        return (*grid.MOVE_NAMES, "pick")

    @property
    def targets(self) -> Mapping[str, Target]:
        return {"berry": Target(self.seats + 1, PICK, "h")}

    @property
    def hidden(self) -> str | None:
        return None

    @property
    def best_joint_return(self) -> float:
        return float(self.seats)

    def init(self, key: jax.Array) -> BerryState:
        cells = jnp.arange(self.width)
        places = grid.distinct_places(key, cells, jnp.int32(self.width), 2 * self.seats)
        berries = jnp.zeros(self.width, bool).at[places[self.seats :]].set(True)
        return BerryState(places[: self.seats], berries, jnp.int32(0))

    def step(self, state: BerryState, joint: jax.Array) -> tuple[BerryState, Outcome]:
        walls = jnp.zeros(self.width, bool)
        moved = jax.vmap(lambda c, a: grid.moved(c, a, walls, self.width))(state.seats, joint)
        picks = (joint == PICK) & state.berries[state.seats]
        sharing = (picks[:, None] & picks & (state.seats[:, None] == state.seats)).sum(axis=1)
        berries = state.berries & ~jnp.zeros(self.width, bool).at[state.seats].max(picks)
        after = BerryState(jnp.where(picks, state.seats, moved), berries, state.steps + 1)
        taken = (state.berries & ~berries).sum(dtype=jnp.int32)
        nobody = jnp.zeros(self.seats, bool)
        return after, Outcome(
            reward=jnp.where(picks, 1.0 / jnp.maximum(sharing, 1), 0.0),
            left=nobody,
            done=(after.steps >= self.horizon) | ~berries.any(),
            illegal=nobody,
            took=picks.astype(jnp.int32)[:, None],
            taken=taken[None],
        )

    def view(self, state: BerryState, seat: jax.Array | int) -> View:
        cells = jnp.arange(self.width)
        order = (jnp.arange(self.seats) + seat) % self.seats
        seats = (state.seats[order][None] == cells[:, None]).astype(jnp.float32)  # [W, N]
        rest = jnp.stack([jnp.zeros(self.width), state.berries.astype(jnp.float32)], axis=1)
        moves = grid.open_moves(state.seats[seat], jnp.zeros(self.width, bool), self.width)
        return View(
            planes=jnp.concatenate([seats, rest], axis=1)[None],
            legal=jnp.append(moves, state.berries[state.seats[seat]]),
            time=state.steps / self.horizon,
            last_actions=jnp.full(self.seats, -1, jnp.int32),
        )

    def seen(self, view: View) -> BerryState:
        planes = view.planes[0]  # [W, C]
        steps = jnp.rint(view.time * self.horizon).astype(jnp.int32)
        return BerryState(planes[:, : self.seats].argmax(axis=0), planes[:, -1] > 0, steps)

    def present(self, state: BerryState) -> jax.Array:
        return jnp.ones(self.seats, bool)

    def parse(self, text: str) -> BerryState:
        board = layout.read(text, 1, self.width, self.seats, "h")
        berries = np.isin(np.arange(self.width), board.things["h"])
        seats = [board.seats[seat] for seat in range(self.seats)]
        return BerryState(jnp.asarray(seats, jnp.int32), jnp.asarray(berries), jnp.int32(0))

    def show(self, state: BerryState) -> str:
        cells = ["h" if berry else "" for berry in np.asarray(state.berries)]
        for seat, cell in enumerate(np.asarray(state.seats)):
            cells[cell] = f"{seat}{cells[cell]}"
        return layout.write([cell or "." for cell in cells], self.width)
