"""The imagined joint step: one seat, others who act as they are thought to, and a world."""

from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.game import Game, views
from hopplus.games.grid import STAY
from hopplus.models.chance import draw
from hopplus.models.opponent import Predict
from hopplus.models.world import World, imagined
from hopplus.types import State, View

Place = Any  # a moment as a world keeps it: any pytree of arrays


class Scene(eqx.Module):
    """A moment as one seat imagines it; seats run own first."""

    view: View
    legal: jax.Array  # [N, A] bool, everyone's


class Turn(eqx.Module):
    """What an imagined step brought."""

    reward: jax.Array  # [N] float32
    ended: jax.Array  # [] bool, the seat is gone or the episode over


class Chance(eqx.Module):
    """What is left to chance in an imagined step."""

    others: jax.Array  # [N - 1] float32 from 0 to 1, by which the others' acts are drawn
    world: jax.Array  # [] key, by which the world draws what comes of the acts


def draw_chance(key: jax.Array, shape: tuple[int, ...], others: int) -> Chance:
    """[*shape] of them."""
    # The numbers use up a key's first draws; what is folded in is far behind these.
    worlds = jax.random.split(jax.random.fold_in(key, 2**31), shape)
    return Chance(jax.random.uniform(key, (*shape, others)), worlds)


class Stage(Protocol):
    """Where one seat imagines: a world, learned or true. Seats run own first in all of it."""

    def enter(self, scene: Scene) -> Place:
        """The place that a scene shows."""
        ...

    def scene(self, place: Place) -> Scene:
        """What is to be seen in a place."""
        ...

    def simulate(self, place: Place, joint: jax.Array, key: jax.Array) -> tuple[Place, Turn]:
        """The next place after a joint action [N]: the likeliest where a world is learned, and one
        that `key` draws where it is true and leaves something to chance."""
        ...


class LearnedStage(eqx.Module):
    """A world as a model of it has learned it; a place is what is to be seen there."""

    world: World
    horizon: int = eqx.field(static=True)

    def enter(self, scene: Scene) -> Scene:
        return scene

    def scene(self, place: Scene) -> Scene:
        return place

    def simulate(self, place: Scene, joint: jax.Array, key: jax.Array) -> tuple[Scene, Turn]:
        view, prediction, gone = imagined(self.world, place.view, joint, self.horizon)
        legal = (prediction.legal > 0.5).at[:, STAY].set(True)  # staying always is
        turn = Turn(reward=prediction.reward, ended=gone[0] | (prediction.done > 0.5))
        return Scene(view, legal), turn


class TrueStage(eqx.Module):
    """The rules themselves, applied to what the seat sees: nothing else is known of the state."""

    game: Game = eqx.field(static=True)

    def enter(self, scene: Scene) -> State:
        return self.game.seen(scene.view)

    def scene(self, place: State) -> Scene:
        return Scene(self.game.view(place, 0), views(self.game, place).legal)

    def simulate(self, place: State, joint: jax.Array, key: jax.Array) -> tuple[State, Turn]:
        after, outcome = self.game.step(place, joint, key)
        return after, Turn(outcome.reward, ~self.game.present(after)[0] | outcome.done)


def scene_of(game: Game, view: View) -> Scene:
    """The scene of a seat that sees the whole board; what others may do follows from that."""
    return Scene(view, views(game, game.seen(view)).legal)


def others_act(predict: Predict, scene: Scene, goals: jax.Array, key: jax.Array) -> jax.Array:
    """[N - 1] int32 actions of the others, drawn from predictions of them that are told goals
    [N - 1, G]."""
    return draw(key, jnp.exp(predict(scene.view, scene.legal, goals)))
