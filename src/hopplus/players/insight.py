"""What goes on in a learned player at one moment, for people who want to see it."""

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.models.opponent import others_logits
from hopplus.planning.line import most_visited
from hopplus.planning.root import averaged
from hopplus.planning.search import Found
from hopplus.players.actor import Actor
from hopplus.players.mind import Mind
from hopplus.players.planner import Planner
from hopplus.players.player import Player
from hopplus.types import Memory, View


class Ahead(eqx.Module):
    """What a search came to. H steps of its most visited line; seats run own first."""

    visits: jax.Array  # [A] float32, the share of its looks that went to each action
    cells: jax.Array  # [H, N] int32 where everyone is after each step; -1 gone
    there: jax.Array  # [H] bool, the line is so long


def actor_of(player: Player) -> Actor | None:
    """The actor of a learned player; None for a player that has learned nothing."""
    match player:
        case Actor():
            return player
        case Planner():
            return player.actor
    return None


def foreseen(
    actor: Actor, mind: Mind, view: View, legal: jax.Array, inferred: jax.Array
) -> jax.Array:
    """[N - 1, A] how likely each other is to act so, by the mind's models of them; from the view,
    everyone's legal actions [N, A], own first, and what is inferred [J].

    With a belief, over what is believed of their goals.
    """
    assert mind.opponents is not None
    goals, models = actor.parts.goals_about(inferred), mind.opponents
    if not actor.parts.belief:
        return jnp.exp(others_logits(models, view, legal, goals))

    def told(goal: jax.Array) -> jax.Array:
        return jnp.exp(others_logits(models, view, legal, jnp.tile(goal, (len(goals), 1))))

    by_goal = jax.vmap(told)(jnp.eye(goals.shape[1]))  # [K, N - 1, A]
    return jnp.einsum("kja,jk->ja", by_goal, goals, precision="highest")


def looked_ahead(
    planner: Planner, mind: Mind, memory: Memory, view: View, key: jax.Array, steps: int
) -> Ahead:
    """What the search came to that an act with the same key rests on, and its line so far."""
    _, _, grown = planner.look_ahead(mind, memory, view, key)
    found = averaged(grown)
    visits = found.visits / found.visits.sum()
    seats = planner.game.seats
    if not isinstance(grown, Found):  # one step, and no tree
        return Ahead(visits, jnp.full((steps, seats), -1), jnp.zeros(steps, bool))
    best = found.visits.argmax()
    most = grown.visits[:, best].argmax()  # the tree that looked at it most
    tree = jax.tree.map(lambda leaf: leaf[most], grown.tree)
    nodes, there = most_visited(tree, best, planner.config.outcomes, steps)
    places = jax.tree.map(lambda leaf: leaf[nodes], tree.nodes.place)
    stage = planner.stage(mind)
    planes = jax.vmap(lambda place: stage.scene(place).view.planes)(places)
    by_seat = planes[..., :seats].reshape(steps, -1, seats)
    cells = jnp.where(by_seat.any(axis=1), by_seat.argmax(axis=1), -1)
    return Ahead(visits, cells.astype(jnp.int32), there)
