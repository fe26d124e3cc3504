"""Markov Stag-Hunt, `stag-hunt-v1`; numbers in brackets are those of docs/rules.md.

Prey are one array, stags first, then hares, so that every rule about a catch is written once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import StagHuntConfig
from hopplus.games.board_game import BoardGame, BoardState, check_count
from hopplus.games.game import Target
from hopplus.games.sprites import SPRITES
from hopplus.lookup import at
from hopplus.types import Outcome, View

HUNT_STAG, HUNT_HARE = 5, 6
LETTERS = "Sh"  # how stags and hares are written in a layout


class StagHuntState(BoardState):
    """One board. `P` prey."""

    present: jax.Array  # [N] bool
    prey: jax.Array  # [P] int32 cell
    alive: jax.Array  # [P] bool
    first_catch: jax.Array  # [] int32, steps played when the first prey was caught; -1 none yet


@dataclass(frozen=True)
class StagHunt(BoardGame):
    """A hare is caught alone, a stag only together; who has caught something goes home."""

    config: StagHuntConfig = field(default_factory=StagHuntConfig)
    more_actions = ("hunt stag", "hunt hare")

    @property
    def targets(self) -> Mapping[str, Target]:
        return {
            "stag": Target(self.seats + 1, HUNT_STAG, LETTERS[0], SPRITES["S"]),
            "hare": Target(self.seats + 2, HUNT_HARE, LETTERS[1], SPRITES["h"]),
        }

    @property
    def hidden(self) -> str | None:
        unseen = {
            "what is out of sight (game.sight)": not self.sees_all,
            "when the first prey was caught (game.grace)": self.config.grace is not None,
            "who is stronger (game.strength)": not self.symmetric,
        }
        return " and ".join(words for words, held in unseen.items() if held) or None

    @property
    def sees_all(self) -> bool:
        return self.config.sight is None

    @property
    def symmetric(self) -> bool:
        return len(set(self.config.weights)) == 1

    @property
    def best_joint_return(self) -> float:
        """Catches of as many stags as pay, each by just enough hunters, and hares for the rest.

        A bound nobody can exceed; with `time_reward` it adds the longest or the shortest stay.
        """
        c = self.config
        catches = max(
            stags * c.stag_reward + min(c.hares, c.seats - stags * c.stag_hunters) * c.hare_reward
            for stags in range(min(c.stags, c.seats // c.stag_hunters) + 1)
        )
        return catches + c.seats * max(c.time_reward, c.time_reward * c.horizon)

    def init(self, key: jax.Array) -> StagHuntState:  # [1]
        c = self.config
        walls, cells = self.place(*self.draw(key))
        return StagHuntState(
            walls=walls,
            seats=cells[: c.seats],
            present=jnp.ones(c.seats, bool),
            prey=cells[c.seats :],
            alive=jnp.ones(c.stags + c.hares, bool),
            first_catch=jnp.int32(-1),
            **self.unplayed,
        )

    def step(
        self, state: StagHuntState, joint: jax.Array, key: jax.Array
    ) -> tuple[StagHuntState, Outcome]:
        del key  # nothing is left to chance but the start
        c = self.config
        joint = joint.astype(jnp.int32)
        on_prey = (state.seats[:, None] == state.prey) & state.alive & state.present[:, None]
        hunts = on_prey & (joint[:, None] == self._by_prey(HUNT_STAG, HUNT_HARE))  # [N, P]
        seats, played, legal = self.walk(state, joint, hunts.any(axis=1))  # [4] [5]
        caught = hunts.sum(axis=0) >= self._by_prey(c.stag_hunters, 1)  # [P] [6]
        shares = hunts & caught  # [N, P]
        weight = jnp.asarray(c.weights, jnp.float32)
        total = jnp.maximum(jnp.where(shares, weight[:, None], 0.0).sum(axis=0), 1.0)
        worth = self._by_prey(c.stag_reward, c.hare_reward).astype(np.float32)
        split = worth * weight[:, None] / total  # [N, P] [7]
        reward = jnp.where(shares, split, 0.0).sum(axis=1)
        reward = reward + jnp.where(state.present, c.time_reward, 0.0)
        left = shares.any(axis=1)  # [8]
        present = state.present & ~left
        alive = state.alive & ~caught
        steps = state.steps + 1
        first = jnp.where((state.first_catch < 0) & caught.any(), steps, state.first_catch)

        done = (steps >= c.horizon) | ~present.any() | ~alive.any()  # [9]
        if c.grace is not None:
            done = done | ((first >= 0) & (steps - first >= c.grace))
        after = replace(
            state,
            seats=seats,
            present=present,
            alive=alive,
            steps=steps,
            last_actions=played,
            first_catch=first,
        )
        outcome = Outcome(
            reward=reward.astype(jnp.float32),
            left=left,
            done=done,
            illegal=~legal,
            took=self._by_kind(shares.astype(jnp.int32)),
            taken=self._by_kind(caught.astype(jnp.int32)),
        )
        return after, outcome

    def view(self, state: StagHuntState, seat: jax.Array | int) -> View:  # [10]
        c = self.config
        cells = jnp.arange(c.rows * c.columns)[:, None]
        prey = (state.prey == cells) & state.alive  # [H*W, P]
        stag, hare = prey[:, : c.stags].any(axis=1), prey[:, c.stags :].any(axis=1)
        on_prey = (state.prey == at(state.seats, seat)) & state.alive
        hunts = jnp.stack([on_prey[: c.stags].any(), on_prey[c.stags :].any()])  # [4]
        return self.look(state, seat, stag | hare << 1, hunts)

    def in_sight(self, state: StagHuntState, seat: jax.Array | int) -> jax.Array:
        c, here = self.config, at(state.seats, seat)
        cells = jnp.arange(c.rows * c.columns)
        down = jnp.abs(cells // c.columns - here // c.columns)
        right = jnp.abs(cells % c.columns - here % c.columns)
        return (jnp.maximum(down, right) <= (c.sight or 0)) & at(state.present, seat)

    def seen(self, view: View) -> StagHuntState:
        c = self.config
        board, things = self.seen_board(view)
        found = [
            jax.lax.top_k(things[kind], count) for kind, count in enumerate((c.stags, c.hares))
        ]
        there, prey = (jnp.concatenate(part) for part in zip(*found, strict=True))
        return StagHuntState(
            **board,
            present=view.planes[..., : c.seats].any(axis=(0, 1)),
            prey=prey.astype(jnp.int32),
            alive=there > 0,
            first_catch=jnp.int32(-1),
        )

    def present(self, state: StagHuntState) -> jax.Array:
        return state.present

    def parse(self, text: str) -> StagHuntState:
        c = self.config
        board, walls = self.read(text)
        prey, alive = [], []
        for letter, count in zip(LETTERS, (c.stags, c.hares), strict=True):
            found = board.things[letter]
            check_count(letter, len(found), count)
            prey += found + [0] * (count - len(found))
            alive += [True] * len(found) + [False] * (count - len(found))
        return StagHuntState(
            walls=walls,
            seats=jnp.asarray([board.seats.get(seat, 0) for seat in range(c.seats)], jnp.int32),
            present=jnp.asarray([seat in board.seats for seat in range(c.seats)]),
            prey=jnp.asarray(prey, jnp.int32),
            alive=jnp.asarray(alive),
            first_catch=jnp.int32(-1),
            **self.unplayed,
        )

    def show(self, state: StagHuntState) -> str:
        host = jax.device_get(state)
        seats = {int(seat): host.seats[seat] for seat in np.flatnonzero(host.present)}
        letters = self._by_prey(*LETTERS)
        prey = [(str(letters[i]), host.prey[i]) for i in np.flatnonzero(host.alive)]
        return self.write(host.walls, seats, prey)

    def _by_prey(self, of_stags: Any, of_hares: Any) -> np.ndarray:
        """[P] one value for the stags, and another for the hares."""
        return np.repeat([of_stags, of_hares], [self.config.stags, self.config.hares])

    def _by_kind(self, counts: jax.Array) -> jax.Array:
        """Add [..., P] up to [..., K]: stags and hares."""
        stags = self.config.stags
        return jnp.stack(
            [counts[..., :stags].sum(axis=-1), counts[..., stags:].sum(axis=-1)], axis=-1
        )
