"""Who sits where, by name: players that learn, scripted ones, and ones that have learned before."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from hopplus.config import ConfigError
from hopplus.games.game import Game
from hopplus.learning.trained import Trained, named
from hopplus.players.actor import Actor
from hopplus.players.player import Player
from hopplus.players.scripted import scripted
from hopplus.players.seating import Seating
from hopplus.types import Params


@dataclass(frozen=True)
class Company:
    """A seating, and the parameters of those in it that have learned before."""

    seating: Seating
    trained: dict[str, Params]  # by the player's name, one set

    def init(self, key: jax.Array) -> tuple[Params, ...]:
        """As `Seating.init`, with what the trained players have learned in its place."""
        fresh = self.seating.init(key)
        return tuple(
            self._stacked(player, len(seats)) if player.name in self.trained else params
            for (player, seats), params in zip(self.seating.groups, fresh, strict=True)
        )

    def _stacked(self, player: Player, seats: int) -> Params:
        return jax.tree.map(lambda leaf: jnp.stack([leaf] * seats), self.trained[player.name])


def make_company(
    names: list[str],
    game: Game,
    known: dict[str, Trained] | None = None,
    learner: Actor | None = None,
) -> Company:
    """Seat players by name: `learn`, one of the `known`, or a scripted one."""
    known = known or {}
    players: list[Player] = []
    for name in names:
        if name == "learn" and learner:
            players.append(learner)
        elif name in known:
            players.append(fitting(known[name], name, game).actor)
        else:
            players.append(scripted(name, game))
    trained = {name: known[name].params for name in names if name in known}
    return Company(Seating(tuple(players)), trained)


def fitting(trained: Trained, name: str, game: Game) -> Trained:
    """The player, if it can read this game's views."""
    if trained.actor.shape != game.shape or trained.actor.actions != len(game.action_names):
        raise ConfigError(
            f"player {name!r} has learned on boards of {trained.actor.shape} and cannot sit at one"
            f" of {game.shape}"
        )
    return named(trained, name, greedy=trained.actor.greedy)
