"""What was just played, as the parts beside the policy read and keep it."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, views
from hopplus.learning.ring import capacity, empty_ring
from hopplus.models.opponent import others_views
from hopplus.types import Memory, Sample, State, Trajectory, View


class Moments(eqx.Module):
    """Steps of play, [..., ...]; what came of them follows from the rules.

    `n` are the seats that learn; parts leave out (None) what they do not need.
    """

    state: State  # before the step
    joint: jax.Array  # [N] int32; anything for a seat that is not present
    reward: jax.Array | None = None  # [N] float32
    done: jax.Array | None = None  # [] bool, the episode ended with the step
    inferred: jax.Array | None = None  # [n, J] float32, what each took the others to be after or,
    # where goals are what can be taken, what they turned out to be after
    memory: Memory = None  # [n, ...] of each before the step
    begins: jax.Array | None = None  # [] bool, it is the first step of an episode
    episode: jax.Array | None = None  # [] int32, the episode's number in its trial


def moments_of(trajectory: Trajectory, group: int, seats: np.ndarray, size: int) -> Moments:
    """The steps [T, B, ...] of a trajectory; `group` of its players learns, in these seats, and
    infers goals of that size (others at the board may infer larger ones)."""
    return Moments(
        state=trajectory.state,
        joint=trajectory.act.action,
        reward=trajectory.outcome.reward,
        done=trajectory.outcome.done,
        inferred=trajectory.act.inferred[:, :, seats, :size],
        memory=trajectory.memory[group],
        begins=trajectory.begins,
        episode=trajectory.episode,
    )


def empty_steps(rows: Moments, buffer: int) -> Moments:
    """An empty ring with room for `buffer` steps, for rows [M, ...] an update."""
    return empty_ring(rows, capacity(buffer, len(rows.joint)))


def steps_seen(game: Game, ring: Moments, seats: np.ndarray) -> jax.Array:
    """[sets] int32, the steps of a ring at which the seats [sets, k] of each set were present."""
    present = jax.vmap(game.present)(ring.state)
    return present[:, seats].sum(axis=(0, 2))


def own_sample(game: Game, moment: Moments, seat: jax.Array) -> Sample:
    """What the seat itself learns of a step."""
    order = (seat + jnp.arange(game.seats)) % game.seats
    after, outcome = game.step(moment.state, moment.joint)
    view = game.view(moment.state, seat)
    return Sample(
        view=view,
        present=game.present(moment.state)[order],
        joint=moment.joint[order],
        reward=outcome.reward[order],
        after=game.view(after, seat),
        present_after=game.present(after)[order],
        legal_after=views(game, after).legal[order],
        done=outcome.done,
        later=view,
        caught=jnp.int32(len(game.targets)),
        goal=jnp.zeros(0),
    )


def other_samples(game: Game, moment: Moments, seat: jax.Array, goals: jax.Array) -> Sample:
    """[N - 1] what the seat learns of what each other does, whom it takes to have goals
    [N - 1, G]; the others' views are the seat's own, turned."""
    own = own_sample(game, moment, seat)
    legal = views(game, moment.state).legal[(seat + jnp.arange(game.seats)) % game.seats]
    seen = others_views(game.view(moment.state, seat), legal)

    def of_other(place: jax.Array, view: View, goal: jax.Array) -> Sample:
        # What a model of another does not look at stays the seat's own.
        return replace(
            own,
            view=view,
            present=jnp.roll(own.present, -place),
            joint=jnp.roll(own.joint, -place),
            goal=goal,
        )

    return jax.vmap(of_other)(jnp.arange(1, game.seats), seen, goals)
