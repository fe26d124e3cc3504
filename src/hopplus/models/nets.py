"""Networks: a body that reads a view, and heads that say something about it.

Modules hold nothing but arrays, so that seats and seeds stack them by `vmap`.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import NetConfig
from hopplus.games.shortest_paths import steps_away
from hopplus.models.product import product
from hopplus.types import View, ViewShape


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
        return product(x, self.weight) + self.bias


class Layers(eqx.Module):
    """Dense layers with rectifiers between them, and none behind the last."""

    layers: tuple[Linear, ...]

    def __init__(self, sizes: Sequence[int], key: jax.Array, last_gain: float = 1.0) -> None:
        gains = [math.sqrt(2)] * (len(sizes) - 2) + [last_gain]
        keys = jax.random.split(key, len(gains))
        self.layers = tuple(
            Linear(size_in, size_out, gain, layer_key)
            for size_in, size_out, gain, layer_key in zip(
                sizes[:-1], sizes[1:], gains, keys, strict=True
            )
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


Inputs: TypeAlias = tuple[jax.Array, jax.Array]  # [..., P] of planes, [..., E] time and the rest


class Mlp(eqx.Module):
    """Dense layers over the flattened planes, the time, and whatever else is given."""

    dense: Layers

    def __init__(self, size: int, config: NetConfig, key: jax.Array, extra: int = 0) -> None:
        sizes = (size + 1 + extra, *[config.hidden] * config.layers)
        self.dense = Layers(sizes, key, last_gain=math.sqrt(2))

    def inputs(self, view: View, extra: jax.Array | None = None) -> Inputs:
        """What the first layer reads."""
        told = view.time[None]
        told = told if extra is None else jnp.concatenate([told, extra])
        return view.planes.astype(jnp.float32).reshape(-1), told

    def __call__(self, view: View, extra: jax.Array | None = None) -> jax.Array:
        return features_of(self, self.inputs(view, extra))


class Conv(eqx.Module):
    """A 3x3 convolution over the planes, then dense layers over its features."""

    kernel: jax.Array  # [3, 3, C, channels]
    bias: jax.Array  # [channels]
    dense: Mlp

    def __init__(self, shape: ViewShape, config: NetConfig, key: jax.Array, extra: int = 0) -> None:
        key_kernel, key_dense = jax.random.split(key)
        size_in = 9 * shape[2]
        weight = Linear(size_in, config.channels, math.sqrt(2), key_kernel).weight
        self.kernel = weight.reshape(3, 3, shape[2], config.channels)
        self.bias = jnp.zeros(config.channels)
        self.dense = Mlp(shape[0] * shape[1] * config.channels, config, key_dense, extra)

    def inputs(self, view: View, extra: jax.Array | None = None) -> Inputs:
        """What the first dense layer reads."""
        features = convolved(view.planes.astype(jnp.float32), self.kernel)
        seen = jax.nn.relu(features + self.bias)
        return self.dense.inputs(View(seen, view.legal, view.time, view.last_actions), extra)

    def __call__(self, view: View, extra: jax.Array | None = None) -> jax.Array:
        return features_of(self, self.inputs(view, extra))


class Centred(eqx.Module):
    """Dense layers over the board as seen from the seat's own cell."""

    dense: Mlp

    def __init__(self, shape: ViewShape, config: NetConfig, key: jax.Array, extra: int = 0) -> None:
        height, width, planes = shape
        size = (2 * height - 1) * (2 * width - 1) * (planes - 1)
        self.dense = Mlp(size, config, key, extra)

    def inputs(self, view: View, extra: jax.Array | None = None) -> Inputs:
        """What the first layer reads."""
        around = centred(view.planes.astype(jnp.float32), view.last_actions.shape[0])
        return self.dense.inputs(View(around, view.legal, view.time, view.last_actions), extra)

    def __call__(self, view: View, extra: jax.Array | None = None) -> jax.Array:
        return features_of(self, self.inputs(view, extra))


class Walking(eqx.Module):
    """As `Centred`, told besides what lies how many steps away behind each move, around obstacles,
    up to as many steps as the board is high and wide."""

    dense: Centred

    def __init__(self, shape: ViewShape, config: NetConfig, key: jax.Array, extra: int = 0) -> None:
        height, width, planes = shape
        self.dense = Centred(shape, config, key, extra + (height + width) * 4 * (planes - 2))

    def inputs(self, view: View, extra: jax.Array | None = None) -> Inputs:
        """What the first layer reads."""
        seats = view.last_actions.shape[0]
        here, walls = (view.planes[..., plane] > 0 for plane in (0, seats))
        others = np.delete(np.arange(view.planes.shape[-1]), [0, seats])
        away = steps_away(here, view.planes[..., others] > 0, walls).astype(jnp.float32).reshape(-1)
        return self.dense.inputs(view, away if extra is None else jnp.concatenate([away, extra]))

    def __call__(self, view: View, extra: jax.Array | None = None) -> jax.Array:
        return features_of(self, self.inputs(view, extra))


