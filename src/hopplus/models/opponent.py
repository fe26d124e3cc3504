"""What will another player do? Its action, from what it sees and what is known of its goal."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import NetConfig
from hopplus.models.nets import Body, Linear, Mlp, dense_layers, last_actions, make_body
from hopplus.models.one_product import OverView, inputs_size, rows_to, together
from hopplus.models.part import Metrics
from hopplus.types import Params, Sample, View, ViewShape


class OpponentModel(eqx.Module):
    """pi_j(a | o_j, g_j) with o_j the view of the player in question."""

    body: Body
    head: Linear

    def __call__(self, view: View, goal: jax.Array) -> jax.Array:
        """[A] log-probabilities, -inf where illegal."""
        features = self.body(view, jnp.concatenate([last_actions(view), goal]))
        return jax.nn.log_softmax(jnp.where(view.legal, self.head(features), -jnp.inf))


def others_views(
    view: View, legal: jax.Array, own_kinds: tuple[tuple[int, ...], ...] | None = None
) -> View:
    """[N - 1, ...] the views of the others as this seat takes them to be, in the seats' order; with
    everyone's legal actions [N, A], own first.

    Exact where seats see the whole board; where they do not, the others are taken to see as much.
    Things that are somebody's keep the planes that they have for this seat, which models that learn
    from such views get used to, unless it is said what it calls each seat's own kinds [N, K].
    """
    seats = len(legal)

    def things(place: int) -> jax.Array:
        rest = view.planes[..., seats:]  # obstacles first
        return rest if own_kinds is None else rest[..., [0, *(1 + k for k in own_kinds[place])]]

    # Slices, because each place is known beforehand: a gather of single numbers is slow on CPU.
    planes = [
        jnp.concatenate(
            [
                view.planes[..., place:seats],
                view.planes[..., :place],
                things(place),
            ],
            axis=-1,
        )
        for place in range(1, seats)
    ]
    last = [jnp.roll(view.last_actions, -place) for place in range(1, seats)]
    return View(
        planes=jnp.stack(planes),
        legal=legal[1:],
        time=jnp.broadcast_to(view.time, (seats - 1,)),
        last_actions=jnp.stack(last),
    )


Predict = Callable[[View, jax.Array, jax.Array], jax.Array]


def others_logits(
    models: OpponentModel, view: View, legal: jax.Array, goals: jax.Array
) -> jax.Array:
    """[N - 1, A] log-probabilities of the others' actions by models of them [N - 1, ...], from this
    seat's view, everyone's legal actions [N, A] and the goals [N - 1, G] it takes them to have."""
    return predictor(models, view.planes.shape, *legal.shape)(view, legal, goals)


def predictor(models: OpponentModel, shape: tuple[int, ...], seats: int, actions: int) -> Predict:
    """As `others_logits`, made ready once for many views with planes of that shape."""
    if not isinstance(models.body, Mlp):
        return lambda view, legal, goals: jax.vmap(OpponentModel.__call__)(
            models, others_views(view, legal), goals
        )
    say = together(over_view(models, shape, seats, actions))
    return lambda view, legal, goals: say(view, (legal, goals))[0]


def over_view(models: OpponentModel, shape: tuple[int, ...], seats: int, actions: int) -> OverView:
    """All models, of dense layers, over the view of the seat whose they are; they are given what is
    legal [N, A] and goals [N - 1, G].

    Dense layers over another's view are dense layers over this one with their weights turned;
    turning weights costs nothing compared to turning views, and all models then read one input.
    """
    first, *above = dense_layers(models.body)
    read = [_read_by(place, shape, seats, actions) for place in range(1, seats)]
    # Side by side, [I, N - 1, H], as one product with them reads them: a loop would move them again
    # at every step.
    turned = jnp.stack([first.weight[place, order] for place, order in enumerate(read)], axis=1)
    size, hidden = len(read[0]), turned.shape[1:]

    def say(product: jax.Array, legal: jax.Array, goals: jax.Array) -> jax.Array:
        of_goals = jnp.einsum("jg,jgh->jh", goals, first.weight[:, size:])
        x = product.reshape(hidden) + of_goals + first.bias
        for layer in [*above, models.head]:
            x = jnp.einsum("ji,jio->jo", jax.nn.relu(x), layer.weight) + layer.bias
        return jax.nn.log_softmax(jnp.where(legal[1:], x, -jnp.inf))

    return OverView(rows_to(inputs_size(shape, seats, actions), turned.reshape(size, -1)), say)


def _read_by(place: int, shape: tuple[int, ...], seats: int, actions: int) -> np.ndarray:
    """For each number of a seat's planes, time and last actions: the one that shows the same in the
    input of the other at that place."""
    planes = np.arange(math.prod(shape)).reshape(shape)
    of_seats = np.roll(planes[..., :seats], place, axis=-1)
    planes = np.concatenate([of_seats, planes[..., seats:]], axis=-1).reshape(-1)
    last = np.roll(np.arange(seats * actions).reshape(seats, actions), place, axis=0).reshape(-1)
    return np.concatenate([planes, [planes.size], planes.size + 1 + last])


@dataclass(frozen=True)
class OpponentPart:
    """Cross-entropy of the actions of players that are present and have a choice."""

    shape: ViewShape
    seats: int
    actions: int
    goal: int  # numbers of the goal it is given
    net: NetConfig
    class_weights: tuple[float, ...]  # [A]

    def init(self, key: jax.Array) -> Params:
        key_body, key_head = jax.random.split(key)
        extra = self.seats * self.actions + self.goal
        body = make_body(self.shape, self.net, key_body, extra)
        return OpponentModel(body, Linear(self.net.hidden, self.actions, 0.01, key_head))

    def losses(self, params: OpponentModel, sample: Sample, key: jax.Array) -> Metrics:
        log_prob = params(sample.view, sample.goal)[sample.joint[0]]
        return {"cross_entropy": -log_prob}

    def weight(self, sample: Sample) -> jax.Array:
        counts = sample.present[0] & (sample.view.legal.sum() > 1)
        return counts * jnp.asarray(self.class_weights)[sample.joint[0]]
