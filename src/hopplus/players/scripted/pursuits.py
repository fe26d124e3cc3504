"""What the others go for, by their last acts."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, kinds_seen
from hopplus.games.grid import MOVES, STAY
from hopplus.players.scripted.family import distances
from hopplus.players.taking import things
from hopplus.types import View


class Pursuits(NamedTuple):
    """What the others go for, from the seat after one's own on."""

    left: jax.Array  # [N-1, K] int32 steps to the nearest of a kind that it goes for, or -1
    called: np.ndarray  # [N-1, K] what it calls these kinds: its own coins are its own
    far: jax.Array  # [N-1] int32 how far away it is; more than any board has if it is not seen


def pursuits(game: Game, view: View) -> Pursuits:
    """Each goes for what it has just come nearer to, or tries to take with another act than a
    move."""
    height, width, _ = game.shape
    seats = view.planes[..., : game.seats].reshape(height * width, -1) > 0  # [H*W, N]
    cells = seats.argmax(axis=0)
    places = jnp.stack([cells // width, cells % width], axis=-1)  # [N, 2]
    far = abs(places[1:] - places[0]).sum(axis=-1)
    far = jnp.where(seats[:, 1:].any(axis=0) & seats[:, 0].any(), far, height + width)
    now, last = places[1:], view.last_actions[1:]
    before = now - jnp.asarray(MOVES)[jnp.where(last < 0, STAY, jnp.minimum(last, STAY))]
    ways = jax.vmap(distances, in_axes=-1, out_axes=-1)(things(game, view))  # [H, W, K]
    # They came from cells of the board, so that there is no reading outside.
    left_over, came_from = (ways[at[:, 0], at[:, 1]] for at in (now, before))  # [N-1, K]
    acts = np.array([-1 if one.action is None else one.action for one in game.targets.values()])
    tried = (acts == last[:, None]) & (last[:, None] >= 0)
    left = jnp.where((left_over < came_from) | tried, left_over, -1)
    called = np.array([kinds_seen(game, 1 + other) for other in range(game.seats - 1)])
    return Pursuits(left, called, far)


def nearest_pursuit(game: Game, view: View) -> tuple[jax.Array, jax.Array]:
    """[] int32 what kind of thing the nearest other goes for, as that one calls it, or K for none;
    and [] int32 how far away that one is."""
    left, called, far = pursuits(game, view)
    nearest = far.argmin()
    own = left[nearest]  # [K]
    kind = jnp.where(own < 0, 2 * sum(game.shape[:2]), own).argmin()
    return jnp.where((own >= 0).any(), jnp.asarray(called)[nearest, kind], len(own)), far.min()
