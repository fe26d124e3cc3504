"""The families: what they want, and how that changes with time, place and what others do.

Aims are those of the game (`Family.aims`); each family says what its numbers stand for, in order.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.players.scripted.composed import Composed
from hopplus.players.scripted.family import (
    Family,
    Intent,
    Kept,
    distances,
    halves,
    others,
    whole,
)
from hopplus.players.scripted.pursuits import nearest_pursuit
from hopplus.players.scripted.weighing import Weighing
from hopplus.players.taking import no_things, takes
from hopplus.types import View

FOR_GOOD = 2**30  # episodes


class Devoted(Family):
    """Draws an aim."""

    name: ClassVar[str] = "family-devoted"
    about: ClassVar[str] = "goes for one aim, drawn for the trial"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        return self.after(view, self.aim(numbers[0]))


class Shifting(Family):
    """Draws an aim, another, and the time."""

    name: ClassVar[str] = "family-shifting"
    about: ClassVar[str] = "goes for one aim until a drawn time of each episode, then for another"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        first, then = self.two_aims(numbers)
        early = self.steps(view) < whole(numbers[2], 1, max(1, self.game.horizon // 2))
        return self.after(view, jnp.where(early, first, then))


class Alternating(Family):
    """Draws an aim, another, and for how many episodes it has each."""

    name: ClassVar[str] = "family-alternating"
    about: ClassVar[str] = "has one aim for a drawn number of episodes, then another, and so on"

    def fresh(self) -> Kept:
        return jnp.int32(0)  # episodes played

    def next_episode(self, kept: Kept) -> Kept:
        return kept + 1

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        first, then = self.two_aims(numbers)
        return self.after(view, jnp.where(kept // whole(numbers[2], 1, 3) % 2 == 0, first, then))


class Homebound(Family):
    """Draws an aim and the distance."""

    name: ClassVar[str] = "family-homebound"
    about: ClassVar[str] = "takes things within a drawn distance of where its episode began"

    def fresh(self) -> Kept:
        return jnp.zeros(self.game.shape[:2], bool)  # its home; none before an episode

    def notice(self, numbers: jax.Array, kept: Kept, view: View) -> Kept:
        return jnp.where(kept.any(), kept, view.planes[..., 0] > 0)

    def next_episode(self, kept: Kept) -> Kept:
        return self.fresh()

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        near = distances(kept) <= whole(numbers[1], 1, self.reach)
        return self.after(view, self.thing(numbers[0]), near)


class Territorial(Family):
    """Draws an aim and the half."""

    name: ClassVar[str] = "family-territorial"
    about: ClassVar[str] = "takes things in one half of the board, drawn for the trial"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        half = jnp.asarray(halves(self.game.shape))[whole(numbers[1], 0, 3)]
        return self.after(view, self.thing(numbers[0]), half)


class Follower(Family):
    """Draws an aim for when there is nobody to follow, and the distance."""

    name: ClassVar[str] = "family-follower"
    about: ClassVar[str] = "goes for what the nearest other walks to, if within a drawn distance"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        # A coin of its own that it goes for is followed by going for one's own.
        kind, far = nearest_pursuit(self.game, view)
        aims = jnp.asarray(self.aims[:-1])
        follows = (kind < aims.shape[1]) & (far <= whole(numbers[1], 1, 2 * self.reach))
        return self.after(
            view, jnp.where(follows, aims[aims[:, kind].argmax()], self.aim(numbers[0]))
        )


class Cautious(Family):
    """Draws an aim, whether it goes for other things meanwhile, and the distance."""

    name: ClassVar[str] = "family-cautious"
    about: ClassVar[str] = "takes a thing only while another is within a drawn distance of it"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        near = distances(others(self.game.seats, view)) <= whole(numbers[2], 0, self.reach // 2)
        aim = self.thing(numbers[0])
        found = (self.things(view) & aim & near[..., None]).any()
        meanwhile = ~aim & (numbers[1] < 0.5)
        return self.after(view, jnp.where(found, aim, meanwhile), near | ~found)


class Shy(Family):
    """Draws an aim and the distance."""

    name: ClassVar[str] = "family-shy"
    about: ClassVar[str] = "takes only things with nobody else within a drawn distance"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        away = distances(others(self.game.seats, view)) > whole(numbers[1], 0, self.reach)
        return self.after(view, self.thing(numbers[0]), away)


class Impatient(Family):
    """Draws an aim, another, and how long it waits for either."""

    name: ClassVar[str] = "family-impatient"
    about: ClassVar[str] = "gives up its aim for another after drawn steps without taking anything"

    def fresh(self) -> Kept:
        return no_things(self.game), jnp.int32(-1)  # where things were; steps without taking any

    def notice(self, numbers: jax.Array, kept: Kept, view: View) -> Kept:
        took = takes(self.game, kept[0], view)[0].any()
        return self.things(view), jnp.where(took, 0, kept[1] + 1)

    def next_episode(self, kept: Kept) -> Kept:
        return self.fresh()

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        first, then = self.two_aims(numbers)
        patience = whole(numbers[2], 2, max(2, self.game.horizon // 4))
        return self.after(view, jnp.where(kept[1] // patience % 2 == 0, first, then))


class Account(eqx.Module):
    """What is remembered of what others did."""

    things: jax.Array  # [H, W, K] bool, where they were; none before an episode
    count: jax.Array  # [] int32, causes that were given so far
    left: jax.Array  # [] int32, episodes for which it feels otherwise, with this one; 0 for none


class _Moved(Family):
    """Draws how many causes it needs, and for how many episodes it feels otherwise then."""

    def aims_in_turn(self) -> np.ndarray:
        """[2, K] bool, what it wants at first, and when it feels otherwise."""
        raise NotImplementedError

    def causes(self) -> np.ndarray:
        """[N, K] int, what a thing counts that is taken by a seat, own first."""
        raise NotImplementedError

    @property
    def good_and_bad(self) -> np.ndarray:
        """[2, K] bool: the first kind, and the next; anything where the first is owned; or nothing
        where there are no others."""
        owned = any(target.owner is not None for target in self.game.targets.values())
        return self.aims[[0, -1 if owned else 1]]

    def fresh(self) -> Account:
        return Account(no_things(self.game), jnp.int32(0), jnp.int32(0))

    def notice(self, numbers: jax.Array, kept: Account, view: View) -> Account:
        given = (takes(self.game, kept.things, view) * self.causes()).sum(dtype=jnp.int32)
        count = jnp.where(kept.left > 0, 0, jnp.maximum(kept.count + given, 0))
        episodes = whole(numbers[1], 1, 4)
        lasts = jnp.where(episodes == 4, FOR_GOOD, 1 + episodes)
        moved = count >= whole(numbers[0], 1, 3)
        left = jnp.where(moved, lasts, kept.left)
        return Account(self.things(view), jnp.where(moved, 0, count), left)

    def next_episode(self, kept: Account) -> Account:
        lasting = kept.left >= FOR_GOOD
        left = jnp.where(lasting, kept.left, jnp.maximum(kept.left - 1, 0))
        return Account(jnp.zeros_like(kept.things), kept.count, left)

    def intend(self, numbers: jax.Array, kept: Account, view: View) -> Intent:
        return self.after(view, jnp.asarray(self.aims_in_turn())[(kept.left > 0).astype(int)])


class Resentful(_Moved):
    name: ClassVar[str] = "family-resentful"
    about: ClassVar[str] = "cooperates until wronged a drawn number of times, then not for episodes"

    def aims_in_turn(self) -> np.ndarray:
        return self.good_and_bad

    def causes(self) -> np.ndarray:
        owners = [target.owner for target in self.game.targets.values()]
        wrong = np.zeros((self.game.seats, len(owners)), int)
        if len(owners) == 1:  # the cost is its own when it takes one, and theirs when others do
            wrong[:] = -1
            wrong[0] = 1
        else:
            wrong[1:] = [owner == 0 for owner in owners] if 0 in owners else self.aims[1]
        return wrong


class Grateful(_Moved):
    name: ClassVar[str] = "family-grateful"
    about: ClassVar[str] = "cooperates for some episodes after others have a drawn number of times"

    def aims_in_turn(self) -> np.ndarray:
        return self.good_and_bad[::-1]

    def causes(self) -> np.ndarray:
        owners = [target.owner for target in self.game.targets.values()]
        seats = range(self.game.seats)
        kind = [[o == seat for o in owners] if 0 in owners else self.aims[0] for seat in seats]
        kind[0] = [False] * len(owners)  # what it does itself is no kindness
        return np.array(kind, int)


class Erratic(Family):
    """Draws an aim, the share, whether it comes in bursts, and how long these last."""

    name: ClassVar[str] = "family-erratic"
    about: ClassVar[str] = (
        "goes for one aim, with a drawn share of random acts, always or in bursts"
    )

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        share = 0.1 + 0.9 * numbers[1]
        calm = (numbers[2] < 0.5) & (self.steps(view) // whole(numbers[3], 1, 5) % 2 == 0)
        return self.after(view, self.thing(numbers[0]), noise=jnp.where(calm, 0.0, share))


class Lazy(Family):
    """Draws an aim and the number of steps."""

    name: ClassVar[str] = "family-lazy"
    about: ClassVar[str] = "waits a drawn number of steps in each episode, then goes for one aim"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        awake = self.steps(view) >= whole(numbers[1], 1, max(1, self.game.horizon // 2))
        return self.after(view, self.thing(numbers[0]) & awake)


class Slow(Family):
    """Draws an aim and the number of steps."""

    name: ClassVar[str] = "family-slow"
    about: ClassVar[str] = "goes for one aim, but acts only in every so many steps, a drawn number"

    def intend(self, numbers: jax.Array, kept: Kept, view: View) -> Intent:
        acts = self.steps(view) % whole(numbers[1], 2, 4) == 0
        return self.after(view, self.thing(numbers[0]) & acts)


FAMILIES: tuple[type[Family], ...] = (
    Devoted,
    Shifting,
    Alternating,
    Homebound,
    Territorial,
    Follower,
    Cautious,
    Shy,
    Impatient,
    Resentful,
    Grateful,
    Erratic,
    Lazy,
    Slow,
    Composed,
    Weighing,
)
