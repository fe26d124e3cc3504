"""Goals seen from later: which of the views that the others came to tells what they were after?"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import GoalLearnerConfig
from hopplus.games.game import Game, views
from hopplus.learning.auxiliary.transitions import Transitions, present_in
from hopplus.models.goal import GoalCode, selected
from hopplus.models.history import recalled
from hopplus.models.nets import ActorCritic
from hopplus.models.opponent import others_views
from hopplus.players.context.goals import GoalsContext
from hopplus.players.parameters import PlayerParams
from hopplus.types import State, View


class Segment(eqx.Module):
    """One game's steps in a row, [T, ...]; episodes may end within."""

    state: State  # before each step
    joint: jax.Array  # [T, N] int32
    done: jax.Array  # [T] bool, the episode ended with the step
    fresh: jax.Array  # [T] bool, memories begin anew
    memory: jax.Array  # [n, ...] of each learning seat before the first step


class Seen(eqx.Module):
    """A segment as one seat saw it."""

    view: View  # [T, ...]
    present: jax.Array  # [T, N] bool, own first
    others: View  # [T, N - 1, ...] what the others saw, as the seat takes it
    joint: jax.Array  # [T, N] int32, own first
    fresh: jax.Array  # [T] bool, as in the segment
    memory: jax.Array  # [...] before the first step
    ahead: jax.Array  # [T, N] int32, for how many steps each goes on being present, own first


class Target(eqx.Module):
    """What hindsight says of a segment."""

    code: GoalCode  # [T, J, G]
    known: jax.Array  # [T, J] bool, whether there was any view to select
    inferred: jax.Array  # [T, J, G] what was inferred without hindsight
    before: jax.Array  # [T, ...] memory before each view
    after: jax.Array  # [T, ...] memory after each view


def segments_of(played: Transitions, across: bool) -> Segment:
    """[B, ...] the games of play [T, B, ...]; memories go on across the episodes of a trial, or
    not."""
    assert played.begins is not None
    assert played.episode is not None
    fresh = played.begins & (played.episode == 0) if across else played.begins
    state, joint, done, fresh = jax.tree.map(
        lambda leaf: jnp.moveaxis(leaf, 1, 0), (played.state, played.joint, played.done, fresh)
    )
    return Segment(state, joint, done, fresh, played.memory[0])


def seen_by(game: Game, segment: Segment, seat: jax.Array, own: jax.Array) -> Seen:
    """A segment as a seat saw it; `own` is its number among those who learn."""
    order = (seat + jnp.arange(game.seats)) % game.seats
    state = segment.state
    present = present_in(game, segment)[:, order]

    def back(later: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        goes_on, present = now
        ahead = jnp.where(goes_on, later, 0)
        return jnp.where(present, ahead + 1, 0), ahead

    none = jnp.zeros(game.seats, jnp.int32)
    goes_on = jnp.broadcast_to(~segment.done[:, None], present.shape)
    _, ahead = jax.lax.scan(back, none, (goes_on, present), reverse=True)
    view = jax.vmap(game.view, in_axes=(0, None))(state, seat)
    legal = jax.vmap(lambda state: views(game, state).legal)(state)[:, order]
    return Seen(
        view=view,
        others=jax.vmap(others_views)(view, legal),
        present=present,
        joint=segment.joint[:, order],
        fresh=segment.fresh,
        memory=segment.memory[own],
        ahead=ahead,
    )


def select_goals(
    part: GoalsContext,
    config: GoalLearnerConfig,
    player_params: PlayerParams,
    seen: Seen,
    key: jax.Array,
) -> Target:
    """The goals that the others of a segment turn out to have had, as far as it tells."""
    assert player_params.prior is not None
    c, each = config, config.about == "each"
    before, after = recalled(player_params.context.history, seen.memory, seen.view, seen.fresh)
    codes = jax.vmap(part.codes, in_axes=(None, 0))(player_params.context, after)
    inferred = codes.mean  # [T, J, G]
    steps, others = len(seen.fresh), part.seats - 1
    later = jnp.arange(steps)[:, None] + jnp.arange(1, c.horizon + 1)  # [T, H]
    valid = jnp.arange(1, c.horizon + 1)[None, :, None] <= seen.ahead[:, None, 1:]
    over_others = jax.vmap(part.goal.code, in_axes=(None, 0))
    candidates = jax.vmap(over_others, in_axes=(None, 0))(player_params.prior, seen.others)
    windows = jax.tree.map(lambda leaf: leaf[jnp.minimum(later, steps - 1)], candidates)
    if c.selector in ("optimistic", "conservative"):
        goals = jax.lax.stop_gradient(part.goal.settled(windows))  # [T, H, others, G]
        values = jax.vmap(partial(_values, player_params.policy, each))
        scores = values(seen.view, inferred, goals)
        scores = scores if c.selector == "optimistic" else -scores
    elif c.selector == "last":
        ahead = jnp.arange(c.horizon, dtype=jnp.float32)
        scores = jnp.broadcast_to(ahead[:, None], (steps, c.horizon, others))
    else:
        scores = jax.random.uniform(key, (steps, c.horizon, others))
    code, known = jax.vmap(partial(selected, each=each))(scores, valid, windows)
    return Target(jax.lax.stop_gradient(code), known, inferred, before, after)


def _values(
    policy: ActorCritic, each: bool, view: View, inferred: jax.Array, goals: jax.Array
) -> jax.Array:
    """[H, others] what a view would be worth if another had one of the goals [H, others, G], and
    the rest of them [J, G] those inferred."""

    def suppose(goal: jax.Array, place: jax.Array) -> jax.Array:
        return (inferred.at[place].set(goal) if each else goal).reshape(-1)

    places = jnp.arange(goals.shape[1])
    supposed = jax.vmap(jax.vmap(suppose), in_axes=(0, None))(goals, places)
    values = policy.of_many_goals(view, jax.lax.collapse(supposed, 0, 2))[1]
    return values.reshape(goals.shape[:2])
