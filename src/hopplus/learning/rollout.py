"""Play: a game and its seated players, step by step, into a trajectory."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.game import Game, repeat_step, views
from hopplus.players.seating import Seating
from hopplus.types import Memory, Params, State, Trajectory, View


class Play(eqx.Module):
    """A game in flight; its key is its own, so other games beside it change nothing."""

    state: State
    view: View  # [N, ...] what every seat sees now
    memory: tuple[Memory, ...]
    key: jax.Array


def start(game: Game, seating: Seating, key: jax.Array) -> Play:
    """Set up one game."""
    key_game, key = jax.random.split(key)
    state = game.init(key_game)
    return begin(game, seating, state, key)


def begin(game: Game, seating: Seating, state: State, key: jax.Array) -> Play:
    """Set up one game from a given state."""
    return Play(state=state, view=views(game, state), memory=seating.start(), key=key)


def step_keys(game: Game, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """From a game's key before a step: the one after it, one for a new episode, [N] for acts, and
    one for the step itself."""
    # The last is as one more of the split would be, but by itself: nothing is computed for it where
    # a game leaves nothing to chance, and games without it play as they did before there was one.
    key_step = jax.random.fold_in(key, 2 + game.seats)
    # All other keys in one go: every separate draw costs a small board dearly.
    key, key_game, *keys_act = jax.random.split(key, 2 + game.seats)
    return key, key_game, jnp.stack(keys_act), key_step


def advance(
    game: Game, seating: Seating, params: tuple[Params, ...], play: Play
) -> tuple[Play, Trajectory]:
    """One step of one game; when the episode ends, the next one is set up at once."""
    key, key_game, keys_act, key_step = step_keys(game, play.key)
    before = play.memory
    memory, act = seating.act(params, before, play.view, keys_act)
    after, outcome = game.step(play.state, act.action, key_step)
    fresh = (game.init(key_game), seating.again(memory, lambda: views(game, after)))
    state, memory = _where(outcome.done, fresh, (after, memory))
    present = game.present(play.state)
    data = jax.random.key_data(key_step)  # plain numbers, which buffers and the host can hold
    step = Trajectory(play.state, present, before, act, outcome, data)
    return Play(state=state, view=views(game, state), memory=memory, key=key), step


def rollout(
    game: Game, seating: Seating, params: tuple[Params, ...], plays: Play, steps: int
) -> tuple[Play, Trajectory]:
    """Advance games in flight [B, ...] by `steps`; the games after, and the trajectory [T, B]."""

    def body(plays: Play, _: None) -> tuple[Play, Trajectory]:
        return jax.vmap(lambda play: advance(game, seating, params, play))(plays)

    return jax.lax.scan(body, plays, None, length=steps)


def states_after(game: Game, trajectory: Trajectory) -> State:
    """[T, B, ...] the states after the steps of a trajectory; those behind an episode's end are not
    in it, as the next episode begins there. Only what is asked for is computed again."""
    played = (trajectory.state, trajectory.act.action, trajectory.key)
    return jax.vmap(jax.vmap(partial(repeat_step, game)))(*played)[0]


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
