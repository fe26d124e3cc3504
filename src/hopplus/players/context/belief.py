"""What is each other after? A belief over kinds of things on the board (HOP, Huang et al. 2024).

Within an episode it is multiplied by how likely each action seen would have been for each goal.
From episode to episode it begins with how often the other was seen to take each kind. Nothing in it
is about who sits where: only views are read. What was taken is told by what is gone from the board,
not by who is, so that it works in games that nobody leaves.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import BeliefConfig
from hopplus.games.game import kinds_seen, views
from hopplus.models.opponent import OpponentModel, others_logits
from hopplus.players.context.reader import ModelReader
from hopplus.types import Outcome, View


class BeliefMemory(eqx.Module):
    """Of each of the N - 1 others, in the seats' order; K kinds."""

    counts: jax.Array  # [N - 1, K] float32, what it was seen to take, older times discounted
    belief: jax.Array  # [N - 1, K] float32, log-probabilities
    expected: jax.Array  # [N - 1, K, A] float32, log-probabilities of its next act for each goal
    cell: jax.Array  # [N - 1] int32, where it was seen last; -1 where it was not there to be seen
    things: jax.Array  # [H * W, K] bool, what was seen on the board then
    took: jax.Array  # [N - 1] bool, it has taken something in this episode

    @property
    def there(self) -> jax.Array:
        """[N - 1] bool, it is present and what is expected of it is known."""
        return self.cell >= 0


@dataclass(frozen=True)
class BeliefContext(ModelReader):
    """The belief of one seat, kept by the rules of probability."""

    config: BeliefConfig
    gives_chances: ClassVar[bool] = True

    @property
    def kinds(self) -> int:
        """Goals that are told apart: kinds of things, then none of them if that is one."""
        return len(self._game.targets) + self.config.none

    @property
    def size(self) -> int:
        return self.others * self.kinds

    @property
    def carries(self) -> bool:
        return self.config.across

    def start(self) -> BeliefMemory:
        return self._begun(jnp.zeros((self.others, self.kinds)))

    def carry(self, memory: BeliefMemory, view: View) -> BeliefMemory:
        if not self.config.across:
            return self.start()
        counts, took = self._counted(memory, view)
        if self.config.none:
            idle = (self._cells(view) >= 0) & ~took
            nothing = jax.nn.one_hot(jnp.full(self.others, self.kinds - 1), self.kinds)
            older = self.config.discount * counts + nothing
            counts = jnp.where(idle[:, None], older, counts)
        return self._begun(counts)

    def infer(
        self, params: OpponentModel, memory: BeliefMemory, view: View
    ) -> tuple[BeliefMemory, jax.Array]:
        """The memory after a view, and [(N - 1) * K] the probability of each goal."""
        floor, last = self.config.floor, view.last_actions[1:]
        acted = memory.there & (last >= 0)
        seen = jnp.take_along_axis(memory.expected, jnp.maximum(last, 0)[:, None, None], axis=2)
        likely = (1 - floor) * jnp.exp(seen[..., 0]) + floor / memory.expected.shape[2]
        belief = memory.belief + jnp.where(acted[:, None], jnp.log(likely), 0.0)
        belief = jax.nn.log_softmax(belief)
        legal = views(self._game, self._game.seen(view)).legal
        counts, took = self._counted(memory, view)
        after = BeliefMemory(
            counts=counts,
            belief=belief,
            expected=self._expected(params, view, legal),
            cell=self._cells(view),
            things=self._things(view),
            took=took,
        )
        return after, jnp.exp(belief).reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        return context.reshape(self.others, -1)

    def known_later(self, context: jax.Array, outcome: Outcome, seats: np.ndarray) -> jax.Array:
        """What each other turned out to take; zeros where that was not seen, which teaches
        nothing."""
        seen = np.array([kinds_seen(self._game, after) for after in range(1, self._game.seats)])
        return goals_taken(outcome, seats, self.config.none, seen)

    def _begun(self, counts: jax.Array) -> BeliefMemory:
        frequency = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
        actions = len(self._game.action_names)
        return BeliefMemory(
            counts=counts,
            belief=jnp.log(frequency),
            expected=jnp.zeros((self.others, self.kinds, actions)),
            cell=jnp.full(self.others, -1, jnp.int32),
            things=jnp.zeros((math.prod(self._game.shape[:2]), len(self._game.targets)), bool),
            took=jnp.zeros(self.others, bool),
        )

    def _expected(self, models: OpponentModel, view: View, legal: jax.Array) -> jax.Array:
        """[N - 1, K, A] log-probabilities of what each would do next for each goal."""

        def logits_for(goal: jax.Array) -> jax.Array:
            return others_logits(models, view, legal, jnp.tile(goal, (self.others, 1)))

        return jax.vmap(logits_for, out_axes=1)(jnp.eye(self.kinds))

    def _cells(self, view: View) -> jax.Array:
        """[N - 1] int32 where each is; -1 where it is not to be seen."""
        planes = view.planes[..., 1 : self.others + 1].reshape(-1, self.others)
        return jnp.where(planes.any(axis=0), planes.argmax(axis=0), -1).astype(jnp.int32)

    def _things(self, view: View) -> jax.Array:
        """[H * W, K] bool, which kinds of things are in each cell."""
        shown = np.array([target.plane for target in self._game.targets.values()])
        return view.planes.reshape(-1, view.planes.shape[-1])[:, shown] > 0

    def _counted(self, memory: BeliefMemory, view: View) -> tuple[jax.Array, jax.Array]:
        """[N - 1, K] the counts with what each has just taken, and [N - 1] bool who has taken
        anything in this episode.

        A thing is taken by whoever stood on it and did what takes it or, where walking does, stands
        there now; and it is gone. One of several who did the same to it in vain sees it stay.
        """
        before, now, left = memory.cell, self._cells(view), memory.things & ~self._things(view)
        took = []
        for kind, target in enumerate(self._game.targets.values()):
            if target.action is None:
                place, acted = now, memory.there
            else:
                place, acted = before, view.last_actions[1:] == target.action
            took.append(acted & (place >= 0) & left[jnp.maximum(place, 0), kind])
        if self.config.none:
            took.append(jnp.zeros(self.others, bool))
        found = jnp.stack(took, axis=1)
        older = jnp.where(found.any(axis=1, keepdims=True), self.config.discount, 1.0)
        return memory.counts * older + found, memory.took | found.any(axis=1)


