"""A world model that can only say what is possible.

A player is in one free cell or gone for good, and moves one cell at most; things on the board stay
where they are or are taken. What a game brings back at random cannot be foreseen: a prediction
leaves it out, and imagination draws it as often as it was seen to happen.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.grid import MOVES, distinct_free
from hopplus.lookup import at
from hopplus.models.nets import Layers, binary_loss
from hopplus.models.part import Metrics
from hopplus.models.sampling import drawn_by
from hopplus.models.world import Board, Prediction
from hopplus.types import Sample, View


class StructuredWorld(eqx.Module):
    """Chooses among what is possible: for each seat a move or being gone, for each thing its end.

    All seats share one network, which sees the surroundings of a seat's cell, what everyone there
    does, and the seat's place in the order; so do all things and all seats' legality.
    """

    board: Board = eqx.field(static=True)
    seat: Layers  # surroundings, actions here, place -> a logit per move, of being gone; reward
    thing: Layers  # actions here, kind, whether somebody comes -> logit of staying on the board
    legal: Layers  # surroundings -> a logit per action
    end: Layers  # seats and things left, time -> logit of the end
    event: Layers | None  # things that go and one's share in them -> reward
    back: jax.Array | None  # logits: the kind as which a thing that goes comes back, or not at all

    def __init__(self, board: Board, hidden: int, key: jax.Array) -> None:
        keys = jax.random.split(key, 4)
        self.board = board
        around = 9 * (1 + board.kinds)
        acts = (board.seats + 2) * board.actions
        self.seat = Layers((around + acts + board.seats, hidden, hidden, len(MOVES) + 2), keys[0])
        sizes = (board.actions + board.kinds + board.walked, hidden, 1)
        self.thing = Layers(sizes, keys[1])
        self.legal = Layers((around + 1, hidden, board.actions), keys[2])
        self.end = Layers((board.kinds + 4, hidden, 1), keys[3])
        told = (board.kinds * (1 + board.walked), hidden, 1)
        self.event = Layers(told, jax.random.fold_in(key, 4)) if board.common else None
        self.back = jnp.zeros(len(board.returning) + 1) if board.returning else None

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        b = self.board
        seats, grounds = _parted(view.planes, b)
        here = _standing(seats)
        choices, stays, reward = self._predict(here, seats, grounds, joint)
        chance = jax.nn.softmax(choices)  # [N, moves + 1]
        landing = _landing(here, b)  # [N, moves]
        moves = (landing[..., None] == jnp.arange(seats.shape[1])) * here.there[:, None, None]
        moved = jnp.einsum("nm,nmc->nc", chance[:, :-1], moves)
        things = grounds[1:] * jax.nn.sigmoid(stays)
        after = jnp.concatenate([moved, grounds[:1], things])  # [C, H*W]
        # What is legal then, and whether it ends, follows from the likeliest next board.
        best = jnp.take_along_axis(landing, chance[:, :-1].argmax(axis=1)[:, None], axis=1)[:, 0]
        stays_on = here.there * (chance[:, :-1].max(axis=1) > chance[:, -1])
        likely = jnp.concatenate([grounds[:1], (things > 0.5).astype(jnp.float32)])
        then = Standing(jnp.where(stays_on > 0, best, 0), stays_on)
        return Prediction(
            planes=after.T.reshape(b.shape),
            reward=reward,
            gone=1 - here.there * (1 - chance[:, -1]),
            legal=jax.nn.sigmoid(self._legality(then, likely)),
            done=jax.nn.sigmoid(self._ending(then, likely[1:], view.time)),
        )

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        b = self.board
        players = prediction.planes[..., : b.seats].reshape(-1, b.seats)  # [H*W, N]
        most, cells = players.max(axis=0), np.arange(len(players))[:, None]
        # The first of the likeliest; XLA does not vectorise `argmax` on a CPU.
        best = cells == jnp.where(players == most, cells, len(players)).min(axis=0)
        stays = most > prediction.gone
        rest = (prediction.planes[..., b.seats :] > 0.5).astype(jnp.float32)
        there = (best * stays).reshape(*b.shape[:2], b.seats)
        return jnp.concatenate([there, rest], axis=-1), ~stays

    def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
        """For each thing that has gone, one of a kind drawn as often as it was seen, in a cell
        where nothing is; no more go in a step than there are seats."""
        if self.back is None:
            return after
        b, kinds = self.board, np.array(self.board.returning)
        gone = (before > after)[..., kinds].sum()
        numbers = jax.random.uniform(key, (2 * b.seats,))
        free = ~(after > 0).any(axis=-1).ravel()
        cells = distinct_free(numbers[: b.seats], free)
        chance = jnp.broadcast_to(jax.nn.softmax(self.back), (b.seats, len(self.back)))
        planes = jnp.append(kinds, -1)[drawn_by(numbers[b.seats :], chance)]  # the last is none
        comes = (jnp.arange(b.seats) < gone)[:, None] * jax.nn.one_hot(planes, b.shape[2])
        new = jax.nn.one_hot(cells, len(free)).T @ comes  # [H*W, C]
        return jnp.maximum(after, new.reshape(after.shape))

    def _returns_loss(self, back: jax.Array, before: jax.Array, after: jax.Array) -> jax.Array:
        """Cross-entropy of what came back, for each thing that went; planes are [H, W, C]."""
        kinds = np.array(self.board.returning)
        came, gone = (
            (one > other)[..., kinds].sum(axis=(0, 1))
            for one, other in ((after, before), (before, after))
        )
        counts = jnp.append(came, jnp.maximum(gone.sum() - came.sum(), 0))
        return -(counts * jax.nn.log_softmax(back)).sum()

    def losses(self, sample: Sample, channel_weights: jax.Array) -> Metrics:
        b = self.board
        seats, grounds = _parted(sample.view.planes, b)
        seats_after, grounds_after = _parted(sample.after.planes, b)
        here, then = _standing(seats), _standing(seats_after)
        choices, stays, reward = self._predict(here, seats, grounds, sample.joint)
        landed = (_landing(here, b) == then.cell[:, None]) * then.there[:, None]  # [N, moves]
        target = jnp.append(landed, 1 - landed.sum(axis=1, keepdims=True), axis=1)
        where = -(target * jax.nn.log_softmax(choices)).sum(axis=1)  # [N]
        present = sample.present
        kept = binary_loss(stays, grounds_after[1:]) * grounds[1:]  # [K, H*W]
        legality = binary_loss(self._legality(then, grounds_after), sample.legal_after)
        ending = self._ending(then, grounds_after[1:], sample.view.time)
        planes = sample.view.planes, sample.after.planes
        back = {} if self.back is None else {"back": self._returns_loss(self.back, *planes)}
        return back | {
            "players": jnp.where(present, where * channel_weights[: b.seats], 0.0).sum(),
            "things": (kept.sum(axis=1) * channel_weights[b.seats + 1 :]).sum(),
            "reward": jnp.where(present, (reward - sample.reward) ** 2, 0.0).sum(),
            "legal": legality.sum(axis=1).mean(),
            "done": binary_loss(ending, sample.done),
        }

    def _predict(
        self, here: "Standing", seats: jax.Array, grounds: jax.Array, joint: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Logits of each seat's moves and of being gone [N, moves + 1], of each thing's staying
        [K, H*W], and rewards [N]."""
        b = self.board
        acts = jax.nn.one_hot(joint, b.actions)  # [N, A]
        order = (np.arange(b.seats)[:, None] + np.arange(b.seats)) % b.seats
        same = (here.cell[order] == here.cell[:, None]) * here.there[order] * here.there[:, None]
        shared = same[..., None] * acts[order]  # [N, N, A] what those in the same cell do
        around = _around(here, grounds, b)  # [N, 9, 1 + K]
        done_here = shared.sum(axis=1)
        features = jnp.concatenate(
            [
                around.reshape(b.seats, -1),
                shared.reshape(b.seats, -1),
                done_here,
                1 / (1 + done_here),  # a catch is shared by those who take part in it
                jnp.eye(b.seats),
            ],
            axis=1,
        )
        out = jax.vmap(self.seat)(features)
        free = around[:, MOVES_AROUND, 0] < 0.5  # [N, moves] neither a wall nor off the board
        possible = jnp.append(free, jnp.ones((b.seats, 1), bool), axis=1)
        choices = jnp.where(possible, out[:, :-1], -1e9)
        stays = self._staying(seats, done_here)
        reward, arrivals = out[:, -1], None
        if b.walked:
            goes = acts[:, : len(MOVES) - 1] * free[:, :-1] * here.there[:, None]  # all but stay
            cells = _landing(here, b)[:, :-1, None] == jnp.arange(stays.shape[1])
            arrivals = (cells * goes[..., None]).sum(axis=1)  # [N, H*W]
            stays = self._walked_onto(stays, arrivals.any(axis=0))
        if self.event is not None:
            reward = reward + self._shared(self.event, stays, grounds[1:], arrivals)
        return choices, stays, reward * here.there

    def _shared(
        self, event: Layers, stays: jax.Array, things: jax.Array, arrivals: jax.Array | None
    ) -> jax.Array:
        """[N] what the things [K, H*W] that go bring everybody, wherever that is; each seat calls
        kinds as it sees them."""
        own = np.array(self.board.own_kinds)  # [N, K]
        # What goes is learned by itself, and is known as soon as that is likelier than not.
        going = (things * (stays < 0)).sum(axis=1)  # [K]
        features = going[own]
        if arrivals is not None:
            shares = arrivals / jnp.maximum(arrivals.sum(axis=0), 1)  # [N, H*W]
            taken = jnp.take_along_axis(shares @ things.T, own, axis=1)  # [N, K]
            features = jnp.concatenate([features, taken], axis=1)
        return jax.vmap(event)(features)[:, 0]

    def _staying(self, seats: jax.Array, acts: jax.Array) -> jax.Array:
        """[K, H*W] logits of things staying, from [N, A] what is done in each seat's cell.

        Only cells with a seat in them differ, so that is where the network looks, and once at an
        empty one; seats that share a cell find the same there.
        """
        b = self.board
        kinds = jnp.broadcast_to(jnp.eye(b.kinds), (b.seats, b.kinds, b.kinds))
        places = jnp.broadcast_to(acts[:, None], (b.seats, b.kinds, b.actions))
        nobody = jnp.zeros((b.seats, b.kinds, b.walked))
        logits = self.thing(jnp.concatenate([places, kinds, nobody], axis=-1))[..., 0]  # [N, K]
        alone = self._untouched(jnp.zeros((b.kinds, b.walked)))
        found = jnp.broadcast_to(alone, (b.kinds, seats.shape[1]))
        for seat in range(b.seats):
            found = jnp.where(seats[seat] > 0, logits[seat][:, None], found)
        return found

    def _untouched(self, comes: jax.Array) -> jax.Array:
        """[K, 1] logits of things staying where nobody stands, if somebody `comes` [K, 0 or 1]."""
        nothing = jnp.zeros((self.board.kinds, self.board.actions))
        kinds = jnp.eye(self.board.kinds)
        return self.thing(jnp.concatenate([nothing, kinds, comes], axis=-1))

    def _walked_onto(self, stays: jax.Array, comes: jax.Array) -> jax.Array:
        """[K, H*W] the logits `stays`, and other ones where a seat `comes` [H*W] by a move."""
        return jnp.where(comes, self._untouched(jnp.ones((self.board.kinds, 1))), stays)

    def _legality(self, then: "Standing", grounds: jax.Array) -> jax.Array:
        """[N, A] logits from where the seats are and what is on the board now."""
        around = _around(then, grounds, self.board).reshape(self.board.seats, -1)
        return jax.vmap(self.legal)(jnp.append(around, then.there[:, None], axis=1))

    def _ending(self, then: "Standing", things: jax.Array, time: jax.Array) -> jax.Array:
        """[] logit of the end, from who and what is left and the time before the step.

        Reciprocals, because none, one and more are worlds apart and six and seven are not.
        """
        left = (1 - time) * self.board.horizon
        count = things.sum(axis=1)
        features = jnp.stack(
            [
                1 / (1 + then.there.sum()),
                1 / (1 + count.sum()),
                1 / jnp.maximum(left, 0.5),
                time,
            ]
        )
        return self.end(jnp.append(features, 1 / (1 + count)))[0]


