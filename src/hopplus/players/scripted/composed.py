"""A family of rules put together by chance: where it takes things, and when it changes its mind.

The other families each have one way of their own. Learners that meet these alone know as many ways
as there are families; a member of this one combines two.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.players.scripted.family import Family, Intent, distances, others, whole
from hopplus.players.taking import no_things, takes
from hopplus.types import View


class Noted(eqx.Module):
    """What its conditions are about."""

    things: jax.Array  # [H, W, K] bool, where they were; none before an episode
    theirs: jax.Array  # [] int32, things that others have taken in this episode
    own: jax.Array  # [] int32, things that it has taken in this episode
    idle: jax.Array  # [] int32, steps of this episode since it took something last
    failed: jax.Array  # [] bool, it took nothing in the episode before


class Composed(Family):
    """Draws two aims, where the first holds, what has it turn to the other, and how much of it."""

    name: ClassVar[str] = "family-composed"
    about: ClassVar[str] = "goes for one aim in drawn places, for another under a drawn condition"
    weight: ClassVar[int] = 4

    def fresh(self) -> Noted:
        none = jnp.int32(0)  # and no step has been played before the first view
        return Noted(no_things(self.game), none, none, jnp.int32(-1), jnp.bool_(False))

    def notice(self, numbers: jax.Array, kept: Noted, view: View) -> Noted:
        took = takes(self.game, kept.things, view).sum(axis=1, dtype=jnp.int32)  # [N]
        return Noted(
            things=self.things(view),
            theirs=kept.theirs + took[1:].sum(),
            own=kept.own + took[0],
            idle=jnp.where(took[0] > 0, 0, kept.idle + 1),
            failed=kept.failed,
        )

    def next_episode(self, kept: Noted) -> Noted:
        return eqx.tree_at(lambda one: one.failed, self.fresh(), kept.own == 0)

    def intend(self, numbers: jax.Array, kept: Noted, view: View) -> Intent:
        first, then = self.two_aims(numbers)
        turns = self._conditions(numbers[5], kept, view)[whole(numbers[4], 0, 4)]
        where = self._places(numbers[3], view)[whole(numbers[2], 0, 3)]
        waits = numbers[6] < 0.25  # instead of having the other aim
        return self.after(view, jnp.where(turns, then & ~waits, first), where | turns)

    def _places(self, number: jax.Array, view: View) -> jax.Array:
        """[4, H, W] bool: anywhere, near others, away from them, in a half of the board."""
        far = distances(others(self.game.seats, view))
        near = far <= whole(number, 0, self.reach)
        rows, columns = np.mgrid[: far.shape[0], : far.shape[1]]
        half = jnp.where(number < 0.5, 2 * rows < far.shape[0], 2 * columns < far.shape[1])
        return jnp.stack([jnp.ones_like(near), near, ~near, half])

    def _conditions(self, number: jax.Array, kept: Noted, view: View) -> jax.Array:
        """[5] bool: another is near itself; it is late; others have taken some; it has not taken
        anything for long; it took nothing in the episode before."""
        here = view.planes[..., 0] > 0
        far = distances(others(self.game.seats, view))
        nearest = jnp.where(here, far, 2 * sum(self.game.shape[:2])).min()
        steps = whole(number, 2, max(2, self.game.horizon // 2))
        return jnp.stack(
            [
                nearest <= whole(number, 1, self.reach),
                self.steps(view) >= steps,
                kept.theirs >= whole(number, 1, 3),
                kept.idle >= steps,
                kept.failed,
            ]
        )
