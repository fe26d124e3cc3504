"""Fitting one model to samples: gradient steps, held-out losses, and the best so far."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from hopplus.config import FitConfig
from hopplus.models.part import Metrics, Part, fit_loss
from hopplus.recorded.samples import Sampler, Source
from hopplus.types import Params


class Fit(eqx.Module):
    """Everything that changes while a model is fitted; nothing else is needed to go on."""

    params: Params
    optimiser: optax.OptState
    best: Params  # those of the epoch with the least held-out loss
    best_loss: jax.Array  # [] float32
    best_epoch: jax.Array  # [] int32
    epoch: jax.Array  # [] int32, epochs done
    key: jax.Array


@dataclass(frozen=True)
class Fitter:
    """Fits a part; all of it is for one seed, and vmapped over seeds."""

    part: Part
    sampler: Sampler
    config: FitConfig
    steps: int  # gradient steps of a whole fit, for annealing

    @cached_property
    def optimiser(self) -> optax.GradientTransformation:
        c = self.config
        rate = optax.linear_schedule(c.learning_rate, 0.0, self.steps)
        return optax.chain(
            optax.clip_by_global_norm(c.gradient_norm),
            optax.adamw(rate, weight_decay=c.weight_decay),
        )

    def init(self, key: jax.Array) -> Fit:
        key, key_params = jax.random.split(key)
        params = self.part.init(key_params)
        return Fit(
            params=params,
            optimiser=self.optimiser.init(params),
            best=params,
            best_loss=jnp.float32(jnp.inf),
            best_epoch=jnp.int32(0),
            epoch=jnp.int32(0),
            key=key,
        )

    def improve(
        self, fit: Fit, source: Source, batches: jax.Array, count: jax.Array, prior_params: Params
    ) -> tuple[Fit, Metrics]:
        """A gradient step for each of the first `count` batches [n, batch, 2] of rows and seats;
        the sums of the named losses, and of the samples' weights."""
        key, key_steps = jax.random.split(fit.key)
        keys = jax.random.split(key_steps, len(batches))

        def step(number: jax.Array, carry: Any) -> Any:
            params, optimiser, metrics = carry
            (_, sums), gradient = jax.value_and_grad(self._loss, has_aux=True)(
                params, source, batches[number], keys[number], None, prior_params
            )
            change, optimiser = self.optimiser.update(gradient, optimiser, params)
            metrics = {name: metrics[name] + value for name, value in sums.items()}
            return optax.apply_updates(params, change), optimiser, metrics

        zero = self._no_losses(fit, source, batches, prior_params)
        params, optimiser, sums = jax.lax.fori_loop(
            0, count, step, (fit.params, fit.optimiser, zero)
        )
        return replace(fit, params=params, optimiser=optimiser, key=key), sums

    def measure(
        self, fit: Fit, source: Source, batches: jax.Array, real: jax.Array, prior_params: Params
    ) -> Metrics:
        """The sums of the named losses over batches [n, batch, 2], of which those `real` [n, batch]
        count; drawn alike in every epoch."""
        keys = jax.random.split(jax.random.key(0), len(batches))

        def step(number: jax.Array, metrics: Metrics) -> Metrics:
            _, sums = self._loss(
                fit.params, source, batches[number], keys[number], real[number], prior_params
            )
            return {name: metrics[name] + value for name, value in sums.items()}

        zero = self._no_losses(fit, source, batches, prior_params)
        filled = real.any(axis=1).sum()  # the batches after these are empty
        total: Metrics = jax.lax.fori_loop(0, filled, step, zero)
        return total

    def _no_losses(
        self, fit: Fit, source: Source, batches: jax.Array, prior_params: Params
    ) -> Metrics:
        """Zero for every named sum."""
        _, shapes = jax.eval_shape(
            self._loss, fit.params, source, batches[0], fit.key, None, prior_params
        )
        return {name: jnp.zeros(shape.shape) for name, shape in shapes.items()}

    def finish_epoch(self, fit: Fit, loss: jax.Array) -> Fit:
        """Count an epoch and keep its parameters if its held-out loss is the least so far."""
        epoch = fit.epoch + 1
        stopped = fit.epoch - fit.best_epoch >= self.config.patience
        better = (loss < fit.best_loss) & ~stopped
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), fit.params, fit.best)
        return replace(
            fit,
            best=best,
            best_loss=jnp.where(better, loss, fit.best_loss),
            best_epoch=jnp.where(better, epoch, fit.best_epoch),
            epoch=epoch,
        )

    def _loss(
        self,
        params: Params,
        source: Source,
        steps: jax.Array,
        key: jax.Array,
        real: jax.Array | None,
        prior_params: Params,
    ) -> tuple[jax.Array, Metrics]:
        """The mean loss of a batch [batch, 2] of rows and seats, and the named sums."""
        keys = jax.random.split(key, (2, len(steps)))
        samples = jax.vmap(self.sampler, in_axes=(None, 0, 0, None))(
            source, steps, keys[0], prior_params
        )
        return fit_loss(self.part, params, samples, keys[1], real)