class Standing(NamedTuple):
    """Where the seats are."""

    cell: jax.Array  # [N] int32; any for a seat that is gone
    there: jax.Array  # [N] float32, 1 present, 0 gone


def _parted(planes: jax.Array, board: Board) -> tuple[jax.Array, jax.Array]:
    """The planes of the seats [N, H*W], and of obstacles and things [1 + K, H*W]."""
    flat = planes.reshape(-1, planes.shape[-1]).T
    return flat[: board.seats], flat[board.seats :]


def _standing(seats: jax.Array) -> Standing:
    """Where seats are by their planes [N, H*W] of 0 and 1."""
    cells = seats.shape[1]
    first = jnp.where(seats > 0, np.arange(cells), cells).min(axis=1)
    return Standing(jnp.where(first < cells, first, 0), seats.max(axis=1))


def _near(board: Board) -> np.ndarray:
    """[H*W, 9] the cells around each cell, row by row; H*W for one off the board."""
    height, width, _ = board.shape
    row, column = np.divmod(np.arange(height * width), width)
    rows = row[:, None] + np.repeat([-1, 0, 1], 3)
    columns = column[:, None] + np.tile([-1, 0, 1], 3)
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    return np.where(inside, rows * width + columns, height * width).astype(np.int32)


MOVES_AROUND = np.array([3 * (row + 1) + column + 1 for row, column in MOVES])  # in `_near`


def _landing(here: Standing, board: Board) -> jax.Array:
    """[N, moves] the cell that each move leads to; H*W for off the board."""
    return at(jnp.asarray(_near(board)[:, MOVES_AROUND]), here.cell)


def _around(here: Standing, grounds: jax.Array, board: Board) -> jax.Array:
    """[N, 9, 1 + K] the 3x3 surroundings of every seat's cell, nothing for one that is gone; off
    the board is an obstacle."""
    outside = jnp.zeros((1, len(grounds))).at[0, 0].set(1.0)
    wide = jnp.concatenate([grounds.T, outside])  # [H*W + 1, 1 + K]
    near = at(jnp.asarray(_near(board)), here.cell)
    return at(wide, near) * here.there[:, None, None]