Body: TypeAlias = Mlp | Conv | Centred | Walking


def make_body(shape: ViewShape, config: NetConfig, key: jax.Array, extra: int = 0) -> Body:
    """The body of that kind: [hidden] features of a view and [extra] other numbers."""
    match config.kind:
        case "mlp":
            return Mlp(math.prod(shape), config, key, extra)
        case "conv":
            return Conv(shape, config, key, extra)
        case "centred":
            return Centred(shape, config, key, extra)
        case "walking":
            return Walking(shape, config, key, extra)


def dense_layers(body: Body) -> tuple[Linear, ...]:
    """The dense layers, of which the first reads whatever else is given."""
    return body.dense.layers if isinstance(body, Mlp) else dense_layers(body.dense)


def features_of(body: Body, inputs: Inputs) -> jax.Array:
    """[hidden] what the dense layers make of their inputs."""
    # To make one array of them takes as long as the product on a GPU, and less than two on a CPU.
    apart = jax.default_backend() != "cpu"
    return features_above(body, weighed(inputs, first_layer(body).weight, apart=apart))


def features_above(body: Body, product: jax.Array) -> jax.Array:
    """The same from the product with the weights of the first layer."""
    first, *others = dense_layers(body)
    features = jax.nn.relu(product + first.bias)
    for layer in others:
        features = jax.nn.relu(layer(features))
    return features


def weighed(inputs: Inputs, weight: jax.Array, *, apart: bool) -> jax.Array:
    """[out] the product of inputs [F] and a weight [F, out]; `apart` without making one array of
    them."""
    if not apart:
        return jnp.concatenate(inputs) @ weight
    planes, told = inputs
    rows = weight[len(planes) :]
    more = told[0] * rows[0] if len(told) == 1 else told @ rows
    return planes @ weight[: len(planes)] + more


def first_layer(body: Body) -> Linear:
    """The layer that reads whatever else is given."""
    return dense_layers(body)[0]


