"""What the value learns from, by source: steps that were played, and steps that were imagined."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.diagnosis.subject import learned_from
from hopplus.learning.learner import Learner, Lesson
from hopplus.learning.returns import game_returns, hangs_on_value
from hopplus.learning.social_rewards import shared_reward

QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


@dataclass(frozen=True)
class StepSource:
    """Steps of one source that one set of parameters is given."""

    steps: int
    reward: list[float]  # at QUANTILES
    returns: list[float]
    value: list[float]
    return_mean: float
    return_variance: float
    value_loss: float  # mean squared error of the value, unclipped
    explained: float
    goal: list[float]  # sizes of the inferred goals, at QUANTILES; zero without any
    goal_size: float  # root mean square of the inferred goals; 0 without any
    goal_zero: float  # share of steps at which all inferred goals are zero


Sources = dict[str, list[StepSource | None]]  # by source, [sets]; None where there are no steps


def describe_sources(lesson: Lesson) -> Sources:
    """What a lesson of one replica consists of."""
    batch = jax.device_get(learned_from(lesson))
    sets = range(len(batch.present))
    rows = {"real": batch.present}
    if batch.imagined is not None:
        real, imagined = batch.present & ~batch.imagined, batch.present & batch.imagined
        rows = {"real": real, "imagined": imagined}
    return {name: [_describe(batch, n, own[n]) for n in sets] for name, own in rows.items()}


def _describe(batch: Any, number: int, rows: np.ndarray) -> StepSource | None:
    """The given rows of one set."""
    if not rows.any():
        return None
    reward, returns, value, inferred = (
        np.asarray(part[number][rows], np.float64)
        for part in (batch.reward, batch.returns, batch.value, batch.inferred)
    )
    variance, error = float(returns.var()), returns - value
    return StepSource(
        steps=int(rows.sum()),
        reward=np.quantile(reward, QUANTILES).tolist(),
        returns=np.quantile(returns, QUANTILES).tolist(),
        value=np.quantile(value, QUANTILES).tolist(),
        return_mean=float(returns.mean()),
        return_variance=variance,
        value_loss=float((error**2).mean()),
        explained=1 - float(error.var()) / variance if variance > 1e-12 else 0.0,
        goal=np.quantile(np.linalg.norm(inferred, axis=1), QUANTILES).tolist(),
        goal_size=float(np.sqrt((inferred**2).mean())) if inferred.size else 0.0,
        goal_zero=float((inferred == 0).all(axis=1).mean()) if inferred.size else 0.0,
    )


@dataclass(frozen=True)
class TargetErrors:
    """What the value's error would be by other targets, of real steps, all sets together."""

    as_configured: float
    monte_carlo: float
    gae: float  # with lambda 0.95


def compare_targets(learner: Learner, lesson: Lesson) -> TargetErrors:
    """Of one replica, by the returns of what ended in it."""
    seats, c, trajectory = learner.seats, learner.config, lesson.trajectory
    value = trajectory.act.value[:, :, seats]
    present = trajectory.present[:, :, seats]
    reward = shared_reward(trajectory.outcome.reward, c.prosociality)[:, :, seats]
    worth = learner.worth_later(lesson.plays, trajectory)
    if c.gains_after_leaving:
        present = jnp.ones_like(present)
    # Only what ends within the lesson: nothing then hangs on the value at its end.
    counted = np.asarray(present & ~hangs_on_value(worth, jnp.ones_like(present[0])))

    def error(gae_lambda: float) -> float:
        after = jnp.concatenate([value, jnp.zeros_like(value[:1])])
        there = jnp.concatenate([present, jnp.zeros_like(present[:1])])
        returns = game_returns(reward, after, there, worth, gae_lambda)
        off = np.asarray((returns - value) ** 2)
        return float(off[counted].mean()) if counted.any() else float("nan")

    return TargetErrors(error(c.gae_lambda), error(1.0), error(0.95))


def describe_cuts(learner: Learner, lesson: Lesson) -> str:
    """What is not Monte-Carlo in the returns of one replica, because an unroll cuts episodes."""
    present = lesson.trajectory.present[:, :, learner.seats]
    hanging = np.asarray(learner.unfinished(lesson.plays, lesson.trajectory) & present)
    learned = learner.config.episodes == "any"
    fate = "learned from with the critic's value at its end" if learned else "not learned from"
    share = hanging.sum() / max(1, int(present.sum()))
    return f"Returns of {share:.0%} of the steps go on after the unroll: these are {fate}."
