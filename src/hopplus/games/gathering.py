"""All that a game needs in which things are gathered, but what they bring."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError
from hopplus.games import grid
from hopplus.games.board_game import BoardGame, BoardState, check_count
from hopplus.games.game import Target
from hopplus.types import Outcome, View


class Things(BoardState):
    """A board with things of several kinds, `P` of them, in the order of the kinds."""

    things: jax.Array  # [P] int32 cell
    there: jax.Array  # [P] bool, not taken


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
        walls, cells = self.place(*self.draw(key))
        seats, things = cells[: self.seats], cells[self.seats :]
        there = jnp.ones(len(things), bool)
        return Things(walls, seats, **self.unplayed, things=things, there=there)

    def step(self, state: Things, joint: jax.Array, key: jax.Array) -> tuple[Things, Outcome]:
        seats, played, legal = self.walk(state, joint.astype(jnp.int32))
        moves = seats != state.seats
        comes = moves[:, None] & (seats[:, None] == state.things) & state.there  # [N, P]
        takers = comes.sum(axis=0)  # [P]
        taken = takers > 0
        things, there = state.things, state.there & ~taken
        if self.returns:
            free = ~state.walls.at[seats].set(True).at[things].max(there)
            fresh = grid.distinct_free(jax.random.uniform(key, things.shape), free)
            # As many as were taken are surely free, and those are drawn first.
            things = jnp.where(taken, fresh[jnp.cumsum(taken) - 1], things).astype(jnp.int32)
            there = state.there
        after = replace(
            state,
            seats=seats,
            things=things,
            there=there,
            steps=state.steps + 1,
            last_actions=played,
        )
        return after, Outcome(
            reward=self.rewards(comes / jnp.maximum(takers, 1) @ self._kinds).astype(jnp.float32),
            left=jnp.zeros(self.seats, bool),
            done=(after.steps >= self.horizon) | ~there.any(),
            illegal=~legal,
            took=comes.astype(jnp.int32) @ self._kinds,
            taken=taken.astype(jnp.int32) @ self._kinds,
        )

    def view(self, state: Things, seat: jax.Array | int) -> View:
        cells = jnp.arange(len(state.walls))[:, None]
        kinds = ((state.things == cells) & state.there).astype(jnp.int32) @ self._kinds > 0
        return self.look(state, seat, (kinds << np.arange(kinds.shape[1])).sum(axis=1))

    def seen(self, view: View) -> Things:
        board, planes = self.seen_board(view)
        counts = self.config.things.values()
        found = [jax.lax.top_k(plane, count) for plane, count in zip(planes, counts, strict=True)]
        things = jnp.concatenate([cells for _, cells in found]).astype(jnp.int32)
        there = jnp.concatenate([there for there, _ in found]) > 0
        return Things(**board, things=things, there=there)

    def parse(self, text: str) -> Things:
        board, walls = self.read(text)
        things, there = [], []
        for target, count in zip(self.targets.values(), self.config.things.values(), strict=True):
            found = board.things[target.letter]
            check_count(target.letter, len(found), count)
            things += [*found, *[0] * (count - len(found))]
            there += [place < len(found) for place in range(count)]
        found = [cell for cell, present in zip(things, there, strict=True) if present]
        if len(set(found)) < len(found):
            raise ConfigError("the layout has two things in a cell")
        if self.returns and (~walls).sum() < self.config.pieces:
            raise ConfigError("the layout has too few free cells for things to come back")
        cells, seats = jnp.asarray(things, jnp.int32), self.read_seats(board)
        return Things(walls, seats, **self.unplayed, things=cells, there=jnp.asarray(there))

    def show(self, state: Things) -> str:
        host = jax.device_get(state)
        letters = [target.letter for target in self.targets.values()]
        called = [letters[kind] for kind in self._kinds.argmax(axis=1)]
        shown = zip(called, host.things, host.there, strict=True)
        things = [(letter, cell) for letter, cell, there in shown if there]
        return self.write(host.walls, dict(enumerate(host.seats)), things)
