"""A world model that gives every cell of every plane a probability of its own: the comparison."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.models.nets import Layers, binary_loss, convolved
from hopplus.models.part import Metrics
from hopplus.models.world import Board, Prediction
from hopplus.types import Sample, View


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
        about = board.actions + board.seats
        self.seat = Layers((2 * hidden + about, hidden, 2 + board.actions), keys[2])
        self.end = Layers((hidden + 2, hidden, 1), keys[3])

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        cells, rewards, gone, legal, done = self._predict(view, joint)
        return Prediction(
            planes=jax.nn.sigmoid(cells),
            reward=rewards,
            gone=jax.nn.sigmoid(gone),
            legal=jax.nn.sigmoid(legal),
            done=jax.nn.sigmoid(done),
        )

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        return (prediction.planes > 0.5).astype(jnp.float32), prediction.gone > 0.5

    def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
        return after  # every cell is likelier empty

    def losses(self, sample: Sample, channel_weights: jax.Array) -> Metrics:
        cells, rewards, gone, legal, done = self._predict(sample.view, sample.joint)
        present = sample.present
        planes = binary_loss(cells, sample.after.planes).sum(axis=(0, 1))  # [C]
        return {
            "planes": (planes * channel_weights).sum(),
            "reward": jnp.where(present, (rewards - sample.reward) ** 2, 0.0).sum(),
            "gone": jnp.where(present, binary_loss(gone, ~sample.present_after), 0.0).sum(),
            "legal": binary_loss(legal, sample.legal_after).sum(axis=1).mean(),
            "done": binary_loss(done, sample.done),
        }

    def _predict(self, view: View, joint: jax.Array) -> tuple[jax.Array, ...]:
        """Logits [H, W, C] of the planes, rewards [N], logits of being gone [N], of legality
        [N, A] and of the end []."""
        b = self.board
        seats = view.planes[..., : b.seats]
        there = seats.max(axis=(0, 1))  # [N] 1 present, 0 gone: what the gone do means nothing
        does = jax.nn.one_hot(joint, b.actions) * there[:, None]  # [N, A]
        acts = seats[..., None] * does  # [H, W, N, A]
        ones = jnp.ones((*b.shape[:2], 1))
        seen = jnp.concatenate([view.planes, acts.reshape(*b.shape[:2], -1), ones], axis=-1)
        features = jax.nn.relu(convolved(seen, self.kernel) + self.bias)
        flat = features.reshape(-1, features.shape[-1])
        own = seats.reshape(-1, b.seats).T @ flat  # [N, hidden]
        mean = flat.mean(axis=0)
        means = jnp.broadcast_to(mean, own.shape)
        about = self.seat(jnp.concatenate([own, means, does, jnp.eye(b.seats)], axis=1))
        left = (1 - view.time) * b.horizon
        times = jnp.stack([view.time, 1 / jnp.maximum(left, 0.5)])
        end = self.end(jnp.concatenate([mean, times]))[0]
        return jax.vmap(jax.vmap(self.cell))(features), about[:, 0], about[:, 1], about[:, 2:], end
