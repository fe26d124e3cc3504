"""What does a joint action bring? The next view, rewards and ends, from a view and all actions.

Seats run own first, as in the view. A seat's action is encoded at the seat's cell, so that nothing
about who did what, and where, is lost.
"""

from dataclasses import dataclass
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.game import Game, kinds_seen
from hopplus.games.grid import MOVES, STAY
from hopplus.models.part import Metrics
from hopplus.types import Sample, View, ViewShape


@dataclass(frozen=True)
class Board:
    """What a world model knows of a game before it has learned anything."""

    shape: ViewShape
    seats: int
    actions: int
    horizon: int
    walked: bool = False  # some things are taken by walking onto them
    common: bool = False  # some, when they are taken, bring others something, too
    own_kinds: tuple[tuple[int, ...], ...] = ()  # [N, K] what one calls the kinds of each seat
    returning: tuple[int, ...] = ()  # planes of things that come back by chance

    @property
    def kinds(self) -> int:
        """Kinds of things on the board, a plane each behind the seats and the obstacles."""
        return self.shape[2] - self.seats - 1


def board_of(game: Game) -> Board:
    """The board of a game."""
    targets, seats = game.targets.values(), game.seats
    return Board(
        game.shape,
        seats,
        len(game.action_names),
        game.horizon,
        walked=any(target.action is None for target in targets),
        common=any(target.common for target in targets),
        own_kinds=tuple(tuple(kinds_seen(game, -seat % seats).tolist()) for seat in range(seats)),
        returning=tuple(target.plane for target in targets if target.returns),
    )


class Prediction(eqx.Module):
    """The next state as a model sees it; probabilities, not yet settled."""

    planes: jax.Array  # [H, W, C] float32, from 0 to 1
    reward: jax.Array  # [N] float32
    gone: jax.Array  # [N] float32, probability that the seat is gone after the step
    legal: jax.Array  # [N, A] float32, probability that each action will be legal
    done: jax.Array  # [] float32, probability that the episode ends with the step


class World(Protocol):
    """A learned world."""

    board: Board

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        """The next state after [N] actions."""

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        """The likeliest next planes [H, W, C] float32, 0 or 1, and who is gone then [N] bool."""

    def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
        """The planes [H, W, C] after a step with what comes back by chance in their place, by the
        planes before it."""

    def losses(self, sample: Sample, channel_weights: jax.Array) -> Metrics:
        """Named losses of one sample; [C] weights of the planes."""


def imagined(
    world: World, view: View, joint: jax.Array, horizon: int
) -> tuple[View, Prediction, jax.Array]:
    """The seat's likeliest next view, the prediction it was settled from, and who is gone [N]."""
    prediction = world(view, joint)
    planes, gone = world.settled(prediction)
    seats = joint.shape[0]
    present = view.planes[..., :seats].sum(axis=(0, 1)) > 0
    legal = prediction.legal[0] > 0.5
    after = View(
        planes=planes,
        legal=legal.at[STAY].set(True),  # staying always is
        time=view.time + 1 / horizon,
        last_actions=jnp.where(present, joint, -1),
    )
    return after, prediction, gone


def stepped(planes: jax.Array) -> jax.Array:
    """[moves, H, W, N] the seats' planes [H, W, N] after each move; empty where it leads off the
    board."""
    height, width, _ = planes.shape
    wide = jnp.pad(planes, ((1, 1), (1, 1), (0, 0)))
    return jnp.stack(
        [wide[1 - row : 1 - row + height, 1 - column : 1 - column + width] for row, column in MOVES]
    )
