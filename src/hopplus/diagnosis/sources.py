"""What the value learns from, by source: steps that were played, and steps that were imagined."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.diagnosis.laboratory import Laboratory
from hopplus.games.game import repeat_step
from hopplus.learning.learner import Learner, Lesson
from hopplus.learning.online import flat
from hopplus.learning.returns import lambda_returns, shared_reward
from hopplus.models.opponent import others_logits
from hopplus.planning.simulate import scene_of
from hopplus.types import Trajectory

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


@dataclass(frozen=True)
class Source:
    """Steps of one source that one set of parameters is given."""

    steps: int
    reward: list[float]  # at QUANTILES
    returns: list[float]
    value: list[float]
    return_mean: float
    return_variance: float
    value_loss: float  # mean squared error of the value, unclipped
    explained: float
    goal_size: float  # root mean square of the inferred goals; 0 without any
    goal_zero: float  # share of steps at which all inferred goals are zero

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def _source(batch: Any, number: int, rows: np.ndarray) -> Source | None:
    """The given rows of one set."""
    if not rows.any():
        return None
    reward, returns, value = (
        np.asarray(part[number][rows], np.float64)
        for part in (batch.reward, batch.returns, batch.value)
    )
    inferred = np.asarray(batch.inferred[number][rows], np.float64)
    variance = float(returns.var())
    error = returns - value
    explained = 1 - float(error.var()) / variance if variance > 1e-12 else 0.0
    return Source(
        steps=int(rows.sum()),
        reward=np.quantile(reward, QUANTILES).tolist(),
        returns=np.quantile(returns, QUANTILES).tolist(),
        value=np.quantile(value, QUANTILES).tolist(),
        return_mean=float(returns.mean()),
        return_variance=variance,
        value_loss=float((error**2).mean()),
        explained=explained,
        goal_size=float(np.sqrt((inferred**2).mean())) if inferred.size else 0.0,
        goal_zero=float((inferred == 0).all(axis=1).mean()) if inferred.size else 0.0,
    )


def sources(lesson: Lesson) -> dict[str, list[Source | None]]:
    """By source, [sets] what a lesson of one lane consists of; None where there is nothing."""
    batch = jax.device_get(lesson.batch)
    found: dict[str, list[Source | None]] = {}
    sets = range(len(batch.present))
    imagined = batch.imagined if batch.imagined is not None else np.zeros_like(batch.present)
    found["real"] = [_source(batch, n, batch.present[n] & ~imagined[n]) for n in sets]
    if batch.imagined is not None:
        found["imagined"] = [_source(batch, n, batch.present[n] & imagined[n]) for n in sets]
    return found


@dataclass(frozen=True)
class Targets:
    """What the value's error would be by other targets, of real steps, all sets together."""

    as_configured: float
    monte_carlo: float
    gae: float  # with lambda 0.95

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def targets(learner: Learner, trajectory: Trajectory) -> Targets:
    """Of one lane, by the returns of the episodes that ended in it."""
    seats, c = learner.seats, learner.config
    value = trajectory.act.value[:, :, seats]
    present = trajectory.present[:, :, seats]
    reward = shared_reward(trajectory.outcome.reward, c.prosociality)[:, :, seats]
    done = trajectory.outcome.done
    # Only steps whose episode ends within the lesson: nothing then hangs on the value at its end.
    ends = np.asarray(jnp.flip(jnp.cumsum(jnp.flip(done, 0), axis=0), 0) > 0)
    if c.prosociality > 0:  # who has left goes on gaining
        present = jnp.ones_like(present)
    counted = np.asarray(present) & ends[:, :, None]

    def error(mix: float) -> float:
        after = jnp.concatenate([value, jnp.zeros_like(value[:1])])
        there = jnp.concatenate([present, jnp.zeros_like(present[:1])])
        over_seats = jax.vmap(lambda_returns, in_axes=(1, 1, 1, None, None, None), out_axes=1)
        over_games = jax.vmap(over_seats, in_axes=(1, 1, 1, 1, None, None), out_axes=1)
        returns = over_games(reward, after, there, done, learner.discount, mix)
        off = np.asarray((returns - value) ** 2)
        return float(off[counted].mean()) if counted.any() else float("nan")

    return Targets(error(c.mix), error(1.0), error(0.95))


