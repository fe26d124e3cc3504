"""A policy's own memory, learned with it: what it is told beside the view (Cho et al. 2014)."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import MemoryConfig
from hopplus.models.history import given, seen_size
from hopplus.models.nets import Gru
from hopplus.types import View


class Recall(eqx.Module):
    """What is remembered, and of how many episodes before this one."""

    state: jax.Array  # [size]
    episodes: jax.Array  # [] int32, of the trial, that are over


@dataclass(frozen=True)
class MemoryPart:
    """Reads views into a memory; within an episode, or within a trial of several."""

    shape: tuple[int, int, int]
    seats: int
    actions: int
    config: MemoryConfig
    trial: int  # episodes against the same company

    def init(self, key: jax.Array) -> Gru:
        return Gru(seen_size(self.shape, self.seats, self.actions), self.config.size, key)

    def start(self) -> Recall:
        return Recall(jnp.zeros(self.config.size), jnp.int32(0))

    def read(self, history: Gru, memory: Recall, view: View) -> Recall:
        """The memory after a view."""
        return Recall(history.advance(memory.state, given(history, view)), memory.episodes)

    @property
    def keeps(self) -> bool:
        return self.config.kind == "trial" and self.trial > 1

    def again(self, memory: Recall) -> Recall:
        """The memory before the next episode: a fresh one if that is the first of a trial."""
        number = memory.episodes + 1
        over = number >= self.trial
        return Recall(jnp.where(over, 0.0, memory.state), jnp.where(over, 0, number))
