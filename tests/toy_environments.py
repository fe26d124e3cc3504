"""Environments with JaxMARL's methods and without JaxMARL: what the package's own do not have."""

from typing import Any

import jax
import jax.numpy as jnp


class Discrete:
    def __init__(self, n: int) -> None:
        self.n = n


class Uneven:
    """Two agents that differ: how much they see, how many actions they have, which are allowed, and
    when they are done. Its `step` begins anew by itself, and there is no `step_env`.

    An agent's reward is its action; the observation is how often each has acted.
    """

    agents = ("short", "long")
    max_steps = 5

    def action_space(self, agent: str) -> Discrete:
        return Discrete(2 if agent == "short" else 3)

    def _seen(self, state: jax.Array) -> dict[str, jax.Array]:
        return {"short": state[:1], "long": jnp.stack([state, -state])}

    def reset(self, key: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
        state = jnp.zeros(2, jnp.float32)
        return self._seen(state), state

    def get_avail_actions(self, state: jax.Array) -> dict[str, jax.Array]:
        """The long agent may take its last action from the second step on."""
        return {"short": jnp.ones(2), "long": jnp.array([1, 1, state[0] > 0], jnp.float32)}

    def step(self, key: jax.Array, state: jax.Array, actions: dict[str, jax.Array]) -> Any:
        after = state + 1
        over = after[0] >= 4
        dones = {"short": after[0] >= 2, "long": over, "__all__": over}
        rewards = {agent: actions[agent].astype(jnp.float32) for agent in self.agents}
        begun = jnp.where(over, jnp.zeros(2), after)
        return self._seen(begun), begun, rewards, dones, {}


class Continuous(Uneven):
    def action_space(self, agent: str) -> Any:
        return object()


class Endless(Uneven):
    max_steps = 0


class Alone(Uneven):
    agents = ("short",)  # type: ignore[assignment]


class Nothing:
    """No environment at all."""
