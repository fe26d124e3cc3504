"""What lasts from episode to episode; and a policy's own memory, learned with it: what it is told
beside the view (Cho et al. 2014)."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import MemoryConfig
from hopplus.models.history import given, seen_size
from hopplus.models.nets import LASTING, Gru
from hopplus.types import Memory, View


class Recall(eqx.Module):
    """What is remembered, for one who keeps it within a trial, and from how many episodes."""

    state: Memory
    episodes: jax.Array  # [] int32, of the trial, that are over


def state_of(memory: Memory) -> Memory:
    """What is remembered, kept within a trial or not."""
    return memory.state if isinstance(memory, Recall) else memory


def forgotten(memory: Memory, over: jax.Array) -> jax.Array:
    """Whether the memory begins anew where an episode was `over`: with its trial, if it is kept
    for one."""
    return over & (memory.episodes == 0) if isinstance(memory, Recall) else over


@dataclass(frozen=True)
class MemoryPart:
    """Reads views into a memory."""

    shape: tuple[int, int, int]
    seats: int
    actions: int
    config: MemoryConfig

    def init(self, key: jax.Array) -> Gru:
        seen = seen_size(self.shape, self.seats, self.actions)
        return Gru(seen, self.config.size, key, LASTING)

    def start(self) -> jax.Array:
        return jnp.zeros(self.config.size)

    def read(self, history: Gru, memory: jax.Array, view: View) -> jax.Array:
        """The memory after a view."""
        return history.advance(memory, given(history, view))
