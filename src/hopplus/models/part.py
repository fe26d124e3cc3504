"""The seam between a learned model and whoever fits it."""

from typing import Protocol

import jax
import jax.numpy as jnp

from hopplus.types import Params, Sample

Metrics = dict[str, jax.Array]


class Part(Protocol):
    """A model that learns from samples of play; a frozen value."""

    def init(self, key: jax.Array) -> Params:
        """Fresh parameters."""

    def losses(self, params: Params, sample: Sample, key: jax.Array) -> Metrics:
        """The named losses of one sample, each [] and added up to the loss it is fitted by.

        `key` is for models that draw.
        """

    def weight(self, sample: Sample) -> jax.Array:
        """[] float32, how much a sample counts; 0 for one that must not be learned from."""


def fit_loss(
    part: Part, params: Params, samples: Sample, keys: jax.Array, real: jax.Array | None = None
) -> tuple[jax.Array, Metrics]:
    """The mean loss over samples [M, ...]; also the sums of the named losses, and `weight`, that of
    the samples' weights.

    `real` [M] is false for samples that only fill up the batch.
    """
    losses = jax.vmap(part.losses, in_axes=(None, 0, 0))(params, samples, keys)
    weights = jax.vmap(part.weight)(samples)
    weights = weights if real is None else jnp.where(real, weights, 0.0)
    # A sample of no weight may have any loss, even an infinite one: an action that is not legal.
    sums = {
        name: jnp.where(weights > 0, weights * loss, 0.0).sum() for name, loss in losses.items()
    }
    total = weights.sum()
    mean = sum(sums.values(), jnp.float32(0)) / jnp.maximum(total, 1e-8)
    return mean, {**sums, "weight": total}