def goals_taken(
    outcome: Outcome, seats: np.ndarray, none: bool = False, seen: np.ndarray | None = None
) -> jax.Array:
    """[T, B, n, (N - 1) * K] what each other of the seats is after, as it turned out: one-hot the
    kind that it takes next in the episode, in the seats' order; zeros if that was not seen. With
    `none`, a further kind is that it was seen to take nothing. `seen` [N - 1, K] is how the others
    call the kinds, where that differs."""

    def step(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        took, done = now
        later = jnp.where(done[:, None, None], nothing, later)
        after = jnp.where(took.any(axis=-1, keepdims=True), took, later)
        return after, after

    took = (outcome.took > 0).astype(jnp.float32)  # [T, B, N, K]
    took = jnp.pad(took, ((0, 0), (0, 0), (0, 0), (0, none)))
    nothing = jax.nn.one_hot(took.shape[-1] - 1, took.shape[-1]) * none
    found = jax.lax.scan(step, jnp.zeros_like(took[0]), (took, outcome.done), reverse=True)[1]
    count = found.shape[2]
    others = (seats[:, None] + np.arange(1, count)) % count  # [n, N - 1]
    found = found[:, :, others]  # [T, B, n, N - 1, K]
    if seen is not None:
        kinds = np.pad(seen, ((0, 0), (0, none)), constant_values=seen.shape[1])
        found = jnp.take_along_axis(found, kinds[None, None, None], axis=-1)
    return found.reshape(*found.shape[:2], len(seats), -1)
