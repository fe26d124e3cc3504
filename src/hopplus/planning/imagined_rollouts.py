"""Play that is only imagined, from real steps on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.models.opponent import OpponentModel, predictor
from hopplus.models.sampling import draw
from hopplus.planning.dynamics import Dynamics, Embedding, Observation
from hopplus.types import Act, Memory, View

Decide = Callable[[Memory, View, jax.Array], tuple[Memory, Act]]


class ImaginedRollout(eqx.Module):
    """Imagined steps [H, ...] of one seat."""

    memory: Memory  # before each step
    begins: jax.Array  # [H] bool, the step is from a real one, with the memory of that
    view: View
    act: Act
    reward: jax.Array  # [H, N] float32, own first
    ended: jax.Array  # [H] bool, the seat is gone after the step, or the episode over
    last: jax.Array  # [1] float32, the value after the last step
    # [H] float32, what is still to come for a seat that has gone while the episode goes on; None
    # where that is nothing.
    behind: jax.Array | None = None


@dataclass(frozen=True)
class Imagination:
    """Who imagines, and with what."""

    decide: Decide  # how the seat itself acts: exactly as in play
    opponents: OpponentModel  # [N - 1, ...]
    dynamics: Dynamics
    # What the seat infers [J] and a key -> what it supposes about the others [N - 1, G].
    suppose: Callable[[jax.Array, jax.Array], jax.Array]
    gains_after_leaving: bool = False  # by the others' rewards, which its value tells

    def __call__(
        self, observations: Observation, memories: Memory, key: jax.Array
    ) -> ImaginedRollout:
        """Imagine H steps from the first of [H] real steps, with the seat's memory before it.

        Where the seat's game ends, the real step of the next number is taken instead of what would
        follow.
        """

        shape = observations.view.planes.shape[1:]
        predict = predictor(self.opponents, shape, *observations.legal.shape[1:])

        def step(
            carry: tuple[jax.Array, Embedding, Memory], now: tuple[Embedding, Memory, jax.Array]
        ) -> tuple[tuple[jax.Array, Embedding, Memory], tuple[Any, ...]]:
            begins, *ongoing = carry
            *real, keys = now
            embedding, before = jax.tree.map(
                lambda new, old: jnp.where(begins, new, old), tuple(real), tuple(ongoing)
            )
            key_own, key_others, key_goals, key_world = keys
            observation = self.dynamics.observation(embedding)
            memory, act = self.decide(before, observation.view, key_own)
            # Drawn anew at each step: as what is inferred follows what is imagined, acts come as if
            # each other had one goal throughout.
            goals = self.suppose(act.inferred, key_goals)
            logits = predict(observation.view, observation.legal, goals)
            others = draw(key_others, jnp.exp(logits))
            joint = jnp.append(act.action, others)
            after, transition = self.dynamics.simulate(embedding, joint, key_world)
            behind = None
            if self.gains_after_leaving:
                _, later = self.decide(memory, self.dynamics.observation(after).view, key_own)
                goes_on = transition.ended & ~transition.over
                behind = jnp.where(goes_on, later.value, 0.0)
            seen = (before, begins, observation.view, act)
            found = (*seen, transition.reward, transition.ended, behind)
            onward = jax.tree.map(_as, (after, memory), (embedding, before))
            return (transition.ended, *onward), found

        steps = len(observations.legal)
        embeddings = jax.vmap(self.dynamics.enter)(observations)
        first = jax.tree.map(lambda leaf: leaf[0], (embeddings, memories))
        # All keys at once: to split a key takes as long as to split many.
        keys = jax.random.split(key, 4 * steps + 1)
        key_last, keys = keys[-1], keys[:-1].reshape(steps, 4, *keys.shape[1:])
        (_, embedding, memory), found = jax.lax.scan(
            step, (jnp.bool_(True), *first), (embeddings, memories, keys)
        )
        before, begins, view, act, reward, ended, behind = found
        _, last = self.decide(memory, self.dynamics.observation(embedding).view, key_last)
        return ImaginedRollout(before, begins, view, act, reward, ended, last.value[None], behind)


def _as(new: jax.Array, old: jax.Array) -> jax.Array:
    """What a step has left as narrower numbers is kept as those it came from, as in `jnp.where`;
    what it has left as wider ones the loop refuses."""
    kind = jnp.promote_types(new.dtype, old.dtype) if new.dtype != old.dtype else old.dtype
    return new if new.dtype == kind else new.astype(kind)
