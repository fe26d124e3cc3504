"""Goals: a code for what a seat sees, learned as the code of a variational autoencoder.

A goal stands for a view that a player wants to come to. One of three losses shapes the code (after
Kingma and Welling 2014): with `reconstruction` it must tell the planes of the view it was made
from; with `action` the goal of a view that a player came to must tell the actions it took on the
way there, given what it saw when it took them; with `joint` the goal of a view must tell the action
taken there, given that view. As the view tells whatever its own goal can, `joint` cannot fall below
the entropy of the action given the view. All add the divergence from the prior N(0, I), or from the
uniform distribution for discrete goals (Jang et al. 2017; Maddison et al. 2017).

What the others are after is inferred from what a seat has seen so far by a conditional variational
autoencoder (Sohn et al. 2015): the history, read by a recurrent network, is the condition; the goal
must tell the present view, given the history before it, and keeps near the goal of a view that
another player will come to, which hindsight selects (Yu et al. 2024).
"""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import GoalConfig
from hopplus.models.history import History
from hopplus.models.nets import Body, Layers, Linear, make_body, planes_loss
from hopplus.models.part import Metrics
from hopplus.types import Params, Sample, View, ViewShape


class GoalCode(eqx.Module):
    """The distribution of a goal."""

    mean: jax.Array  # [G] float32; of a discrete goal, the probabilities of its categories
    log: jax.Array  # [G] float32, log standard deviations; of a discrete goal, log-probabilities


class GoalPrior(eqx.Module):
    """p(g | o): the encoder, and the decoder that its loss needs."""

    body: Body
    code: Linear
    decoder: Layers | None = None  # goal -> a logit for every cell of every plane
    # View and goal, or goal alone -> a logit per action.
    actor: tuple[Body, Linear] | Layers | None = None


