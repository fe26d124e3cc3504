"""What is on the board, and who has just taken something from it: read from views alone."""

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game
from hopplus.types import View


def things(game: Game, view: View) -> jax.Array:
    """[H, W, K] bool, where things of each kind are."""
    planes = np.array([target.plane for target in game.targets.values()])
    return view.planes[..., planes] > 0


def takes(game: Game, before: jax.Array, view: View) -> jax.Array:
    """[N, K] bool, of what kinds everyone has just taken something, own first, with where things
    were before [H, W, K] bool.

    Who takes by walking stands where one was, as nothing comes back there. Who takes by another act
    may have left, but then there is one less of them.
    """
    seats = view.planes[..., : game.seats] > 0
    stood = jnp.einsum("hwn,hwk->nk", seats, before, preferred_element_type=jnp.int32) > 0
    fewer = things(game, view).sum(axis=(0, 1)) < before.sum(axis=(0, 1))
    actions = [target.action for target in game.targets.values()]
    acted = view.last_actions[:, None] == np.array([-2 if a is None else a for a in actions])
    return jnp.where(np.array([a is None for a in actions]), stood, acted & fewer)


def no_things(game: Game) -> jax.Array:
    """[H, W, K] bool, an empty board: before an episode's first view nothing can be gone."""
    return jnp.zeros((*game.shape[:2], len(game.targets)), bool)
