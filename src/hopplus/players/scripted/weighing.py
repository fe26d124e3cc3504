"""A family of those who weigh: what things are worth to them, how far they are, what the others do
there, and what the others have taken before.

Following others, keeping away from them, waiting for them, resenting and returning what they did
are each a weight of the same sum, so that learners meet these together and in any measure.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.players.scripted.family import Family, Intent, distances, others, whole
from hopplus.players.scripted.pursuits import pursuits
from hopplus.players.taking import no_things, takes
from hopplus.types import View


class Tally(eqx.Module):
    """What is remembered of what others did."""

    things: jax.Array  # [H, W, K] bool, where they were; none before an episode
    count: jax.Array  # [] int32, things that count for it, taken by others in this trial


class Weighing(Family):
    """Draws what aims are worth (two numbers), the weight of another near a thing, how near that
    is, the weight of what others walk to, that of the distance, its share of random acts or of
    rest; and which aim it watches others take, by how much each aim is worth more after that (two
    numbers), and after how many times."""

    name: ClassVar[str] = "family-weighing"
    about: ClassVar[str] = (
        "goes for what is worth most by drawn weights of kinds, distance and what others do"
    )
    weight: ClassVar[int] = 12

    def fresh(self) -> Tally:
        return Tally(no_things(self.game), jnp.int32(0))

    def notice(self, numbers: jax.Array, kept: Tally, view: View) -> Tally:
        taken = takes(self.game, kept.things, view)[1:] & self.thing(numbers[7])
        return Tally(self.things(view), kept.count + taken.sum(dtype=jnp.int32))

    def next_episode(self, kept: Tally) -> Tally:
        return Tally(no_things(self.game), kept.count)

    def intend(self, numbers: jax.Array, kept: Tally, view: View) -> Intent:
        there = self.things(view)
        near = distances(others(self.game.seats, view)) <= whole(numbers[3], 0, self.reach)
        far = distances(view.planes[..., 0] > 0) / sum(self.game.shape[:2])
        left, called, _ = pursuits(self.game, view)
        # Kinds as those call them who walk there: to its own coin, then it is as to one's own.
        walked_to = jnp.zeros(there.shape[-1], bool).at[called].max(left >= 0)  # [K]
        total = self._worths(numbers, kept.count) + _weight(numbers[4]) * walked_to
        total = total + (_weight(numbers[2]) * near - numbers[5] * far)[..., None]  # [H, W, K]
        total = jnp.where(there, total, 0.0)
        wanted = there & (total > 0) & (total >= total.max())
        aim = wanted.any(axis=(0, 1))
        goal = jnp.where(aim.sum() == 1, aim, False).astype(jnp.float32)
        # Half of the members do what they want; others act at random, or rest, some of the time.
        noise = 1.2 * jnp.clip(numbers[6] - 0.5, 0.0, 0.25) * (numbers[6] < 0.75)
        rest = 3.0 * jnp.maximum(numbers[6] - 0.75, 0.0)
        return Intent(wanted, goal, noise, rest)

    def _worths(self, numbers: jax.Array, count: jax.Array) -> jax.Array:
        """[K] of what it wants at first from -1 to 1, and how that has changed."""
        aims = self.aims[:-1]
        at_first = 2 * _spread(numbers[0], numbers[1], len(aims)) - 1
        change = _weight(_spread(numbers[8], numbers[9], len(aims)))
        # Half of the members never change.
        moved = (numbers[10] >= 0.5) & (count >= whole(2 * numbers[10] - 1, 1, 3))
        return (at_first + moved * change) @ aims


def _spread(number: jax.Array, other: jax.Array, count: int) -> jax.Array:
    """[count] uniform numbers from two, of which any two next to each other are independent."""
    return (number + jnp.arange(count) * other) % 1.0


def _weight(number: jax.Array) -> jax.Array:
    """From -2 to 2, and none at all for a third of the numbers."""
    signed = 2 * number - 1
    return jnp.sign(signed) * jnp.maximum(0.0, 3 * abs(signed) - 1)
