"""What are the others after? Goals inferred from what a seat has seen so far.

A conditional variational autoencoder (Sohn et al. 2015): the history, read by a recurrent network,
is the condition; the goal must tell the present view, given the history before it, and keeps near
the goal of a view that another player will come to, which hindsight selects (Yu et al. 2024).
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.models.goal import GoalCode
from hopplus.models.history import History
from hopplus.models.nets import Layers, Linear


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
    scores = jnp.where(valid, scores, -jnp.inf)
    size = codes.mean.shape[-1]
    if each:
        best = scores.argmax(axis=0)  # [others]
        place = jnp.arange(scores.shape[1])
        chosen = GoalCode(codes.mean[best, place], codes.log[best, place])
        return chosen, valid.any(axis=0)
    flat = scores.reshape(-1).argmax()
    chosen = GoalCode(codes.mean.reshape(-1, size)[flat], codes.log.reshape(-1, size)[flat])
    return jax.tree.map(lambda leaf: leaf[None], chosen), valid.any()[None]
