"""The models that imagination uses, held against steps that were played; by set of parameters."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.diagnosis.subject import Laboratory
from hopplus.games.game import repeat_step
from hopplus.learning.auxiliary.learner import flat
from hopplus.models.opponent import others_logits
from hopplus.planning.dynamics import observe
from hopplus.types import Trajectory


@dataclass(frozen=True)
class WorldErrors:
    """The world that imagination uses, on steps that were played; by set."""

    exact: list[float]  # share of next views that are exactly right
    reward_error: list[float]  # mean absolute error of the own reward
    reward_slope: list[float]  # of predicted on true rewards; NaN where true ones are all the same
    reward_offset: list[float]  # how far all rewards are off, as a share of their range
    observed: list[float]  # [2] least and largest true reward, of all training
    predicted: list[float]  # [2]
    outside: float  # share of rewards predicted outside the range of true ones, with some room


def measure_world(
    laboratory: Laboratory, param_sets: Any, trajectory: Trajectory, so_far: np.ndarray
) -> WorldErrors | None:
    """Of one replica; None where nothing is imagined, or nobody was there to see it. The rewards of
    training ranged `so_far` [sets, 2] before these steps: a few of them may lack the large ones."""
    learner = laboratory.learner
    imagined_rollouts, game = learner.auxiliary.imagined_rollouts, learner.game
    if imagined_rollouts is None:
        return None
    seats = jnp.asarray(learner.auxiliary.seats[:, 0])
    played = (trajectory.state, trajectory.act.action, trajectory.key)
    states, joints, keys, rewards, present = flat(
        (*played, trajectory.outcome.reward, trajectory.present)
    )

    def of_set(
        player_params: Any, seat: jax.Array, states: Any, joints: jax.Array, keys: Any
    ) -> Any:
        dynamics = imagined_rollouts.imagination(player_params, seat).dynamics

        def one(state: Any, joint: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            order = (seat + jnp.arange(game.seats)) % game.seats
            observation = observe(game, game.view(state, seat))
            embedding, transition = dynamics.simulate(
                dynamics.enter(observation), joint[order], jax.random.key(0)
            )
            after, _ = repeat_step(game, state, joint, key)
            right = (
                dynamics.observation(embedding).view.planes == game.view(after, seat).planes
            ).all()
            return right, transition.reward[0]

        return jax.vmap(one)(states, joints, keys)

    over_sets = laboratory.compiled("world", jax.vmap(of_set, in_axes=(0, 0, None, None, None)))
    right, predicted = (
        np.asarray(part) for part in over_sets(param_sets, seats, states, joints, keys)
    )
    true = np.asarray(rewards)[:, np.asarray(seats)].T  # [sets, M]
    there = np.asarray(present)[:, np.asarray(seats)].T
    if not there.any():
        return None
    least = float(min(true[there].min(), so_far[:, 0].min()))
    most = float(max(true[there].max(), so_far[:, 1].max()))
    span, room, given = max(most - least, 1e-6), 0.05 * (most - least), predicted[there]
    by_set = np.array(
        [
            _compare_rewards(exact[own], gain[own], given_one[own], span)
            for own, exact, gain, given_one in zip(there, right, true, predicted, strict=True)
        ]
    )
    exact, error, slope, offset = by_set.T.tolist()
    return WorldErrors(
        exact,
        error,
        slope,
        offset,
        observed=[least, most],
        predicted=[float(given.min()), float(given.max())],
        outside=float(((given < least - room) | (given > most + room)).mean()),
    )


def _compare_rewards(
    right: np.ndarray, true: np.ndarray, given: np.ndarray, span: float
) -> tuple[float, ...]:
    """The first four figures of `WorldErrors` of one set, of the steps [M] at which it was there;
    NaN without any."""
    if not len(right):
        return (float("nan"),) * 4
    # A slope shows rewards of another scale even where single ones are predicted badly.
    spread, slope = float(np.var(true)), float("nan")
    offset = float(given.mean() - true.mean())
    if spread > 1e-9:
        slope = float(np.mean((true - true.mean()) * given) / spread)
        # A line that is too flat is no shift: it goes through zero while a model is young, and
        # through the mean once it has learned what it can. A shifted one goes through neither.
        at_zero = float(given.mean() - slope * true.mean())
        offset = min(offset, at_zero, key=abs) if offset * at_zero > 0 else 0.0
    return float(right.mean()), float(np.abs(given - true).mean()), slope, offset / span


@dataclass(frozen=True)
class OpponentErrors:
    """Models of the others on steps that were played, by set; nats, less is better; NaN where no
    other was there that had a choice."""

    cross_entropy: list[float]
    uniform: list[float]  # of a model that finds all legal actions equally likely


def measure_opponents(
    laboratory: Laboratory, param_sets: Any, trajectory: Trajectory
) -> OpponentErrors | None:
    """Of one replica; None without such models."""
    learner = laboratory.learner
    if param_sets.opponents is None:
        return None
    game, context = learner.game, learner.actor.context
    states, joints = flat((trajectory.state, trajectory.act.action))
    sets = learner.auxiliary.seats[:, 0]
    seats = game.seats

    def of_set(
        player_params: Any, seat: jax.Array, inferred: jax.Array, states: Any, joints: Any
    ) -> Any:
        order = (seat + jnp.arange(seats)) % seats

        def of_step(state: Any, joint: jax.Array, inferred: jax.Array) -> tuple[jax.Array, ...]:
            observation = observe(game, game.view(state, seat))
            goals = context.about_others(inferred)
            logits = others_logits(
                player_params.opponents, observation.view, observation.legal, goals
            )
            said = jnp.take_along_axis(logits, joint[order][1:, None], axis=1)[:, 0]
            there = game.present(state)[order]
            legal = observation.legal[1:].sum(axis=1)
            counts = there[1:] & there[0] & (legal > 1)
            return jnp.where(counts, -said, 0.0), jnp.where(counts, jnp.log(legal), 0.0), counts

        said, even, counts = jax.vmap(of_step)(states, joints, inferred)
        total = jnp.where(counts.any(), counts.sum(), jnp.nan)  # nobody there: nothing is known
        return said.sum() / total, even.sum() / total

    size = context.size
    # Each set's own inferred goals [sets, T * B, J], as in play.
    inferred = jnp.moveaxis(trajectory.act.inferred[:, :, sets, :size], 2, 0)
    inferred = inferred.reshape(len(sets), -1, size)
    over_sets = laboratory.compiled("others", jax.vmap(of_set, in_axes=(0, 0, 0, None, None)))
    said, even = over_sets(param_sets, jnp.asarray(sets), inferred, states, joints)
    return OpponentErrors(np.asarray(said).tolist(), np.asarray(even).tolist())


def compare_goals(laboratory: Laboratory, param_sets: Any, trajectory: Trajectory) -> list[float]:
    """[sets] the largest difference between the goals that a seat inferred in play and those that
    it would infer in imagination from the same memory and view; of one replica, empty without
    any."""
    learner = laboratory.learner
    imagined_rollouts, game, size = (
        learner.auxiliary.imagined_rollouts,
        learner.game,
        learner.actor.context.size,
    )
    if imagined_rollouts is None or size == 0:
        return []
    sets = learner.auxiliary.seats[:, 0]
    own = np.searchsorted(np.sort(learner.seats), sets)
    states, inferred, memories, present = flat(
        (
            trajectory.state,
            trajectory.act.inferred[:, :, sets, :size],
            jax.tree.map(lambda leaf: leaf[:, :, own], trajectory.memory[learner.learning]),
            trajectory.present[:, :, sets],
        )
    )

    def of_set(
        player_params: Any, seat: Any, states: Any, inferred: Any, memory: Any, there: Any
    ) -> Any:
        decide = imagined_rollouts.imagination(player_params, seat).decide

        def of_step(state: Any, inferred: jax.Array, memory: Any) -> jax.Array:
            _, act = decide(memory, game.view(state, seat), jax.random.key(0))
            return jnp.abs(act.inferred[:size] - inferred).max()

        return jnp.where(there, jax.vmap(of_step)(states, inferred, memory), 0.0).max()

    over_sets = laboratory.compiled("goals", jax.vmap(of_set, in_axes=(0, 0, None, 1, 1, 1)))
    found = over_sets(param_sets, jnp.asarray(sets), states, inferred, memories, present)
    return [float(apart) for apart in found]
