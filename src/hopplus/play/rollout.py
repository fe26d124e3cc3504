"""Play: a game and its seated players, step by step, into a trajectory.

An episode is one game from its start to its end; a trial is as many episodes as the seating says,
with the same players throughout. Who sits there and what is remembered begin anew with a trial, in
`new_trial` and nowhere else.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from hopplus.config import FOR_EVER
from hopplus.games.game import Game, repeat_step, views
from hopplus.play.seating import Seating
from hopplus.types import Memory, Params, State, Trajectory, View


class Play(eqx.Module):
    """A game in flight; its key is its own, so other games change nothing."""

    state: State
    view: View  # [N, ...] what every seat sees now
    memory: tuple[Memory, ...]
    key: jax.Array
    choice: jax.Array  # [N] int32, who of each seat's possible players sits there in this trial
    episode: jax.Array  # [] int32, number of the episode in its trial
    begins: jax.Array  # [] bool, the next step is the episode's first
    absent: jax.Array | None = None  # [] int32, whom of the mixtures nobody ever meets, if anyone


def start(
    game: Game,
    seating: Seating,
    key: jax.Array,
    choice: jax.Array | None = None,
    absent: jax.Array | None = None,
) -> Play:
    """Set up one game, with those of that choice [N] seated, or drawn ones; the one of number
    `absent` [] is never drawn."""
    key_game, key = jax.random.split(key)
    return begin(game, seating, game.init(key_game), key, choice, absent)


def begin(
    game: Game,
    seating: Seating,
    state: State,
    key: jax.Array,
    choice: jax.Array | None = None,
    absent: jax.Array | None = None,
) -> Play:
    """Set up one game from a given state."""
    choice, memory = new_trial(game, seating, key, choice, absent)
    return Play(
        state=state,
        view=views(game, state),
        memory=memory,
        key=key,
        choice=choice,
        episode=jnp.int32(0),
        begins=jnp.bool_(True),
        absent=absent,
    )


def new_trial(
    game: Game,
    seating: Seating,
    key: jax.Array,
    choice: jax.Array | None = None,
    absent: jax.Array | None = None,
) -> tuple[jax.Array, tuple[Memory, ...]]:
    """Who sits in each seat [N], drawn with the key of the step to come unless chosen, and the
    memories they begin a trial with."""
    if choice is None:
        # Without mixtures there is nothing to draw, and keys are dear: see `step_keys`.
        none = jnp.zeros(game.seats, jnp.int32)
        choice = seating.draw(step_keys(game, key)[2], absent) if seating.mixed else none
    return choice, seating.start(choice)


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
    game: Game, seating: Seating, params: tuple[Params, ...], plays: Play
) -> tuple[Play, Trajectory]:
    """One step of games [B]; where an episode ends, the next one is set up at once."""

    def act(play: Play) -> tuple[Play, jax.Array, Trajectory]:
        key, key_game, keys_act, key_step = step_keys(game, play.key)
        with jax.named_scope("choose"):
            memory, act = seating.act(params, play.memory, play.view, keys_act, play.choice)
        after, outcome = game.step(play.state, act.action, key_step)
        step = Trajectory(
            state=play.state,
            present=game.present(play.state),
            memory=play.memory,
            act=act,
            outcome=outcome,
            key=jax.random.key_data(key_step),  # plain numbers, which buffers and the host can hold
            choice=play.choice,
            episode=play.episode,
            begins=play.begins,
        )
        played = replace(play, memory=memory, key=key, state=after, begins=outcome.done)
        return played, key_game, step

    def renew(play: Play, key_game: jax.Array) -> Play:
        memory, choice, episode = _next_episode(game, seating, play)
        fresh = replace(
            play, state=game.init(key_game), memory=memory, choice=choice, episode=episode
        )
        return replace(_where(play.begins, fresh, play), key=play.key)

    played, keys_game, steps = jax.vmap(act)(plays)
    if jax.default_backend() == "cpu":
        # A new board is dear, and in games whose episodes are all as long they end together. On a
        # GPU it costs less than to ask.
        over = _any(played.begins)
        played = jax.lax.cond(over, jax.vmap(renew), lambda plays, _: plays, played, keys_game)
    else:
        played = jax.vmap(renew)(played, keys_game)
    return replace(played, view=jax.vmap(partial(views, game))(played.state)), steps


def _next_episode(
    game: Game, seating: Seating, play: Play
) -> tuple[tuple[Memory, ...], jax.Array, jax.Array]:
    """The memories, the choice and the episode's number after a play at its episode's end: of the
    same trial, or of a new one."""

    def fresh() -> tuple[tuple[Memory, ...], jax.Array, jax.Array]:
        choice, memory = new_trial(
            game, seating, play.key, play.choice if seating.regulars else None, play.absent
        )
        return memory, choice, jnp.int32(0)

    # Known beforehand, so that who needs no drawing, or no look at the end, does not pay for it.
    if seating.trial == 1:
        return fresh()
    number = play.episode + 1
    kept = seating.carry(play.memory, play.choice, lambda: views(game, play.state))
    on = (kept, play.choice, number)
    found: tuple[tuple[Memory, ...], jax.Array, jax.Array] = (
        on if seating.trial >= FOR_EVER else _where(number >= seating.trial, fresh(), on)
    )
    return found


def rollout(
    game: Game, seating: Seating, params: tuple[Params, ...], plays: Play, steps: int
) -> tuple[Play, Trajectory]:
    """Advance games in flight [B, ...] by `steps`; the games after, and the trajectory [T, B]."""

    def body(plays: Play, _: None) -> tuple[Play, Trajectory]:
        return advance(game, seating, params, plays)

    return jax.lax.scan(body, plays, None, length=steps)


def states_after(game: Game, trajectory: Trajectory) -> State:
    """[T, B, ...] the states after the steps of a trajectory; those behind an episode's end are not
    in it, as the next episode begins there. Only what is asked for is computed again."""
    played = (trajectory.state, trajectory.act.action, trajectory.key)
    return jax.vmap(jax.vmap(partial(repeat_step, game)))(*played)[0]


@custom_vmap
def _any(flags: jax.Array) -> jax.Array:
    """[] bool, for all that runs side by side together: of seeds, too, none waits for another."""
    return flags.any()


@_any.def_vmap
def _any_of_all(size: int, batched: list[bool], flags: jax.Array) -> tuple[jax.Array, bool]:
    return _any(flags.any(axis=0)), False


def _where(condition: jax.Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
