"""A player of one's own: goes for what most others took in the trial's last episode."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.games.game import Game
from hopplus.players.player import Plain, Player
from hopplus.players.scripted import scripted
from hopplus.types import Act, View


@dataclass(frozen=True)
class Follower(Plain):
    """Begins a trial with the first kind of thing."""

    seekers: tuple[Player, ...]  # [K] one for each kind
    takes: tuple[int, ...]  # [K] the action that takes each
    name: str = "follower"
    carries = True  # from episode to episode of a trial

    def start(self) -> dict[str, jax.Array]:
        return {"wanted": jnp.int32(0), "taken": jnp.zeros(len(self.takes))}

    def seen(self, memory: Any, view: View) -> jax.Array:
        """[K] how many others have taken each kind in this episode, with their last actions."""
        took = view.last_actions[1:, None] == jnp.array(self.takes)
        return memory["taken"] + took.sum(axis=0)

    def carry(self, memory: Any, view: View) -> dict[str, jax.Array]:
        taken = self.seen(memory, view)
        wanted = jnp.where(taken.any(), taken.argmax(), memory["wanted"])
        return self.start() | {"wanted": wanted.astype(jnp.int32)}

    def act(self, params: Any, memory: Any, view: View, key: jax.Array) -> tuple[Any, Act]:
        acts = [seeker.act((), (), view, key)[1] for seeker in self.seekers]
        act: Act = jax.tree.map(lambda *leaves: jnp.stack(leaves)[memory["wanted"]], *acts)
        return memory | {"taken": self.seen(memory, view)}, act


def make_player(game: Game) -> Follower:
    taken = {kind: one.action for kind, one in game.targets.items() if one.action is not None}
    return Follower(tuple(scripted(kind, game) for kind in taken), tuple(taken.values()))
