"""Acts: from a distribution over actions, and side by side."""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from hopplus.types import Act


def act_from(
    logits: jax.Array,
    action: jax.Array,
    value: jax.Array | float,
    goal: jax.Array,
    inferred: jax.Array | None = None,
) -> Act:
    """The act of taking an action under [A] normalised log-probabilities."""
    return Act(
        action=action.astype(jnp.int32),
        logits=logits,
        log_prob=logits[action],
        value=jnp.asarray(value, jnp.float32),
        goal=goal,
        inferred=jnp.zeros(0) if inferred is None else inferred,
    )


def alike(acts: Sequence[Act]) -> list[Act]:
    """The same acts with what they infer filled up with zeros to one size."""

    def filled(inferred: jax.Array) -> jax.Array:
        lacking = size - inferred.shape[-1]
        return jnp.pad(inferred, [(0, 0)] * (inferred.ndim - 1) + [(0, lacking)])

    size = max(act.inferred.shape[-1] for act in acts)
    return [replace(act, inferred=filled(act.inferred)) for act in acts]
