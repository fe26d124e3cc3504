"""Networks: a body that reads a view, and heads that say something about it.

Modules hold nothing but arrays, so that seats and seeds stack them by `vmap`.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import NetConfig
from hopplus.types import View


class Linear(eqx.Module):
    """x @ weight + bias; weights begin normal with variance gain^2 / in.

    Not orthogonal: that takes a decomposition whose compilation alone costs seconds.
    """

    weight: jax.Array  # [in, out]
    bias: jax.Array  # [out]

    def __init__(self, size_in: int, size_out: int, gain: float, key: jax.Array) -> None:
        self.weight = jax.random.normal(key, (size_in, size_out)) * (gain / math.sqrt(size_in))
        self.bias = jnp.zeros(size_out)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x @ self.weight + self.bias


class Mlp(eqx.Module):
    """Dense layers over the flattened planes and the time."""

    layers: tuple[Linear, ...]

    def __init__(self, shape: tuple[int, int, int], config: NetConfig, key: jax.Array) -> None:
        sizes = (math.prod(shape) + 1, *[config.hidden] * config.layers)
        keys = jax.random.split(key, config.layers)
        self.layers = tuple(
            Linear(size_in, size_out, math.sqrt(2), layer_key)
            for size_in, size_out, layer_key in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )

    def __call__(self, view: View) -> jax.Array:
        x = jnp.append(view.planes.astype(jnp.float32).reshape(-1), view.time)
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x


class Conv(eqx.Module):
    """A 3x3 convolution over the planes, then dense layers over its features and the time."""

    kernel: jax.Array  # [3, 3, C, channels]
    bias: jax.Array  # [channels]
    dense: Mlp

    def __init__(self, shape: tuple[int, int, int], config: NetConfig, key: jax.Array) -> None:
        key_kernel, key_dense = jax.random.split(key)
        size_in = 9 * shape[2]
        weight = Linear(size_in, config.channels, math.sqrt(2), key_kernel).weight
        self.kernel = weight.reshape(3, 3, shape[2], config.channels)
        self.bias = jnp.zeros(config.channels)
        self.dense = Mlp((*shape[:2], config.channels), config, key_dense)

    def __call__(self, view: View) -> jax.Array:
        features = jax.lax.conv_general_dilated(
            view.planes.astype(jnp.float32)[None],
            self.kernel,
            window_strides=(1, 1),
            padding="SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )[0]
        seen = jax.nn.relu(features + self.bias)
        return self.dense(View(seen, view.legal, view.time, view.last_actions))


class ActorCritic(eqx.Module):
    """Log-probabilities of the actions and the expected return."""

    body: Mlp | Conv
    policy: Linear
    value: Linear

    def __init__(
        self, shape: tuple[int, int, int], actions: int, config: NetConfig, key: jax.Array
    ) -> None:
        key_body, key_policy, key_value = jax.random.split(key, 3)
        body = Mlp if config.kind == "mlp" else Conv
        self.body = body(shape, config, key_body)
        self.policy = Linear(config.hidden, actions, 0.01, key_policy)
        self.value = Linear(config.hidden, 1, 1.0, key_value)

    def __call__(self, view: View) -> tuple[jax.Array, jax.Array]:
        """[A] log-probabilities, -inf where illegal, and [] value of one view."""
        features = self.body(view)
        logits = jnp.where(view.legal, self.policy(features), -jnp.inf)
        return jax.nn.log_softmax(logits), self.value(features)[0]
