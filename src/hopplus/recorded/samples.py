"""From recorded rows to what models learn from."""

from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game
from hopplus.models.goal import GoalPart
from hopplus.recorded.dataset import Shard, is_held_out
from hopplus.recorded.record import Rows, unpacked, view_at
from hopplus.types import Params, Sample, View


class Source(eqx.Module):
    """A file's rows as the device holds them, filled up to one size for all files."""

    rows: Rows  # [R, ...]
    last_seen: jax.Array  # [R, N] int32, the last row of the episode with the seat present
    caught: jax.Array  # [R, N] int32, the kind of thing the seat takes last; K for none


def source_of(shard: Shard, size: int) -> Source:
    """The rows of a file, filled up with zeros to `size`."""

    def filled(leaf: Any) -> jax.Array:
        array = np.asarray(leaf)
        padded = np.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1))
        put: jax.Array = jax.device_put(padded)
        return put

    rows = jax.tree.map(filled, shard.rows)
    return Source(rows, filled(shard.last_seen), filled(shard.caught))


def seat_steps(shard: Shard, held_out: float, *, measured: bool) -> np.ndarray:
    """[M, 2] int32 rows and seats: every step of every seat present, of the episodes that are held
    out (`measured`), or of the others."""
    chosen = is_held_out(shard.number, held_out) == measured
    stepped = chosen[shard.episode] & (np.asarray(shard.rows.joint)[:, 0] >= 0)
    return np.argwhere(stepped[:, None] & np.asarray(shard.rows.present)).astype(np.int32)


@dataclass(frozen=True)
class Sampler:
    """Makes samples of a game's rows."""

    game: Game
    ahead: int = 5  # `Sample.later` is at most so many steps later
    goal: Literal["none", "caught", "hindsight"] = "none"  # what `Sample.goal` is
    prior: GoalPart | None = None  # whose goals, in hindsight

    @property
    def goal_size(self) -> int:
        match self.goal:
            case "caught":
                return len(self.game.targets) + 1
            case "hindsight":
                assert self.prior is not None
                return self.prior.config.size
        return 0

    def __call__(
        self, source: Source, step: jax.Array, key: jax.Array, prior_params: Params
    ) -> Sample:
        """The sample of a row and a seat, [2] int32; `key` draws how much later `later` is."""
        row, seat = step
        rows, seats = source.rows, self.game.seats
        order = (seat + jnp.arange(seats)) % seats
        next_row = row + 1
        steps = jax.random.randint(key, (), min(1, self.ahead), self.ahead + 1)
        later = self.view(source, jnp.minimum(row + steps, source.last_seen[row, seat]), seat)
        actions = len(self.game.action_names)
        return Sample(
            view=self.view(source, row, seat),
            present=rows.present[row, order],
            joint=rows.joint[row, order].astype(jnp.int32),
            reward=rows.reward[row, order],
            after=self.view(source, next_row, seat),
            present_after=rows.present[next_row, order],
            legal_after=unpacked(rows.legal[next_row, order], (actions,)),
            done=rows.done[row],
            later=later,
            caught=source.caught[row, seat],
            goal=self._goal(prior_params, later, source.caught[row, seat]),
        )

    def view(self, source: Source, row: jax.Array, seat: jax.Array) -> View:
        return view_at(self.game, source.rows, row, seat)

    def _goal(self, prior_params: Params, later: View, caught: jax.Array) -> jax.Array:
        if self.goal == "hindsight":
            assert self.prior is not None
            return self.prior.goal(prior_params, later)
        return jax.nn.one_hot(caught, self.goal_size)  # of size 0 for no goal
