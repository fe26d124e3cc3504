"""What was just played, as the parts beside the policy read and keep it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, repeat_step, views
from hopplus.learning.ring import capacity, empty_ring
from hopplus.models.opponent import others_views
from hopplus.types import Memory, Outcome, Sample, State, Trajectory, View


class Moments(eqx.Module):
    """Steps of play, [..., ...]; what came of them follows from the rules and the step's key.

    `n` are the seats that learn; parts leave out (None) what they do not need.
    """

    state: State  # before the step
    joint: jax.Array  # [N] int32; anything for a seat that is not present
    reward: jax.Array | None = None  # [N] float32
    done: jax.Array | None = None  # [] bool, the episode ended with the step
    inferred: jax.Array | None = None  # [n, J] float32, what each took the others to be after or,
    # where goals are what can be taken, what they turned out to be after
    memory: Memory = None  # [n, ...] of each before the step
    key: jax.Array | None = None  # [2] uint32, the data of the step's key


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
        key=trajectory.key,
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
    assert moment.key is not None
    order = (seat + jnp.arange(game.seats)) % game.seats
    after, outcome = repeat_step(game, moment.state, moment.joint, moment.key)
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
    order = (seat + jnp.arange(game.seats)) % game.seats
    own, legal = game.view(moment.state, seat), views(game, moment.state).legal[order]
    present, joint = game.present(moment.state)[order], moment.joint[order]

    def of_other(place: jax.Array, view: View, goal: jax.Array) -> Sample:
        # A model of another looks at the view before the step alone: what comes of it is not
        # computed, and in its place stands what was.
        return Sample(
            view=view,
            present=jnp.roll(present, -place),
            joint=jnp.roll(joint, -place),
            reward=jnp.zeros(game.seats),
            after=own,
            present_after=present,
            legal_after=legal,
            done=jnp.bool_(False),
            later=own,
            caught=jnp.int32(len(game.targets)),
            goal=goal,
        )

    return jax.vmap(of_other)(jnp.arange(1, game.seats), others_views(own, legal), goals)
