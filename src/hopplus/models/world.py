"""What does a joint action bring? The next view, rewards and ends, from a view and all actions.

Both models say the same things about the next moment (`Prediction`); they differ in what they can
say. `StructuredWorld` knows that a player is in one cell or gone for good, moves one cell at most,
and that things on the board stay where they are or are taken. `CellsWorld`, the comparison, gives
every cell of every plane a probability of its own.

Seats run own first, as in the view. A seat's action is encoded at the seat's cell, so that nothing
about who did what, and where, is lost.
"""

from dataclasses import dataclass
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import WorldConfig
from hopplus.games.game import Game
from hopplus.games.grid import MOVES
from hopplus.models.nets import Layers, convolved, surroundings
from hopplus.models.part import Metrics
from hopplus.types import Params, Sample, View


@dataclass(frozen=True)
class Board:
    """What a world model knows of a game before it has learned anything."""

    shape: tuple[int, int, int]  # height, width, planes
    seats: int
    actions: int
    horizon: int

    @property
    def kinds(self) -> int:
        """Kinds of things on the board, a plane each behind the seats and the obstacles."""
        return self.shape[2] - self.seats - 1


def board_of(game: Game) -> Board:
    """The board of a game."""
    return Board(game.shape, game.seats, len(game.action_names), game.horizon)


class Prediction(eqx.Module):
    """The next moment as a model sees it; probabilities, not yet settled."""

    planes: jax.Array  # [H, W, C] float32, from 0 to 1
    reward: jax.Array  # [N] float32
    gone: jax.Array  # [N] float32, probability that the seat is gone after the step
    legal: jax.Array  # [N, A] float32, probability that each action will be legal
    done: jax.Array  # [] float32, probability that the episode ends with the step


class World(Protocol):
    """A learned world."""

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        """The next moment after [N] actions."""
        ...

    def settled(self, before: View, prediction: Prediction) -> jax.Array:
        """[H, W, C] float32, 0 or 1: the likeliest next planes."""
        ...

    def losses(self, sample: Sample, channel_weights: jax.Array) -> Metrics:
        """Named losses of one sample; [C] weights of the planes."""
        ...


