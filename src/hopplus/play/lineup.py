"""Who sits where, by name: players that learn, scripted ones, and ones that have learned before."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp

from hopplus.config import MIXED, ConfigError, SearchConfig
from hopplus.games.game import Game
from hopplus.play.seating import Seating, Sitter, options
from hopplus.play.trained import Trained, named
from hopplus.players.mixture import Mixture
from hopplus.players.player import Player
from hopplus.players.scripted import scripted
from hopplus.types import Params


@dataclass(frozen=True)
class Lineup:
    """A seating, and the parameters of those in it that have learned before."""

    seating: Seating
    trained: dict[str, Params]  # by the player's name, one set

    def init(self, key: jax.Array) -> tuple[Params, ...]:
        """As `Seating.init`, with what the trained players have learned in its place."""
        fresh = self.seating.init(key, lambda player: player.name not in self.trained)
        return tuple(
            self._known(player, params, 1 if player.shares_params else len(seats))
            for (player, seats), params in zip(self.seating.groups, fresh, strict=True)
        )

    def _known(self, player: Sitter, fresh: Params, seats: int) -> Params:
        if isinstance(player, Mixture):
            pairs = zip(player.players, player.unpack(fresh, 1), strict=True)
            return player.pack([self._known(one, params, seats) for one, params in pairs], 1)
        if player.name not in self.trained:
            return fresh
        return _repeated(self.trained[player.name], seats)


@partial(jax.jit, static_argnums=1)  # one program, not one for every shape
def _repeated(params: Params, seats: int) -> Params:
    return jax.tree.map(lambda leaf: jnp.stack([leaf] * seats), params)


def make_lineup(
    names: list[str],
    game: Game,
    known: dict[str, Trained] | None = None,
    newcomer: Player | None = None,
    search: SearchConfig | None = None,
    trial: int = 1,
    regulars: bool = False,
) -> Lineup:
    """Seat players by name: the newcomer (who learns, or a person), one of the `known`, a scripted
    one, or `stag|hare`, who stays for a trial of so many episodes; the same one for every trial if
    these are `regulars`.

    The known ones look ahead before they act as they have learned to, or as `search` says.
    """
    known = known or {}

    def player(name: str) -> Player:
        if newcomer and name == newcomer.name:
            return newcomer
        if name in known:
            return fitting(known[name], name, game).playing(game, search)
        return scripted(name, game)

    def sitter(name: str) -> Sitter:
        if MIXED in name:
            # Nobody of it learns, so that all its seats have the same parameters.
            return Mixture(tuple(player(one) for one in options(name)), shares_params=True)
        return player(name)

    trained = {one: known[one].params for name in names for one in options(name) if one in known}
    return Lineup(Seating(tuple(sitter(name) for name in names), trial, regulars), trained)


def fitting(trained: Trained, name: str, game: Game) -> Trained:
    """The player, if it can read this game's views."""
    if trained.actor.shape != game.shape or trained.actor.actions != len(game.action_names):
        raise ConfigError(
            f"player {name!r} has learned on boards of {trained.actor.shape} and cannot sit at one"
            f" of {game.shape}"
        )
    return named(trained, name, greedy=trained.actor.greedy)
