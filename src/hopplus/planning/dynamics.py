"""The imagined joint step: one seat, others who act as they are thought to, and a world."""

from dataclasses import replace
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.game import Game, views
from hopplus.games.grid import STAY
from hopplus.models.world import World, imagined
from hopplus.types import State, View

Embedding = Any  # a state as a world keeps it: any pytree of arrays


class Observation(eqx.Module):
    """A state as one seat imagines it; seats run own first."""

    view: View
    legal: jax.Array  # [N, A] bool, everyone's


class Transition(eqx.Module):
    """What an imagined step brought."""

    reward: jax.Array  # [N] float32
    ended: jax.Array  # [] bool, the seat is gone or the episode over
    over: jax.Array  # [] bool, the episode is over


class Chance(eqx.Module):
    """What is left to chance in an imagined step."""

    others: jax.Array  # [N - 1] float32 from 0 to 1, by which the others' acts are drawn
    world: jax.Array  # [] key, by which the world draws what comes of the acts


def draw_chance(key: jax.Array, shape: tuple[int, ...], others: int) -> Chance:
    """[*shape] of them."""
    # The numbers use up a key's first draws; what is folded in is far behind these.
    worlds = jax.random.split(jax.random.fold_in(key, 2**31), shape)
    return Chance(jax.random.uniform(key, (*shape, others)), worlds)


class Dynamics(Protocol):
    """Where one seat imagines: a world, learned or true. Seats run own first in all of it."""

    def enter(self, observation: Observation) -> Embedding:
        """The embedding of an observation."""

    def observation(self, embedding: Embedding) -> Observation:
        """What is to be seen in a place."""

    def simulate(
        self, embedding: Embedding, joint: jax.Array, key: jax.Array
    ) -> tuple[Embedding, Transition]:
        """The next place after a joint action [N]: the likeliest where a world is learned, and what
        comes back by chance as `key` draws it; one that it draws where the world is true."""


class LearnedDynamics(eqx.Module):
    """A world as a model of it has learned it; a place is what is to be seen there."""

    world: World
    horizon: int = eqx.field(static=True)
    sees_all: bool = eqx.field(static=True, default=True)  # views show the whole board

    def enter(self, observation: Observation) -> Observation:
        return observation

    def observation(self, embedding: Observation) -> Observation:
        return embedding

    def simulate(
        self, embedding: Observation, joint: jax.Array, key: jax.Array
    ) -> tuple[Observation, Transition]:
        view, prediction, gone = imagined(self.world, embedding.view, joint, self.horizon)
        view = replace(view, planes=self.world.bring_back(embedding.view.planes, view.planes, key))
        if not self.sees_all:  # out of sight is not gone: who has left can do nothing but stay
            there = embedding.legal.sum(axis=1) > 1
            view = replace(view, last_actions=jnp.where(there, joint, -1))
        legal = (prediction.legal > 0.5).at[:, STAY].set(True)  # staying always is
        over = prediction.done > 0.5
        transition = Transition(reward=prediction.reward, ended=gone[0] | over, over=over)
        return Observation(view, legal), transition


class TrueDynamics(eqx.Module):
    """The rules themselves, applied to what the seat sees: nothing else is known of the state."""

    game: Game = eqx.field(static=True)

    def enter(self, observation: Observation) -> State:
        return self.game.seen(observation.view)

    def observation(self, embedding: State) -> Observation:
        return Observation(self.game.view(embedding, 0), views(self.game, embedding).legal)

    def simulate(
        self, embedding: State, joint: jax.Array, key: jax.Array
    ) -> tuple[State, Transition]:
        after, outcome = self.game.step(embedding, joint, key)
        ended = ~self.game.present(after)[0] | outcome.done
        return after, Transition(outcome.reward, ended, outcome.done)


def observe(game: Game, view: View) -> Observation:
    """The observation of a seat; what others may do follows from what it sees. Whoever is out of
    sight may do anything, unless the last actions tell that it has left."""
    legal = views(game, game.seen(view)).legal
    if not game.sees_all:
        unseen = view.planes[..., : game.seats].sum(axis=(0, 1)) == 0
        there = (view.last_actions >= 0) | (view.time == 0)
        legal = (legal | (unseen & there)[:, None]).at[0].set(view.legal)
    return Observation(view, legal)