@dataclass(frozen=True)
class WorldCheck:
    """The world that imagination uses, on steps that were played; by set."""

    exact: list[float]  # share of next views that are exactly right
    reward_error: list[float]  # mean absolute error of the own reward
    reward_slope: list[float]  # of foreseen on true rewards; NaN where true ones are all the same
    reward_offset: list[float]  # how far off the usual reward is, as a share of their range
    observed: list[float]  # [2] least and largest true reward
    predicted: list[float]  # [2]
    outside: float  # share of rewards foreseen outside the range of true ones, with some room

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def world_check(laboratory: Laboratory, minds: Any, trajectory: Trajectory) -> WorldCheck | None:
    """Of one lane; None where nothing is imagined, or nobody was there to see it."""
    learner = laboratory.learner
    dreams, game = learner.beside.dreams, learner.game
    if dreams is None:
        return None
    seats = jnp.asarray(learner.beside.seats[:, 0])
    played = (trajectory.state, trajectory.act.action, trajectory.key)
    states, joints, keys, rewards, present = flat(
        (*played, trajectory.outcome.reward, trajectory.present)
    )

    def of_set(mind: Any, seat: jax.Array, states: Any, joints: jax.Array, keys: Any) -> Any:
        stage = dreams.imagination(mind).stage

        def one(state: Any, joint: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            order = (seat + jnp.arange(game.seats)) % game.seats
            scene = scene_of(game, game.view(state, seat))
            place, turn = stage.simulate(stage.enter(scene), joint[order], jax.random.key(0))
            after, _ = repeat_step(game, state, joint, key)
            right = (stage.scene(place).view.planes == game.view(after, seat).planes).all()
            return right, turn.reward[0]

        return jax.vmap(one)(states, joints, keys)

    over_sets = laboratory.compiled("world", jax.vmap(of_set, in_axes=(0, 0, None, None, None)))
    right, predicted = (np.asarray(part) for part in over_sets(minds, seats, states, joints, keys))
    true = np.asarray(rewards)[:, np.asarray(seats)].T  # [sets, M]
    there = np.asarray(present)[:, np.asarray(seats)].T
    exact: list[float] = []
    error: list[float] = []
    slope: list[float] = []
    offset: list[float] = []
    if not there.any():
        return None
    least, most = float(true[there].min()), float(true[there].max())
    span = max(most - least, 1e-6)
    for number in range(len(true)):
        own, gain, given = there[number], true[number], predicted[number]
        if not own.any():
            for figures in (exact, error, slope, offset):
                figures.append(float("nan"))
            continue
        exact.append(float(right[number][own].mean()))
        error.append(float(np.abs(given - gain)[own].mean()))
        spread = float(np.var(gain[own]))
        line = float("nan")
        if spread > 1e-9:
            line = float(np.mean((gain[own] - gain[own].mean()) * given[own]) / spread)
        slope.append(line)
        usual = np.quantile(gain[own], 0.5, method="nearest")
        offset.append(float((given[own & (gain == usual)].mean() - usual) / span))
    room = 0.05 * (most - least)
    given = predicted[there]
    return WorldCheck(
        exact,
        error,
        slope,
        offset,
        [least, most],
        [float(given.min()), float(given.max())],
        float(((given < least - room) | (given > most + room)).mean()),
    )


@dataclass(frozen=True)
class OpponentCheck:
    """Models of the others on steps that were played, by set; nats, less is better; NaN where no
    other was there that had a choice."""

    cross_entropy: list[float]
    uniform: list[float]  # of a model that finds all legal actions equally likely

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def opponent_check(
    laboratory: Laboratory, minds: Any, trajectory: Trajectory
) -> OpponentCheck | None:
    """Of one lane; None without such models."""
    learner = laboratory.learner
    if minds.opponents is None:
        return None
    game, context = learner.game, learner.actor.context
    states, joints = flat((trajectory.state, trajectory.act.action))
    sets = learner.beside.seats[:, 0]
    seats = game.seats

    def of_set(mind: Any, seat: jax.Array, told: jax.Array, states: Any, joints: Any) -> Any:
        order = (seat + jnp.arange(seats)) % seats

        def of_step(state: Any, joint: jax.Array, inferred: jax.Array) -> tuple[jax.Array, ...]:
            scene = scene_of(game, game.view(state, seat))
            goals = context.about_others(inferred)
            logits = others_logits(mind.opponents, scene.view, scene.legal, goals)
            said = jnp.take_along_axis(logits, joint[order][1:, None], axis=1)[:, 0]
            there = game.present(state)[order]
            legal = scene.legal[1:].sum(axis=1)
            counts = there[1:] & there[0] & (legal > 1)
            return jnp.where(counts, -said, 0.0), jnp.where(counts, jnp.log(legal), 0.0), counts

        said, even, counts = jax.vmap(of_step)(states, joints, told)
        total = jnp.where(counts.any(), counts.sum(), jnp.nan)  # nobody there: nothing is known
        return said.sum() / total, even.sum() / total

    size = context.size
    # Each set's own inferred goals [sets, T * B, J], as in play.
    told = jnp.moveaxis(trajectory.act.inferred[:, :, sets, :size], 2, 0)
    told = told.reshape(len(sets), -1, size)
    over_sets = laboratory.compiled("others", jax.vmap(of_set, in_axes=(0, 0, 0, None, None)))
    said, even = over_sets(minds, jnp.asarray(sets), told, states, joints)
    return OpponentCheck(np.asarray(said).tolist(), np.asarray(even).tolist())


def goal_difference(laboratory: Laboratory, minds: Any, trajectory: Trajectory) -> list[float]:
    """[sets] the largest difference between the goals that a seat inferred in play and those that
    it would infer in imagination from the same memory and view; of one lane, empty without any."""
    learner = laboratory.learner
    dreams, game, size = learner.beside.dreams, learner.game, learner.actor.context.size
    if dreams is None or size == 0:
        return []
    sets = learner.beside.seats[:, 0]
    own = np.searchsorted(np.sort(learner.seats), sets)
    states, inferred, memories, present = flat(
        (
            trajectory.state,
            trajectory.act.inferred[:, :, sets, :size],
            jax.tree.map(lambda leaf: leaf[:, :, own], trajectory.memory[learner.learning]),
            trajectory.present[:, :, sets],
        )
    )

    def of_set(mind: Any, seat: Any, states: Any, told: Any, memory: Any, there: Any) -> Any:
        decide = dreams.imagination(mind).decide

        def of_step(state: Any, told: jax.Array, memory: Any) -> jax.Array:
            _, act = decide(memory, game.view(state, seat), jax.random.key(0))
            return jnp.abs(act.inferred[:size] - told).max()

        return jnp.where(there, jax.vmap(of_step)(states, told, memory), 0.0).max()

    over_sets = laboratory.compiled("goals", jax.vmap(of_set, in_axes=(0, 0, None, 1, 1, 1)))
    found = over_sets(minds, jnp.asarray(sets), states, inferred, memories, present)
    return [float(apart) for apart in found]
