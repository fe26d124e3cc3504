"""What was just played, as the parts beside the policy read and keep it."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, views
from hopplus.learning.ring import capacity, empty_ring
from hopplus.models.opponent import others_views
from hopplus.types import Memory, Outcome, Sample, State, Trajectory, View


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
    )


def goals_taken(outcome: Outcome, seats: np.ndarray, none: bool = False) -> jax.Array:
    """[T, B, n, (N - 1) * K] what each other of the seats is after, as it turned out: one-hot the
    kind that it takes next in the episode, in the seats' order; zeros if that was not seen. With
    `none`, a further kind is that it was seen to take nothing."""

    def step(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        took, done = now
        later = jnp.where(done[:, None, None], nothing, later)
        after = jnp.where(took.any(axis=-1, keepdims=True), took, later)
        return after, after

    took = (outcome.took > 0).astype(jnp.float32)  # [T, B, N, K]
    took = jnp.pad(took, ((0, 0), (0, 0), (0, 0), (0, none)))
    nothing = jax.nn.one_hot(took.shape[-1] - 1, took.shape[-1]) * none
    found = jax.lax.scan(step, jnp.zeros_like(took[0]), (took, outcome.done), reverse=True)[1]
    count = found.shape[2]
    others = (seats[:, None] + np.arange(1, count)) % count  # [n, N - 1]
    return found[:, :, others].reshape(*found.shape[:2], len(seats), -1)


def empty_steps(rows: Moments, buffer: int) -> Moments:
    """An empty ring with room for `buffer` steps, for rows [M, ...] an update."""
    return empty_ring(rows, capacity(buffer, len(rows.joint)))


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
