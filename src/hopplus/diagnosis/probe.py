"""What can be read from a code with a straight line: linear probes and projections."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

PENALTY = 1e-4  # of the squared weights, so that there is one best fit
ITERATIONS = 100
ROWS = 512  # codes are filled up to a multiple of these


@dataclass(frozen=True)
class Probe:
    """Multinomial logistic regression on standardised numbers."""

    mean: np.ndarray  # [G]
    scale: np.ndarray  # [G]
    weight: np.ndarray  # [G, K]
    bias: np.ndarray  # [K]

    def log_probs(self, codes: np.ndarray) -> np.ndarray:
        """[M, K] of codes [M, G]."""
        logits: np.ndarray = (codes - self.mean) / self.scale @ self.weight + self.bias
        top = logits.max(axis=1, keepdims=True)
        total = np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        return logits - top - total

    def read(self, codes: np.ndarray) -> np.ndarray:
        """[M] the likeliest class."""
        return self.log_probs(codes).argmax(axis=1)


def fit_probe(codes: np.ndarray, labels: np.ndarray, classes: int) -> Probe:
    """The probe that reads labels [M] from codes [M, G] best; every class weighs the same."""
    mean, scale = codes.mean(axis=0), codes.std(axis=0) + 1e-8
    count = np.maximum(np.bincount(labels, minlength=classes), 1)
    share = 1 / (count * np.count_nonzero(np.bincount(labels, minlength=classes)))
    spare = (0, -len(labels) % ROWS)  # rows without weight: one program serves many lengths
    x = jnp.asarray(np.pad((codes - mean) / scale, (spare, (0, 0))), jnp.float32)
    weights = jnp.asarray(np.pad(share[labels], spare), jnp.float32)
    weight, bias = _fitted(x, jnp.asarray(np.pad(labels, spare)), weights, classes)
    return Probe(mean, scale, np.asarray(weight, np.float64), np.asarray(bias, np.float64))


@partial(jax.jit, static_argnames="classes")
def _fitted(
    x: jax.Array, labels: jax.Array, share: jax.Array, classes: int
) -> tuple[jax.Array, jax.Array]:
    """The minimum of the mean cross-entropy by L-BFGS (Liu and Nocedal 1989)."""

    def loss(params: tuple[jax.Array, jax.Array]) -> jax.Array:
        weight, bias = params
        log_probs = jax.nn.log_softmax(x @ weight + bias)
        told = jnp.take_along_axis(log_probs, labels[:, None], axis=1)[:, 0]
        return -(share * told).sum() + PENALTY * (weight**2).sum()

    optimiser = optax.lbfgs()
    value_and_grad = optax.value_and_grad_from_state(loss)

    def step(_: int, carry: Any) -> Any:
        params, state = carry
        value, gradient = value_and_grad(params, state=state)
        change, state = optimiser.update(
            gradient, state, params, value=value, grad=gradient, value_fn=loss
        )
        return optax.apply_updates(params, change), state

    params = (jnp.zeros((x.shape[1], classes)), jnp.zeros(classes))
    best: tuple[jax.Array, jax.Array]
    best, _ = jax.lax.fori_loop(0, ITERATIONS, step, (params, optimiser.init(params)))
    return best


def project(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[M, 2] the codes along their two main directions, and the share of the variance of each."""
    centred = codes - codes.mean(axis=0)
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    power = spread**2
    return centred @ directions[:2].T, power[:2] / max(power.sum(), 1e-12)
