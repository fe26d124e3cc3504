"""The imagined joint step: one seat, others who act as they are thought to, and a world."""

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.grid import STAY
from hopplus.models.chance import draw
from hopplus.models.opponent import OpponentModel, others_logits
from hopplus.models.world import World, imagined
from hopplus.types import View


class Scene(eqx.Module):
    """A moment as one seat imagines it; seats run own first."""

    view: View
    legal: jax.Array  # [N, A] bool, everyone's


class Turn(eqx.Module):
    """What an imagined step brought."""

    reward: jax.Array  # [N] float32
    ended: jax.Array  # [] bool, the seat is gone or the episode over


def others_act(
    opponents: OpponentModel, scene: Scene, goals: jax.Array, key: jax.Array
) -> jax.Array:
    """[N - 1] int32 actions of the others, drawn from models of them [N - 1, ...] that are told
    goals [N - 1, G]."""
    logits = others_logits(opponents, scene.view, scene.legal, goals)
    return draw(key, jnp.exp(logits))


def simulate(world: World, scene: Scene, joint: jax.Array, horizon: int) -> tuple[Scene, Turn]:
    """The likeliest next moment after a joint action [N]."""
    view, prediction, gone = imagined(world, scene.view, joint, horizon)
    legal = (prediction.legal > 0.5).at[:, STAY].set(True)  # staying always is
    turn = Turn(reward=prediction.reward, ended=gone[0] | (prediction.done > 0.5))
    return Scene(view, legal), turn