@dataclass(frozen=True)
class GoalPart:
    """The goal prior's losses and what can be asked of it."""

    shape: ViewShape
    actions: int
    config: GoalConfig
    bits: bool = True  # views are 0 and 1, and not any numbers

    def init(self, key: jax.Array) -> Params:
        key_body, key_code, key_head, key_last = jax.random.split(key, 4)
        c, hidden, size = self.config, self.config.net.hidden, self.config.size
        body = make_body(self.shape, c.net, key_body)
        code = Linear(hidden, self.numbers, 1.0, key_code)
        match c.loss:
            case "reconstruction":
                sizes = (size, hidden, hidden, math.prod(self.shape))
                return GoalPrior(body, code, decoder=Layers(sizes, key_head))
            case "action" if c.ahead == 0:
                actor = Layers((size, hidden, self.actions), key_head, last_gain=0.01)
                return GoalPrior(body, code, actor=actor)
            case "action" | "joint":
                reader = make_body(self.shape, c.net, key_head, extra=size)
                head = Linear(hidden, self.actions, 0.01, key_last)
                return GoalPrior(body, code, actor=(reader, head))

    def code(self, params: GoalPrior, view: View) -> GoalCode:
        """The distribution of the goal of a view."""
        return self.code_of(params.code(params.body(view)))

    @property
    def numbers(self) -> int:
        """How many numbers tell a code."""
        return self.config.size * (2 if self.config.kind == "gaussian" else 1)

    def code_of(self, numbers: jax.Array) -> GoalCode:
        """The code that a network's numbers [..., numbers] stand for."""
        if self.config.kind == "discrete":
            logits = jax.nn.log_softmax(numbers)
            return GoalCode(jnp.exp(logits), logits)
        mean, log_std = jnp.split(numbers, 2, axis=-1)
        return GoalCode(mean, jnp.clip(log_std, -5.0, 2.0))

    def goal(self, params: GoalPrior, view: View) -> jax.Array:
        """[G] the goal of a view, without chance."""
        return self.settled(self.code(params, view))

    def settled(self, code: GoalCode) -> jax.Array:
        """[..., G] the goal of a code, without chance: the mean, or the likeliest category."""
        if self.config.kind == "discrete":
            return jax.nn.one_hot(jnp.argmax(code.mean, axis=-1), self.config.size)
        return code.mean

    def drawn(self, code: GoalCode, key: jax.Array) -> jax.Array:
        """[G] a goal drawn so that gradients reach the code."""
        if self.config.kind == "discrete":
            noise = jax.random.gumbel(key, code.mean.shape)
            soft = jax.nn.softmax((code.log + noise) / self.config.temperature)
            hard = jax.nn.one_hot(jnp.argmax(soft, axis=-1), self.config.size)
            return hard + soft - jax.lax.stop_gradient(soft)
        return code.mean + jnp.exp(code.log) * jax.random.normal(key, code.mean.shape)

    def divergence(self, code: GoalCode) -> jax.Array:
        """[G] the Kullback-Leibler divergence from the prior, by number or category."""
        if self.config.kind == "discrete":
            return code.mean * (code.log + jnp.log(self.config.size))
        return 0.5 * (code.mean**2 + jnp.exp(2 * code.log) - 1) - code.log

    def apart(self, code: GoalCode, other: GoalCode) -> jax.Array:
        """[..., G] the Kullback-Leibler divergence of a code from another, by number or
        category."""
        if self.config.kind == "discrete":
            return code.mean * (code.log - other.log)
        spread = jnp.exp(2 * (code.log - other.log))
        shift = ((code.mean - other.mean) * jnp.exp(-other.log)) ** 2
        return 0.5 * (spread + shift - 1) + other.log - code.log

    def planes(self, params: GoalPrior, goal: jax.Array) -> jax.Array:
        """[H, W, C] logits of the view a goal stands for; only with the reconstruction loss."""
        assert params.decoder is not None
        return params.decoder(goal).reshape(self.shape)

    def reconstruction(self, logits: jax.Array, planes: jax.Array) -> jax.Array:
        """[] how badly logits tell planes of the same shape."""
        return planes_loss(logits, planes, self.bits).sum()

    def policy(self, params: GoalPrior, view: View, goal: jax.Array) -> jax.Array:
        """[A] log-probabilities on the way to a goal; not with the reconstruction loss."""
        match params.actor:
            case (body, head):
                logits = head(body(view, goal))
            case Layers() as head:
                logits = head(goal)
            case _:
                raise AssertionError("not with the reconstruction loss")
        return jax.nn.log_softmax(jnp.where(view.legal, logits, -jnp.inf))

    def encoded(self, sample: Sample) -> View:
        """The view whose goal is to tell something."""
        return sample.later if self.config.loss == "action" else sample.view

    def losses(self, params: GoalPrior, sample: Sample, key: jax.Array) -> Metrics:
        code = self.code(params, self.encoded(sample))
        if self.config.loss == "reconstruction":
            logits = self.planes(params, self.drawn(code, key))
            named = {"reconstruction": self.reconstruction(logits, sample.view.planes)}
        else:
            goal = self.drawn(code, key)
            named = {"action": -self.policy(params, sample.view, goal)[sample.joint[0]]}
        return {**named, "kl": self.config.kl * self.divergence(code).sum()}

    def weight(self, sample: Sample) -> jax.Array:
        return sample.present[0].astype(jnp.float32)


class GoalInference(eqx.Module):
    """q(g | history, o)."""

    history: History
    code: Linear  # memory -> codes of all goals; or each memory -> the code of its goal
    decoder: Layers  # goals, memory before the view -> a logit for every cell of every plane


def selected(
    scores: jax.Array, valid: jax.Array, codes: GoalCode, *, each: bool
) -> tuple[GoalCode, jax.Array]:
    """The codes of the candidates with the highest scores: [J, G], and whether there is any [J].

    Candidates are [H, others, G], with scores [H, others], those that are `valid` [H, others]; one
    is selected for `each` other, or one of all.
    """
    if not each:  # all are candidates for one goal
        scores, valid = scores.reshape(-1, 1), valid.reshape(-1, 1)
        codes = jax.tree.map(lambda leaf: leaf.reshape(-1, 1, leaf.shape[-1]), codes)
    best = jnp.where(valid, scores, -jnp.inf).argmax(axis=0)  # [J]
    place = jnp.arange(scores.shape[1])
    return jax.tree.map(lambda leaf: leaf[best, place], codes), valid.any(axis=0)
