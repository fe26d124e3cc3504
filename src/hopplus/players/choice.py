"""Acts: from a distribution over actions, and side by side."""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from hopplus.types import Act

WIDE = ("inferred", "extras")  # fields of an act that are as wide as a player makes them


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
        extras=jnp.zeros(0),
    )


def alike(acts: Sequence[Act]) -> list[Act]:
    """The same acts with what they infer and tell filled up with zeros to one size."""

    def widened(act: Act, name: str) -> jax.Array:
        leaf: jax.Array = getattr(act, name)
        size = max(getattr(other, name).shape[-1] for other in acts)
        return jnp.pad(leaf, [(0, 0)] * (leaf.ndim - 1) + [(0, size - leaf.shape[-1])])

    return [replace(act, **{name: widened(act, name) for name in WIDE}) for act in acts]