class StructuredWorld(eqx.Module):
    """Chooses among what is possible: for each seat a move or being gone, for each thing its end.

    All seats share one network, which sees the surroundings of a seat's cell, what everyone there
    does, and the seat's place in the order; so do all things and all seats' legality.
    """

    board: Board = eqx.field(static=True)
    seat: Layers  # surroundings, actions here, place -> a logit per move, of being gone; reward
    thing: Layers  # actions here, kind -> logit of staying on the board
    legal: Layers  # surroundings -> a logit per action
    end: Layers  # seats and things left, time -> logit of the end

    def __init__(self, board: Board, hidden: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 4)
        self.board = board
        around = 9 * (1 + board.kinds)
        acts = (board.seats + 2) * board.actions
        self.seat = Layers((around + acts + board.seats, hidden, hidden, len(MOVES) + 2), keys[0])
        self.thing = Layers((board.actions + board.kinds, hidden, 1), keys[1])
        self.legal = Layers((around + 1, hidden, board.actions), keys[2])
        self.end = Layers((board.kinds + 4, hidden, 1), keys[3])

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        b = self.board
        seats, grounds = _parted(view.planes, b)
        choices, stays, reward = self._judged(seats, grounds, joint)
        chance = jax.nn.softmax(choices)  # [N, moves + 1]
        there = seats.sum(axis=1)  # [N] 1 present, 0 gone
        moved = jnp.einsum("nm,nmc->nc", chance[:, :-1], _shifted(seats, b))
        things = grounds[1:] * jax.nn.sigmoid(stays)
        after = jnp.concatenate([moved, grounds[:1], things])  # [C, H*W]
        return Prediction(
            planes=after.T.reshape(b.shape),
            reward=reward,
            gone=1 - there * (1 - chance[:, -1]),
            legal=jax.nn.sigmoid(self._legality(moved, jnp.concatenate([grounds[:1], things]))),
            done=jax.nn.sigmoid(self._ending(moved, things, view.time)),
        )

    def settled(self, before: View, prediction: Prediction) -> jax.Array:
        b = self.board
        players = prediction.planes[..., : b.seats].reshape(-1, b.seats)  # [H*W, N]
        best = jax.nn.one_hot(players.argmax(axis=0), len(players), axis=0)
        stays = players.max(axis=0) > prediction.gone
        rest = (prediction.planes[..., b.seats :] > 0.5).astype(jnp.float32)
        return jnp.concatenate([(best * stays).reshape(*b.shape[:2], b.seats), rest], axis=-1)

    def losses(self, sample: Sample, channel_weights: jax.Array) -> Metrics:
        b = self.board
        seats, grounds = _parted(sample.view.planes, b)
        seats_after, grounds_after = _parted(sample.after.planes, b)
        choices, stays, reward = self._judged(seats, grounds, sample.joint)
        landed = (_shifted(seats, b) * seats_after[:, None]).sum(axis=-1)  # [N, moves]
        target = jnp.append(landed, 1 - landed.sum(axis=1, keepdims=True), axis=1)
        where = -(target * jax.nn.log_softmax(choices)).sum(axis=1)  # [N]
        present = sample.present
        kept = _binary(stays, grounds_after[1:]) * grounds[1:]  # [K, H*W]
        legality = _binary(self._legality(seats_after, grounds_after), sample.legal_after)
        ending = self._ending(seats_after, grounds_after[1:], sample.view.time)
        return {
            "players": jnp.where(present, where * channel_weights[: b.seats], 0.0).sum(),
            "things": (kept.sum(axis=1) * channel_weights[b.seats + 1 :]).sum(),
            "reward": jnp.where(present, (reward - sample.reward) ** 2, 0.0).sum(),
            "legal": legality.sum(axis=1).mean(),
            "done": _binary(ending, sample.done),
        }

    def _judged(
        self, seats: jax.Array, grounds: jax.Array, joint: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Logits of each seat's moves and of being gone [N, moves + 1], of each thing's staying
        [K, H*W], and rewards [N]."""
        b = self.board
        acts = jax.nn.one_hot(joint, b.actions)  # [N, A]
        together = seats @ seats.T  # [N, N] 1 on the same cell
        order = (np.arange(b.seats)[:, None] + np.arange(b.seats)) % b.seats
        here = jnp.take_along_axis(together, order, axis=1)[..., None] * acts[order]  # [N, N, A]
        features = jnp.concatenate(
            [
                seats @ _patches(grounds, b),
                here.reshape(b.seats, -1),
                here.sum(axis=1),
                1 / (1 + here.sum(axis=1)),  # a catch is shared by those who take part in it
                jnp.eye(b.seats),
            ],
            axis=1,
        )
        out = jax.vmap(self.seat)(features)
        reachable = _shifted(seats, b).sum(axis=-1) > 0  # [N, moves]
        possible = jnp.append(reachable, jnp.ones((b.seats, 1), bool), axis=1)
        choices = jnp.where(possible, out[:, :-1], -1e9)
        stays = self._staying(seats, here.sum(axis=1))
        return choices, stays, out[:, -1] * seats.sum(axis=1)

    def _staying(self, seats: jax.Array, acts: jax.Array) -> jax.Array:
        """[K, H*W] logits of things staying, from [N, A] what is done in each seat's cell.

        Only cells with a seat in them differ, so that is where the network looks, and once at an
        empty one; seats that share a cell find the same there.
        """
        b = self.board
        places = jnp.append(acts, jnp.zeros((1, b.actions)), axis=0)  # [N + 1, A]
        kinds = jnp.broadcast_to(jnp.eye(b.kinds), (b.seats + 1, b.kinds, b.kinds))
        places = jnp.broadcast_to(places[:, None], (b.seats + 1, b.kinds, b.actions))
        logits = self.thing(jnp.concatenate([places, kinds], axis=-1))[..., 0]  # [N + 1, K]
        count = seats.sum(axis=0)  # [H*W]
        found = (logits[:-1].T @ seats) / jnp.maximum(count, 1)
        return jnp.where(count > 0, found, logits[-1][:, None])

    def _legality(self, seats: jax.Array, grounds: jax.Array) -> jax.Array:
        """[N, A] logits from where the seats are and what is on the board now."""
        there = seats.sum(axis=1, keepdims=True)
        features = jnp.append(seats @ _patches(grounds, self.board), there, axis=1)
        return jax.vmap(self.legal)(features)

    def _ending(self, seats: jax.Array, things: jax.Array, time: jax.Array) -> jax.Array:
        """[] logit of the end, from who and what is left and the time before the step.

        Reciprocals, because none, one and more are worlds apart and six and seven are not.
        """
        left = (1 - time) * self.board.horizon
        features = jnp.stack(
            [
                1 / (1 + seats.sum()),
                1 / (1 + things.sum()),
                1 / jnp.maximum(left, 0.5),
                time,
            ]
        )
        return self.end(jnp.append(features, 1 / (1 + things.sum(axis=1))))[0]


class CellsWorld(eqx.Module):
    """Every cell of every plane for itself: a 3x3 convolution over planes and actions, then dense
    layers at each cell; the rest is read from the mean over the cells and from the seats' own."""

    board: Board = eqx.field(static=True)
    kernel: jax.Array  # [3, 3, in, hidden]
    bias: jax.Array  # [hidden]
    cell: Layers  # -> a logit per plane
    seat: Layers  # -> reward, logit of being gone, a logit per action
    end: Layers  # -> logit of the end

    def __init__(self, board: Board, hidden: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 4)
        self.board = board
        size = board.shape[2] + board.seats * board.actions + 1
        scale = np.sqrt(2 / (9 * size))
        self.kernel = jax.random.normal(keys[0], (3, 3, size, hidden)) * scale
        self.bias = jnp.zeros(hidden)
        self.cell = Layers((hidden, hidden, board.shape[2]), keys[1])
        self.seat = Layers((2 * hidden, hidden, 2 + board.actions), keys[2])
        self.end = Layers((hidden + 2, hidden, 1), keys[3])

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        cells, rewards, gone, legal, done = self._judged(view, joint)
        return Prediction(
            planes=jax.nn.sigmoid(cells),
            reward=rewards,
            gone=jax.nn.sigmoid(gone),
            legal=jax.nn.sigmoid(legal),
            done=jax.nn.sigmoid(done),
        )

    def settled(self, before: View, prediction: Prediction) -> jax.Array:
        return (prediction.planes > 0.5).astype(jnp.float32)

    def losses(self, sample: Sample, channel_weights: jax.Array) -> Metrics:
        cells, rewards, gone, legal, done = self._judged(sample.view, sample.joint)
        present = sample.present
        planes = _binary(cells, sample.after.planes).sum(axis=(0, 1))  # [C]
        return {
            "planes": (planes * channel_weights).sum(),
            "reward": jnp.where(present, (rewards - sample.reward) ** 2, 0.0).sum(),
            "gone": jnp.where(present, _binary(gone, ~sample.present_after), 0.0).sum(),
            "legal": _binary(legal, sample.legal_after).sum(axis=1).mean(),
            "done": _binary(done, sample.done),
        }

    def _judged(self, view: View, joint: jax.Array) -> tuple[jax.Array, ...]:
        """Logits [H, W, C] of the planes, rewards [N], logits of being gone [N], of legality
        [N, A] and of the end []."""
        b = self.board
        seats = view.planes[..., : b.seats]
        acts = seats[..., None] * jax.nn.one_hot(joint, b.actions)  # [H, W, N, A]
        ones = jnp.ones((*b.shape[:2], 1))
        seen = jnp.concatenate([view.planes, acts.reshape(*b.shape[:2], -1), ones], axis=-1)
        features = jax.nn.relu(convolved(seen, self.kernel) + self.bias)
        flat = features.reshape(-1, features.shape[-1])
        own = seats.reshape(-1, b.seats).T @ flat  # [N, hidden]
        mean = flat.mean(axis=0)
        about = jax.vmap(lambda at: self.seat(jnp.concatenate([at, mean])))(own)
        left = (1 - view.time) * b.horizon
        times = jnp.stack([view.time, 1 / jnp.maximum(left, 0.5)])
        end = self.end(jnp.concatenate([mean, times]))[0]
        return jax.vmap(jax.vmap(self.cell))(features), about[:, 0], about[:, 1], about[:, 2:], end


@dataclass(frozen=True)
class WorldPart:
    """The losses of a world model, over steps at which the seat is present."""

    board: Board
    config: WorldConfig
    name: str = "world"

    def init(self, key: jax.Array) -> Params:
        match self.config.head:
            case "structured":
                return StructuredWorld(self.board, self.config.hidden, key)
            case "cells":
                return CellsWorld(self.board, self.config.hidden, key)

    def losses(self, params: World, sample: Sample, key: jax.Array) -> Metrics:
        weights = self.config.channel_weights or (1.0,) * self.board.shape[2]
        return params.losses(sample, jnp.asarray(weights))

    def weight(self, sample: Sample) -> jax.Array:
        return sample.present[0].astype(jnp.float32)


def imagined(world: World, view: View, joint: jax.Array, horizon: int) -> tuple[View, Prediction]:
    """The seat's likeliest next view, and the prediction it was settled from."""
    prediction = world(view, joint)
    planes = world.settled(view, prediction)
    seats = joint.shape[0]
    present = view.planes[..., :seats].sum(axis=(0, 1)) > 0
    legal = prediction.legal[0] > 0.5
    after = View(
        planes=planes,
        legal=legal.at[len(MOVES) - 1].set(True),  # staying always is
        time=view.time + 1 / horizon,
        last_actions=jnp.where(present, joint, -1),
    )
    return after, prediction


def _parted(planes: jax.Array, board: Board) -> tuple[jax.Array, jax.Array]:
    """The planes of the seats [N, H*W], and of obstacles and things [1 + K, H*W]."""
    flat = planes.reshape(-1, planes.shape[-1]).T
    return flat[: board.seats], flat[board.seats :]


def _shifted(seats: jax.Array, board: Board) -> jax.Array:
    """[N, moves, H*W] the seats' planes after each move; empty where it leads off the board."""
    height, width, _ = board.shape
    wide = jnp.pad(seats.reshape(-1, height, width), ((0, 0), (1, 1), (1, 1)))
    moved = [
        wide[:, 1 - row : 1 - row + height, 1 - column : 1 - column + width]
        for row, column in MOVES
    ]
    return jnp.stack(moved, axis=1).reshape(len(seats), len(MOVES), -1)


def _patches(grounds: jax.Array, board: Board) -> jax.Array:
    """[H*W, 9 (1 + K)] the 3x3 surroundings of every cell; off the board is an obstacle."""
    height, width, _ = board.shape
    outside = jnp.zeros(len(grounds)).at[0].set(1.0)
    around = surroundings(grounds.T.reshape(height, width, -1), outside)
    return around.reshape(height * width, -1)


def _binary(logits: jax.Array, truth: jax.Array) -> jax.Array:
    """Cross-entropy of yes-or-no predictions."""
    return jax.nn.softplus(logits) - logits * truth
