"""A world model that can only say what is possible.

A player is in one free cell or gone for good, and moves one cell at most; things on the board stay
where they are or are taken.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.grid import MOVES
from hopplus.models.nets import Layers, binary_loss, surroundings
from hopplus.models.part import Metrics
from hopplus.models.world import Board, Prediction, stepped
from hopplus.types import Sample, View


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
        moved = jnp.einsum("nm,nmc->nc", chance[:, :-1], _moves(seats, grounds[0], b))
        things = grounds[1:] * jax.nn.sigmoid(stays)
        after = jnp.concatenate([moved, grounds[:1], things])  # [C, H*W]
        return Prediction(
            planes=after.T.reshape(b.shape),
            reward=reward,
            gone=1 - there * (1 - chance[:, -1]),
            legal=jax.nn.sigmoid(self._legality(moved, jnp.concatenate([grounds[:1], things]))),
            done=jax.nn.sigmoid(self._ending(moved, things, view.time)),
        )

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        b = self.board
        players = prediction.planes[..., : b.seats].reshape(-1, b.seats)  # [H*W, N]
        best = jax.nn.one_hot(players.argmax(axis=0), len(players), axis=0)
        stays = players.max(axis=0) > prediction.gone
        rest = (prediction.planes[..., b.seats :] > 0.5).astype(jnp.float32)
        there = (best * stays).reshape(*b.shape[:2], b.seats)
        return jnp.concatenate([there, rest], axis=-1), ~stays

    def losses(self, sample: Sample, channel_weights: jax.Array) -> Metrics:
        b = self.board
        seats, grounds = _parted(sample.view.planes, b)
        seats_after, grounds_after = _parted(sample.after.planes, b)
        choices, stays, reward = self._judged(seats, grounds, sample.joint)
        landed = (_moves(seats, grounds[0], b) * seats_after[:, None]).sum(axis=-1)  # [N, moves]
        target = jnp.append(landed, 1 - landed.sum(axis=1, keepdims=True), axis=1)
        where = -(target * jax.nn.log_softmax(choices)).sum(axis=1)  # [N]
        present = sample.present
        kept = binary_loss(stays, grounds_after[1:]) * grounds[1:]  # [K, H*W]
        legality = binary_loss(self._legality(seats_after, grounds_after), sample.legal_after)
        ending = self._ending(seats_after, grounds_after[1:], sample.view.time)
        return {
            "players": jnp.where(present, where * channel_weights[: b.seats], 0.0).sum(),
            "things": (kept.sum(axis=1) * channel_weights[b.seats + 1 :]).sum(),
            "reward": jnp.where(present, (reward - sample.reward) ** 2, 0.0).sum(),
            "legal": legality.sum(axis=1).mean(),
            "done": binary_loss(ending, sample.done),
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
        reachable = _moves(seats, grounds[0], b).sum(axis=-1) > 0  # [N, moves]
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


def _parted(planes: jax.Array, board: Board) -> tuple[jax.Array, jax.Array]:
    """The planes of the seats [N, H*W], and of obstacles and things [1 + K, H*W]."""
    flat = planes.reshape(-1, planes.shape[-1]).T
    return flat[: board.seats], flat[board.seats :]


def _moves(seats: jax.Array, walls: jax.Array, board: Board) -> jax.Array:
    """[N, moves, H*W] the seats' planes [N, H*W] after each move; empty where it leads off the
    board or into a wall [H*W]."""
    moved = stepped(seats.T.reshape(*board.shape[:2], -1))
    return moved.reshape(len(moved), -1, len(seats)).transpose(2, 0, 1) * (1 - walls)


def _patches(grounds: jax.Array, board: Board) -> jax.Array:
    """[H*W, 9 (1 + K)] the 3x3 surroundings of every cell; off the board is an obstacle."""
    height, width, _ = board.shape
    outside = jnp.zeros(len(grounds)).at[0].set(1.0)
    around = surroundings(grounds.T.reshape(height, width, -1), outside)
    return around.reshape(height * width, -1)
