"""A family of those who weigh: what things are worth to them, how far they are, and what the others
do there.

Following others, keeping away from them and waiting for them are each a weight of the same sum, so
that learners meet these together and in any measure.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from hopplus.players.scripted.family import (
    Family,
    Intent,
    Kept,
    distances,
    others,
    pursuits,
    whole,
)
from hopplus.types import View


class Weighing(Family):
    """Draws what aims are worth (two numbers), the weight of another near a thing, how near that
    is, the weight of what others walk to, that of the distance, and its share of random acts."""

    name: ClassVar[str] = "family-weighing"
    about: ClassVar[str] = (
        "goes for what is worth most by drawn weights of kinds, distance and what others do"
    )

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        worth = self._worths(numbers)  # [K]
        seats, there = self.game.seats, self.things(view)
        near = distances(others(seats, view)) <= whole(numbers[3], 0, self.reach)
        walked_to = (pursuits(self.game, view)[0] >= 0).any(axis=0)  # [K]
        far = distances(view.planes[..., 0] > 0) / sum(self.game.shape[:2])
        total = worth + _weight(numbers[4]) * walked_to
        total = total + (_weight(numbers[2]) * near - numbers[5] * far)[..., None]  # [H, W, K]
        total = jnp.where(there, total, 0.0)
        wanted = there & (total > 0) & (total >= total.max())
        aim = wanted.any(axis=(0, 1))
        goal = jnp.where(aim.sum() == 1, aim, False).astype(jnp.float32)
        noise = jnp.maximum(0.0, 0.6 * numbers[6] - 0.3)  # none in half of the members
        return Intent(wanted, goal, noise)

    def _worths(self, numbers: jax.Array) -> jax.Array:
        """[K] from -1 to 1, of each aim apart from the others however many there are."""
        aims = self.aims[:-1]
        drawn = (numbers[0] + jnp.arange(len(aims)) * numbers[1]) % 1.0
        return (2 * drawn - 1) @ aims


def _weight(number: jax.Array) -> jax.Array:
    """[] from -2 to 2, and none at all for a third of the numbers."""
    signed = 2 * number - 1
    return jnp.sign(signed) * jnp.maximum(0.0, 3 * abs(signed) - 1)