def convolved(planes: jax.Array, kernel: jax.Array) -> jax.Array:
    """[H, W, C] planes under a [3, 3, C, channels] kernel, zeros around: [H, W, channels].

    One matrix product over all surroundings: XLA's own convolution learns many times slower on CPU.
    """
    height, width, _ = planes.shape
    wide = jnp.pad(planes, ((1, 1), (1, 1), (0, 0)))
    cells = [
        wide[row : row + height, column : column + width] for row in range(3) for column in range(3)
    ]
    return jnp.concatenate(cells, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


def centred(planes: jax.Array, seats: int) -> jax.Array:
    """[H, W, C] moved so that the first plane's cell is in the middle: [2H - 1, 2W - 1, C - 1].

    The first plane goes, as it would always be the same. What is off the board is an obstacle.
    """
    height, width, _ = planes.shape
    cell = jnp.argmax(planes[..., 0].reshape(-1))
    outside = jnp.zeros(planes.shape[2] - 1).at[seats - 1].set(1.0)
    sides = (2 * height - 1 + height - 1, 2 * width - 1 + width - 1)
    wide = jnp.broadcast_to(outside, (*sides, len(outside)))
    wide = wide.at[height - 1 : 2 * height - 1, width - 1 : 2 * width - 1].set(planes[..., 1:])
    return jax.lax.dynamic_slice(
        wide,
        (cell // width, cell % width, 0),
        (2 * height - 1, 2 * width - 1, len(outside)),
    )


LASTING = 2.0  # a bias with which a memory begins by keeping seven eighths of itself at a step


class Gru(eqx.Module):
    """A gated recurrent unit (Cho et al. 2014).

    What has to last for long is found sooner by one that begins by `keeping` (Jozefowicz et al.
    2015).
    """

    given: Linear  # -> reset, update, candidate
    kept: Linear  # -> reset, update, candidate

    def __init__(self, size_in: int, hidden: int, key: jax.Array, keeping: float = 0.0) -> None:
        key_given, key_kept = jax.random.split(key)
        self.given = Linear(size_in, 3 * hidden, 1.0, key_given)
        self.kept = Linear(hidden, 3 * hidden, 1.0, key_kept)
        bias = self.kept.bias.at[hidden : 2 * hidden].set(keeping)
        self.kept = eqx.tree_at(lambda linear: linear.bias, self.kept, bias)

    def advance(self, memory: jax.Array, given: jax.Array) -> jax.Array:
        """[hidden] the memory after an input x, by `given(x)`, which does not wait for the memory
        before and so can be had for many steps at once."""
        return gated(memory, jnp.split(given, 3), jnp.split(self.kept(memory), 3))[0]


def gated(
    memory: jax.Array, given: Sequence[jax.Array], kept: Sequence[jax.Array]
) -> tuple[jax.Array, ...]:
    """[..., hidden] the memory after a step, then reset, update and candidate: by what the step
    brings to each of these and what the memory adds."""
    reset, share = (jax.nn.sigmoid(given[gate] + kept[gate]) for gate in (0, 1))
    candidate = jnp.tanh(given[2] + reset * kept[2])
    return share * memory + (1 - share) * candidate, reset, share, candidate


def last_actions(view: View) -> jax.Array:
    """[N * A] what everyone did last, one-hot; nothing is shown as no action at all."""
    actions = view.legal.shape[-1]
    return jax.nn.one_hot(view.last_actions, actions).reshape(-1)  # one_hot of -1 is zero


class ActorCritic(eqx.Module):
    """Log-probabilities of the actions and the expected return."""

    body: Body
    policy: Linear
    value: Linear
    recalls: bool = eqx.field(static=True)  # it is given what everyone did last

    def __init__(
        self,
        shape: ViewShape,
        actions: int,
        config: NetConfig,
        key: jax.Array,
        goal: int = 0,
        *,
        recalled_seats: int = 0,
    ) -> None:
        """Given `goal` numbers along with the view, and the last actions of so many seats."""
        key_body, key_policy, key_value = jax.random.split(key, 3)
        self.recalls = recalled_seats > 0
        self.body = make_body(shape, config, key_body, recalled_seats * actions + goal)
        self.policy = Linear(config.hidden, actions, 0.01, key_policy)
        self.value = Linear(config.hidden, 1, 1.0, key_value)

    def widened(self, extra: int, key: jax.Array) -> "ActorCritic":
        """This network with room for more numbers, which says the same where they are zero."""
        weight = first_layer(self.body).weight
        size_in, size_out = weight.shape
        rows = jax.random.normal(key, (extra, size_out)) * (math.sqrt(2) / math.sqrt(size_in))
        weight = jnp.concatenate([weight, rows])
        wide: ActorCritic = eqx.tree_at(lambda net: first_layer(net.body).weight, self, weight)
        return wide

    def inputs(self, view: View, goal: jax.Array) -> Inputs:
        """What its first dense layer reads of one view, with what the others are taken to be after,
        or what is remembered."""
        given = jnp.concatenate([last_actions(view), goal]) if self.recalls else goal
        return self.body.inputs(view, given)

    def __call__(self, view: View, goal: jax.Array) -> tuple[jax.Array, jax.Array]:
        """[A] log-probabilities, -inf where illegal, and [] value of one view."""
        return self.from_inputs(self.inputs(view, goal), view.legal)

    def of_many_goals(self, view: View, goals: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The same of one view with each of the goals [K, G], by one product with its planes."""
        weight = first_layer(self.body).weight

        def of_one(goal: jax.Array) -> tuple[jax.Array, jax.Array]:
            product = weighed(self.inputs(view, goal), weight, apart=True)
            return self.from_features(features_above(self.body, product), view.legal)

        return jax.vmap(of_one)(goals)

    def from_inputs(self, inputs: Inputs, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The same of what its first dense layer reads, and what is legal [A]."""
        return self.from_features(features_of(self.body, inputs), legal)

    def from_features(self, features: jax.Array, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The same of what the body makes of that."""
        # One product for both heads: next to starting it, what it multiplies costs a GPU nothing.
        heads = jnp.concatenate([self.policy.weight, self.value.weight], axis=1)
        said = features @ heads + jnp.concatenate([self.policy.bias, self.value.bias])
        logits = jnp.where(legal, said[:-1], -jnp.inf)
        return jax.nn.log_softmax(logits), said[-1]


def binary_loss(logits: jax.Array, truth: jax.Array) -> jax.Array:
    """Cross-entropy of yes-or-no predictions, from logits and what is true."""
    return jax.nn.softplus(logits) - logits * truth


def planes_loss(logits: jax.Array, planes: jax.Array, bits: bool) -> jax.Array:
    """The same of what a view shows. Where that is not `bits` but any numbers, it is least where
    the logits are these numbers."""
    return binary_loss(logits, planes if bits else jax.nn.sigmoid(planes))
