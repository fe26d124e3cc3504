"""What goes on in a learned player at one step, for people who want to see it."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.models.opponent import others_logits
from hopplus.planning.root import averaged, principal_variation
from hopplus.planning.search import Found, SearchResult
from hopplus.play.seating import Sitter
from hopplus.players.actor import Actor
from hopplus.players.mixture import Mixture
from hopplus.players.parameters import PlayerParams
from hopplus.players.planner import Planner, unnamed
from hopplus.players.player import Around, Player
from hopplus.types import Act, Memory, View

PV_STEPS = 6  # steps of a search's most visited line that are told


class Ahead(NamedTuple):
    """What a search came to. H steps of its most visited line; seats run own first."""

    visits: Any  # [A] float32, the share of its looks that went to each action
    cells: Any  # [H, N] where everyone is after each step; -1 gone
    there: Any  # [H] bool, the line is so long


def actor_of(player: Player) -> Actor | None:
    """The actor of a learned player; None for a player that has learned nothing."""
    match player:
        case Actor():
            return player
        case Planner():
            return player.actor
        case Telling():
            return player.planner.actor
    return None


def predicts(actor: Actor, player_params: PlayerParams) -> bool:
    """Whether a player says what the others will do."""
    foretold = actor.context.foretold(jnp.zeros(actor.context.size))
    return player_params.opponents is not None or foretold is not None


def predict_others(
    actor: Actor, player_params: PlayerParams, view: View, legal: jax.Array, inferred: jax.Array
) -> jax.Array:
    """[N - 1, A] how likely each other is to act so, as the player's context says, or else by its
    models of them; from the view, everyone's legal actions [N, A], own first, and what is inferred
    [J].

    Where the context is chances of their goals, over all of these.
    """
    if (foretold := actor.context.foretold(inferred)) is not None:
        return foretold
    assert player_params.opponents is not None
    goals, models = actor.context.about_others(inferred), player_params.opponents
    if not actor.context.gives_chances:
        return jnp.exp(others_logits(models, view, legal, goals))

    def probabilities_for(goal: jax.Array) -> jax.Array:
        return jnp.exp(others_logits(models, view, legal, jnp.tile(goal, (len(goals), 1))))

    by_goal = jax.vmap(probabilities_for)(jnp.eye(goals.shape[1]))  # [K, N - 1, A]
    return jnp.einsum("kja,jk->ja", by_goal, goals, precision="highest")


def looked_ahead(planner: Planner, player_params: PlayerParams, grown: SearchResult) -> Ahead:
    """What trees [trees, ...] came to together, and the line of the one that looked at the best
    action most."""
    found, seats = averaged(grown), planner.game.seats
    visits = found.visits / found.visits.sum()
    if not isinstance(grown, Found):  # one step, and no tree
        return Ahead(visits, jnp.full((PV_STEPS, seats), -1), jnp.zeros(PV_STEPS, bool))
    best = found.visits.argmax()
    most = grown.visits[:, best].argmax()
    tree = jax.tree.map(lambda leaf: leaf[most], grown.tree)
    nodes, there = principal_variation(tree, best, planner.config.outcomes, PV_STEPS)
    embeddings = jax.tree.map(lambda leaf: leaf[nodes], tree.nodes.embedding)
    dynamics = planner.dynamics(player_params)
    planes = jax.vmap(lambda embedding: dynamics.observation(embedding).view.planes)(embeddings)
    by_seat = planes[..., :seats].reshape(PV_STEPS, -1, seats)
    cells = jnp.where(by_seat.any(axis=1), by_seat.argmax(axis=1), -1)
    return Ahead(visits, cells, there)


@dataclass(frozen=True)
class Telling(Around):
    """A planner that acts as it does and tells what its search came to, in its acts' extras."""

    planner: Planner

    @property
    def inner(self) -> Planner:
        return self.planner

    def act(
        self, params: PlayerParams, memory: Memory, view: View, key: jax.Array
    ) -> tuple[Memory, Act]:
        memory, act, grown = self.planner.decide(params, memory, view, key)
        ahead = looked_ahead(self.planner, params, grown)
        parts = (ahead.visits, ahead.cells.reshape(-1), ahead.there)
        extras = jnp.concatenate([part.astype(jnp.float32) for part in parts])
        return memory, replace(act, extras=extras)

    def told(self, extras: np.ndarray) -> Ahead:
        """What the [..., E] extras of its acts tell of its searches [...], on the host."""
        game = self.planner.game
        sizes = np.cumsum([len(game.action_names), PV_STEPS * game.seats, PV_STEPS])
        visits, cells, there, _ = np.split(extras, sizes, axis=-1)
        cells = cells.reshape(*cells.shape[:-1], PV_STEPS, game.seats).astype(int)
        return Ahead(visits, cells, there > 0)


def telling(player: Sitter) -> Sitter:
    """The same player without its name, or whoever is in a mixture; if it searches, it tells."""
    if isinstance(player, Mixture):
        return replace(player, players=tuple(_telling(one) for one in player.players))
    return _telling(player)


def _telling(player: Player) -> Player:
    plain = unnamed(player)
    return Telling(plain) if isinstance(plain, Planner) else plain
